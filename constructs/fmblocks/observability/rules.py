"""What is refused about metrics, dashboards and alerts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from fmblocks.catalog import parse_zone
from fmblocks.cluster.settings import Orchestrator
from fmblocks.findings import Violation, choice, rule
from fmblocks.observability.settings import (
    AccountAccessType,
    Alerts,
    Authentication,
    Collector,
    Grafana,
    GrafanaDataSource,
    seconds,
)

_MOST_DAYS = 1095


@rule("FMB-15")
def retention(*, retention_days: int) -> Iterator[Violation]:
    """Samples are kept for a day to three years."""
    if not 1 <= retention_days <= _MOST_DAYS:
        yield Violation("retention_days", f"{retention_days} is not between 1 and {_MOST_DAYS}", "150 is the default")


_CHECKED_ONLY = "is checked here, but this version does not build it"
_UNBUILT = ("grafana", "collector", "scrape_interval", "scrape_timeout")


@rule("FMB-34")
def unbuilt(
    *,
    given: Collection[str],
    grafana: Grafana | None,
    alerts: Alerts | None,
    collector: Collector | None,
    orchestrator: Orchestrator | None,
) -> Iterator[Violation]:
    """What this version does not build is checked, but cannot be synthesized yet."""
    unwanted = {"grafana"} if grafana is None or grafana.workspace == "none" else set()
    if orchestrator is Orchestrator.EKS and collector is Collector.AGENTS:
        unwanted |= {"collector", "scrape_interval", "scrape_timeout"}
    for key in _UNBUILT:
        if key in set(given) - unwanted:
            agents = orchestrator is Orchestrator.EKS and key.startswith("scrape")
            hint = "leave it out to deploy, or write collector: agents" if agents else "leave it out to deploy"
            yield Violation(key, _CHECKED_ONLY, hint)
    if alerts is not None and "repeat_interval" in alerts.model_fields_set:
        yield Violation("alerts.repeat_interval", _CHECKED_ONLY, "leave it out to deploy: alarms are told once")


@rule("FMB-76")
def somebody_hears(*, alerts: Alerts | None) -> Iterator[Violation]:
    """Alarms reach an address or a topic that is there, not both: of somebody's topic the subscriptions are theirs."""
    if alerts is not None and alerts.topic_arn is not None and alerts.email:
        text = f"{', '.join(alerts.email)} would hear nothing: who hears of topic_arn is said where it was made"
        yield Violation("alerts.email", text, "leave one of the two out")


@rule("AMP-03")
def scrape_interval(*, collector: Collector | None, scrape_interval: str | None) -> Iterator[Violation]:
    """A managed collector scrapes every 30 seconds at most."""
    if collector is Collector.MANAGED and scrape_interval is not None and seconds(scrape_interval) < 30:
        text = f"{scrape_interval} is less than the 30s of a managed collector"
        yield Violation("scrape_interval", text, "write 30s or more, or collector: agents")


@rule("FMB-35")
def scrape_timeout(*, scrape_interval: str | None, scrape_timeout: str | None) -> Iterator[Violation]:
    """Prometheus does not start with a timeout above its interval."""
    interval = scrape_interval or "30s"
    if scrape_timeout is not None and seconds(scrape_timeout) > seconds(interval):
        text = f"{scrape_timeout} is more than scrape_interval, {interval}"
        yield Violation("scrape_timeout", text, "lower it, raise scrape_interval, or leave it out")


@rule("AMP-04")
def managed_collector(
    *, collector: Collector | None, orchestrator: Orchestrator | None, availability_zones: Sequence[str]
) -> Iterator[Violation]:
    """A managed collector of an EKS cluster stands in two zones."""
    if collector is not Collector.MANAGED or orchestrator is None or not orchestrator.kubernetes:
        return
    if len([zone for zone in availability_zones if not ((parsed := parse_zone(zone)) and parsed.kind == "local")]) < 2:
        listed = ", ".join(availability_zones)
        text = f"managed, but network.availability_zones has {listed} only: a collector takes two"
        yield Violation("collector", text, "add a zone to network.availability_zones, or write collector: agents")


