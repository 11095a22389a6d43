"""``fmblocks preflight``: what only the account knows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fmblocks.cli.terminal import tell
from fmblocks.findings import FindingsError
from fmblocks.project import Project

if TYPE_CHECKING:
    from fmblocks.preflight import Account, Question


def preflight(
    file: Annotated[Path, typer.Argument(help="A project file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Ask the account what a project file cannot know: zones, endpoints, existing networks and storage, buckets,
    add-ons.

    Nothing is changed. Exit code 1 when something fails, 2 when nobody could ask; what a denied call leaves open is
    unknown, and no failure.
    """
    try:
        project = Project.load(file).project
    except FindingsError as error:
        tell(error.findings, err=True)
        raise typer.Exit(2) from None
    # Only here: boto3 takes longer to load than a file takes to check.
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    from fmblocks.preflight import Account, Outcome, answers

    session = boto3.Session()
    region = project.region or session.region_name
    if region is None:
        typer.echo("no region: write one into the project, or set AWS_REGION", err=True)
        raise typer.Exit(2)
    try:
        identity = session.client("sts", region_name=region).get_caller_identity()["Account"]
        if project.account is not None and identity != project.account:
            typer.echo(f"the credentials are of account {identity}, and the project is for {project.account}", err=True)
            raise typer.Exit(2)
        account = Account(
            ec2=session.client("ec2", region_name=region),
            eks=session.client("eks", region_name=region),
            fsx=session.client("fsx", region_name=region),
            iam=session.client("iam", region_name=region),
            s3=session.client("s3", region_name=region),
            sagemaker=session.client("sagemaker", region_name=region),
            service_quotas=session.client("service-quotas", region_name=region),
            ssm=session.client("ssm", region_name=region),
        )
        results = list(answers(_questions(project, region, account)))
    except (BotoCoreError, ClientError) as error:
        typer.echo(f"AWS does not answer: {error}", err=True)
        raise typer.Exit(2) from None
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in results], indent=1, ensure_ascii=False))
    else:
        for one in results:
            typer.echo(one)
    counts = {outcome: sum(one.outcome is outcome for one in results) for outcome in Outcome}
    typer.echo(", ".join(f"{outcome}: {count}" for outcome, count in counts.items()), err=True)
    raise typer.Exit(1 if counts[Outcome.FAIL] else 0)


def _questions(project: Project, region: str, account: Account) -> Iterator[Question]:
    from fmblocks.cluster import preflight as of_cluster
    from fmblocks.cluster.add_ons import INFERENCE_OPERATOR
    from fmblocks.network import preflight as of_network
    from fmblocks.serving import preflight as of_serving
    from fmblocks.storage import preflight as of_storage

    network = project.network
    yield from of_network.questions(network, region, account)
    for key, cluster in project.clusters.items():
        served = project.inference is not None and project.inference.endpoints and cluster is project.serving_cluster
        further = [INFERENCE_OPERATOR] if served and cluster.orchestrator.hyperpod else []
        yield from of_cluster.questions(key, cluster, network.primary, account, further)
    if project.storage.lustre is not None:
        subnets = network.vpc.private_subnets if network.vpc else ()
        cidr = next((one.cidr for one in subnets if one.availability_zone == network.primary), None)
        yield from of_storage.questions(
            project.storage.lustre,
            foundation=project.name,
            region=region,
            vpc_id=network.vpc.id if network.vpc else None,
            node_group_id=network.vpc.efa_security_group_id if network.vpc else None,
            node_cidr=cidr,
            account=account,
        )
    if project.inference is not None:
        yield from of_serving.questions(project.inference.endpoints, foundation=project.name, account=account)
