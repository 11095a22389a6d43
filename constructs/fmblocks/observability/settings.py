"""What a project file says about its metrics, dashboards and alerts."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from fmblocks.settings import AnyCase, Email, Settings, Text, WholeNumber

# Prometheus's own form: 1d12h, 30s, 5m. Source: Prometheus documentation, *Configuration*, <duration>.
_UNITS = {"y": 31536000, "w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}
_DURATION = r"(?=.)" + "".join(rf"(?:(\d+){unit})?" for unit in _UNITS)


def seconds(duration: str) -> float:
    """The seconds of a duration such as ``1d12h``; 0 for what is none."""
    found = re.fullmatch(_DURATION, duration)
    numbers = found.groups() if found else ()
    return sum(int(number or 0) * size for number, size in zip(numbers, _UNITS.values(), strict=False))


def _duration(value: str) -> str:
    if not seconds(value):
        raise PydanticCustomError("spelled", "is not {form}", {"form": "a duration like 30s, 5m or 1d12h"})
    return value


Duration = Annotated[Text, AfterValidator(_duration)]


# Pods that carry it are scraped at their port of that name, whoever made them.
METRICS_LABEL, METRICS_PORT = "fmblocks/metrics", "metrics"


class Prometheus(Settings):
    """The Amazon Managed Service for Prometheus workspace."""

    FOREIGN: ClassVar = {
        "workspace_arn": "this version creates the workspace; the constructs import one",
    }

    retention_days: Annotated[WholeNumber, Field(description="days that samples are kept")] = 150


class Authentication(StrEnum):
    """How people log in to Grafana (API CreateWorkspace, authenticationProviders)."""

    AWS_SSO = "aws_sso"
    SAML = "saml"


class AccountAccessType(StrEnum):
    """Whose data a workspace may show (API CreateWorkspace, accountAccessType)."""

    CURRENT_ACCOUNT = "current_account"
    ORGANIZATION = "organization"


class GrafanaDataSource(StrEnum):
    """AWS data sources of a workspace (API CreateWorkspace, workspaceDataSources)."""

    AMAZON_OPENSEARCH_SERVICE = "amazon_opensearch_service"
    CLOUDWATCH = "cloudwatch"
    PROMETHEUS = "prometheus"
    XRAY = "xray"
    TIMESTREAM = "timestream"
    SITEWISE = "sitewise"
    ATHENA = "athena"
    REDSHIFT = "redshift"


class NetworkAccess(Settings):
    """Who reaches a workspace: without it everybody does, and has to log in."""

    prefix_list_ids: Annotated[tuple[Text, ...], Field(description="pl-…, at most 5")] = ()
    vpc_endpoint_ids: Annotated[tuple[Text, ...], Field(description="vpce-…, at most 5")] = ()


class Saml(Settings):
    """The identity provider of a workspace with SAML."""

    idp_metadata_url: Annotated[Text, Field(description="where the provider describes itself")]
    admin_roles: Annotated[
        tuple[Text, ...], Field(description="values of the role attribute that become administrators")
    ]
    editor_roles: tuple[Text, ...] = ()


class Grafana(Settings):
    """The Amazon Managed Grafana workspace."""

    FOREIGN: ClassVar = {
        "permission_type": "workspaces that CloudFormation makes are customer managed: leave the key out",
        "auth": "the key is authentication",
        "enabled": "write workspace: none",
        "mode": "for a Grafana of your own write workspace: none, and point it at the metrics workspace",
        "workspace_id": "write the id under workspace",
    }
    FOREIGN_RULES: ClassVar = {"permission_type": "AMG-02"}

    workspace: Annotated[Text, Field(description="create, none, or the id of one that exists, g-…")] = "create"
    name: Annotated[Text | None, Field(description="default: the project's name")] = None
    authentication: tuple[Annotated[Authentication, AnyCase], ...] = (Authentication.AWS_SSO,)
    saml: Annotated[Saml | None, Field(description="with authentication saml, which requires it")] = None
    version: Annotated[Text | None, Field(description="for example 10.4; default: the newest")] = None
    region: Annotated[Text | None, Field(description="where the project's Region has no Managed Grafana")] = None
    data_sources: tuple[Annotated[GrafanaDataSource, AnyCase], ...] = (
        GrafanaDataSource.PROMETHEUS,
        GrafanaDataSource.CLOUDWATCH,
    )
    account_access_type: Annotated[AccountAccessType, AnyCase] = AccountAccessType.CURRENT_ACCOUNT
    organizational_units: Annotated[tuple[Text, ...], Field(description="with account_access_type organization")] = ()
    network_access: Annotated[NetworkAccess | None, Field(description="default: everybody who logs in")] = None
    vpc: Annotated[bool, Field(description="let the workspace reach the private subnets")] = False


class Alerts(Settings):
    """Who hears of alerts, and how often."""

    FOREIGN: ClassVar = {
        "emails": "the key is email",
        "sns_topic_arn": "the key is topic_arn",
        "thresholds": "this version has no alerts yet: leave the key out",
    }

    email: tuple[Email, ...] = ()
    topic_arn: Annotated[Text | None, Field(description="an existing SNS topic of the same account and Region")] = None
    repeat_interval: Annotated[Duration, Field(description="how often an alert that stays is told again")] = "4h"


class Collector(StrEnum):
    """Who scrapes."""

    AGENTS = "agents"
    MANAGED = "managed"


class Observability(Settings):
    """Metrics of a project."""

    FOREIGN: ClassVar = {
        "projects": "this version has no shared foundations yet: leave the key out",
        "dashboards": "this version has no dashboards yet: leave the key out",
        "amp": "the key is prometheus",
        "retention_days": "write prometheus: {retention_days: …}",
    }

    prometheus: Prometheus = Prometheus()
    grafana: Annotated[Grafana | None, Field(description="checked, not built yet")] = None
    alerts: Annotated[Alerts | None, Field(description="who hears of alarms; default: nobody")] = None
    collector: Annotated[Collector | None, AnyCase, Field(description="agents or managed; checked, not built yet")] = (
        None
    )
    scrape_interval: Annotated[Duration | None, Field(description="default 30s; checked, not built yet")] = None
    scrape_timeout: Annotated[Duration | None, Field(description="default: 10s, or the interval if it is less")] = None