@rule("AMP-08")
def collector_region(*, collector: Collector | None, region: str | None) -> Iterator[Violation]:
    """Managed collectors are not listed for GovCloud and China; the list moves, so this is a warning."""
    if collector is Collector.MANAGED and (region or "").startswith(("us-gov-", "cn-")):
        yield Violation("collector", f"AWS::APS::Scraper is not listed for {region}", "check, or write agents")


# API:sns, ARN of a topic.
_TOPIC = r"arn:aws[a-z-]*:sns:(?P<region>[a-z0-9-]+):(?P<account>[0-9]{12}):[A-Za-z0-9_.-]{1,256}"


@rule("FMB-36")
def topic_account(*, alerts: Alerts | None, account: str | None) -> Iterator[Violation]:
    """The alert manager publishes inside its own account only."""
    if alerts is None or alerts.topic_arn is None:
        return
    found = re.fullmatch(_TOPIC, alerts.topic_arn)
    if found is None:
        hint = "it looks like arn:aws:sns:<region>:<account>:<name>"
        yield Violation("alerts.topic_arn", f"{alerts.topic_arn} is not the ARN of a topic", hint)
    elif account is not None and found["account"] != account:
        text = (
            f"the topic belongs to {found['account']}, the metrics workspace to {account}, which reaches its own only"
        )
        yield Violation("alerts.topic_arn", text, "use a topic of that account, subscribed from the other")


@rule("FMB-37")
def topic_region(*, alerts: Alerts | None, region: str | None) -> Iterator[Violation]:
    """Whether a topic of another Region is reached nobody documents."""
    found = re.fullmatch(_TOPIC, alerts.topic_arn) if alerts and alerts.topic_arn else None
    if found is not None and region is not None and found["region"] != region:
        text = f"the topic is in {found['region']}, the metrics workspace in {region}"
        yield Violation("alerts.topic_arn", text, "use a topic of the same region unless you have seen it work")


# The longest that Managed Prometheus takes. Source: its user guide, *Alert manager and templating quotas*.
_LONGEST_REPEAT = "5d"


@rule("FMB-38")
def repeat_interval(*, alerts: Alerts | None) -> Iterator[Violation]:
    """An alert is repeated within five days."""
    if alerts is not None and seconds(alerts.repeat_interval) > seconds(_LONGEST_REPEAT):
        text = f"{alerts.repeat_interval} is more than {_LONGEST_REPEAT}"
        yield Violation("alerts.repeat_interval", text, f"write {_LONGEST_REPEAT} or less")


@rule("FMB-39")
def workspace(*, grafana: Grafana | None) -> Iterator[Violation]:
    """A workspace is made, is there, or is not wanted."""
    if grafana is not None and not re.fullmatch(r"create|none|g-[0-9a-f]{10}", grafana.workspace):
        text = f"{grafana.workspace} is neither create nor none nor the id of a workspace"
        yield Violation("grafana.workspace", text, "an id looks like g-0123456789")


@rule("AMG-01")
def authentication(*, grafana: Grafana | None) -> Iterator[Violation]:
    """People log in one way at least; SAML says where its provider is."""
    if grafana is None or grafana.workspace != "create":
        return
    if not grafana.authentication:
        yield Violation("grafana.authentication", "names no way to log in", "write [aws_sso] or [saml]")
    if Authentication.SAML in grafana.authentication and grafana.saml is None:
        yield Violation("grafana.saml", "is required with authentication saml", "give idp_metadata_url and admin_roles")
    if Authentication.SAML not in grafana.authentication and grafana.saml is not None:
        text = "is not read without authentication saml"
        yield Violation("grafana.saml", text, "leave it out, or write authentication: [saml]")


@rule("AMG-03")
def organization(*, grafana: Grafana | None) -> Iterator[Violation]:
    """Access to an organization names its units."""
    if grafana is None or grafana.workspace != "create":
        return
    organization = grafana.account_access_type is AccountAccessType.ORGANIZATION
    if organization and not grafana.organizational_units:
        text = "are required with account_access_type organization"
        yield Violation("grafana.organizational_units", text, "list units, or write current_account")
    if not organization and grafana.organizational_units:
        text = f"are not read with account_access_type {grafana.account_access_type}"
        yield Violation("grafana.organizational_units", text, "leave them out, or write organization")


choice("AMG-04", GrafanaDataSource)


@rule("AMG-04")
def workspace_name(*, grafana: Grafana | None) -> Iterator[Violation]:
    """A workspace's name is what the API takes."""
    name = grafana.name if grafana else None
    if name is not None and not re.fullmatch(r"[a-zA-Z0-9-._~]{1,255}", name):
        yield Violation(
            "grafana.name", f"{name} is no name of a workspace: 1 to 255 of a-z A-Z 0-9 - . _ ~", "rename it"
        )


@rule("AMG-05")
def network_access(*, grafana: Grafana | None) -> Iterator[Violation]:
    """Access is narrowed by up to five prefix lists and five endpoints, and by one of them at least."""
    access = grafana.network_access if grafana and grafana.workspace == "create" else None
    if access is None:
        return
    where = "grafana.network_access"
    if not access.prefix_list_ids and not access.vpc_endpoint_ids:
        yield Violation(where, "lets nobody in", "list prefix_list_ids or vpc_endpoint_ids, or leave it out")
    for key in ("prefix_list_ids", "vpc_endpoint_ids"):
        if (number := len(getattr(access, key))) > 5:
            yield Violation(f"{where}.{key}", f"{number} are more than 5", "join some")


_NO_GRAFANA_VPC = "ap-northeast-2"


@rule("AMG-06")
def grafana_vpc(
    *, grafana: Grafana | None, region: str | None, availability_zones: Sequence[str]
) -> Iterator[Violation]:
    """A workspace joins a VPC in two to six subnets of ordinary zones."""
    if grafana is None or grafana.workspace != "create" or not grafana.vpc:
        return
    zones = [zone for zone in availability_zones if not ((parsed := parse_zone(zone)) and parsed.kind == "local")]
    if not 2 <= len(zones) <= 6:
        text = (
            f"true, but network.availability_zones has {', '.join(availability_zones)}: a workspace takes 2 to 6 zones"
        )
        yield Violation("grafana.vpc", text, "add a zone to network.availability_zones, or leave vpc out")
    if (grafana.region or region) == _NO_GRAFANA_VPC:
        yield Violation("grafana.vpc", f"true, but workspaces of {_NO_GRAFANA_VPC} join no VPC", "leave it out")


_NO_GRAFANA = frozenset(
    {
        "af-south-1", "ap-east-1", "ap-east-2", "ap-northeast-3", "ap-south-1", "ap-south-2", "ap-southeast-3",
        "ap-southeast-4", "ap-southeast-5", "ap-southeast-6", "ap-southeast-7", "ca-central-1", "ca-west-1",
        "cn-north-1", "cn-northwest-1", "eu-central-2", "eu-north-1", "eu-south-1", "eu-south-2", "eu-west-3",
        "il-central-1", "me-central-1", "mx-central-1", "sa-east-1", "us-gov-east-1", "us-gov-west-1", "us-west-1",
    }
)  # fmt: skip


@rule("AMG-09")
def grafana_region(*, grafana: Grafana | None, region: str | None) -> Iterator[Violation]:
    """Managed Grafana exists in some Regions only; the list moves, so this is a warning."""
    if grafana is None or grafana.workspace != "create":
        return
    if (where := grafana.region or region) in _NO_GRAFANA:
        key = "grafana.region" if grafana.region else "grafana"
        text = f"AWS::Grafana::Workspace is not listed for {where}"
        yield Violation(key, text, "write grafana: {region: …}, or workspace: none")


RULES = ("FMB-15",)
OBSERVABILITY = (
    "AMG-01", "AMG-03", "AMG-04", "AMG-05", "AMG-06", "AMG-09", "AMP-03", "AMP-04", "AMP-08", "FMB-34", "FMB-35",
    "FMB-36", "FMB-37", "FMB-38", "FMB-39", "FMB-76",
)  # fmt: skip
