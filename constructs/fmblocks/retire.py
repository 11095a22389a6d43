"""In which order a project is taken down by hand, and what bills until each step is done.

Stacks keep data, the key it is encrypted with and the network it stands on, so the last steps are commands of the AWS
CLI. Ids are read into shell variables before the stack that knows them goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fmblocks.network.settings import Network

if TYPE_CHECKING:
    from fmblocks.project import Project


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        title: what is done, and what has to hold before.
        bills: what bills until then.
        commands: of a shell with the AWS CLI, in the folder of the project's app.
    """

    title: str
    bills: str
    commands: tuple[str, ...]


def steps(project: Project, file: str) -> Iterator[Step]:
    """The steps of a project, in order.

    Args:
        project: the project.
        file: its file, as the CDK CLI is told.
    """
    name, lustre, home = project.name, project.storage.lustre, project.storage.home
    made_lustre = lustre is not None and lustre.existing is None
    network = project.network
    # Stacks need not be in the file any more: destroying what is not there does no harm.
    yield Step(
        "write down what stays: afterwards no stack knows it",
        "",
        tuple(_ids(name, network, made_lustre=made_lustre, home=home is not None)),
    )
    if lustre is not None and lustre.exported:
        seen = "--namespace AWS/FSx --metric-name AgeOfOldestQueuedMessage --statistics Maximum --period 60"
        dimensions = "Name=FileSystemId,Value=$LUSTRE Name=Publisher,Value=AutoExport"
        yield Step(
            "stop the jobs, and wait until every change is exported: the last values are 0, or changes are lost",
            "",
            (
                f"aws cloudwatch get-metric-statistics {seen} --dimensions {dimensions}"
                " --start-time $(date -u -d -1hour +%FT%TZ) --end-time $(date -u +%FT%TZ)",
            ),
        )
    if project.training is not None:
        yield Step(
            "destroy the cluster",
            "nodes, by the hour",
            (f"npx cdk destroy TrainingStack -c project={file} --force",),
        )
        if any(group.capacity.create for group in project.training.node_groups):
            yield Step(
                "give reserved capacity back; it may be gone for good",
                "reservations, used or not",
                (_unlock(name, "CapacityStack"), f"npx cdk destroy CapacityStack -c project={file} --force"),
            )
    yield Step(
        "destroy the foundation: data, its key and its network stay",
        "gateways and endpoints, by the hour",
        (_unlock(name, "FoundationStack"), f"npx cdk destroy FoundationStack -c project={file} --force"),
    )
    yield from _data(project, made_lustre=made_lustre)
    yield from _network(network, made_lustre=made_lustre, home=home is not None)
    yield Step(
        "last, the key: what it encrypted, backups too, can never be read again",
        "a month for each key",
        ("aws kms schedule-key-deletion --key-id $KEY --pending-window-in-days 30",),
    )


def _ids(name: str, network: Network, *, made_lustre: bool, home: bool) -> Iterator[str]:
    published = {
        "KEY": "key-arn",
        "WORKSPACE": "metrics/workspace-arn",
        **({"LUSTRE": "lustre/file-system-id", "LUSTRE_GROUP": "lustre/security-group-id"} if made_lustre else {}),
        **({"HOME_SYSTEM": "home/file-system-id", "HOME_GROUP": "home/security-group-id"} if home else {}),
    }
    if network.vpc is None:
        published |= {"VPC": "vpc-id", "SUBNET": f"subnet/{network.primary}"}
    if network.vpc is None or network.vpc.efa_security_group_id is None:
        published["EFA_GROUP"] = "efa-security-group-id"
    for variable, parameter in published.items():
        yield (
            f"{variable}=$(aws ssm get-parameter --name /fmblocks/{name}/{parameter}"
            " --query Parameter.Value --output text)"
        )
    # The log bucket is not published: nobody else needs it.
    query = "StackResourceSummaries[?ResourceType=='AWS::S3::Bucket'].PhysicalResourceId"
    yield (
        f"BUCKETS=$(aws cloudformation list-stack-resources --stack-name {name}-FoundationStack"
        f' --query "{query}" --output text)'
    )


def _unlock(name: str, stack: str) -> str:
    return (
        "aws cloudformation update-termination-protection --no-enable-termination-protection"
        f" --stack-name {name}-{stack}"
    )


def _data(project: Project, *, made_lustre: bool) -> Iterator[Step]:
    lustre, home = project.storage.lustre, project.storage.home
    if made_lustre:
        yield Step(
            "delete the Lustre file system: what was not exported is lost",
            "its capacity and throughput, by the hour",
            ("aws fsx delete-file-system --file-system-id $LUSTRE",),
        )
    if home is not None:
        yield Step(
            "delete the home directories; FSx makes a last backup, unless it is told not to",
            "their capacity and throughput, by the hour; backups, by the GB",
            ("aws fsx delete-file-system --file-system-id $HOME_SYSTEM",),
        )
    if home is not None or (lustre is not None and lustre.backups):
        yield Step(
            "delete the backups that nobody will restore, one by one",
            "backups, by the GB",
            ("aws fsx describe-backups --query Backups[].BackupId --output text",),
        )
    yield Step(
        "empty and delete the buckets, every version: datasets of your own are not among them",
        "what is stored, by the GB",
        ("for bucket in $BUCKETS; do python docs/examples/delete_bucket.py $bucket; done",),
    )
    yield Step(
        "delete the metrics workspace",
        "stored samples, by the GB",
        ("aws amp delete-workspace --workspace-id ${WORKSPACE##*/}",),
    )


def _network(network: Network, *, made_lustre: bool, home: bool) -> Iterator[Step]:
    groups = [*(["$LUSTRE_GROUP"] if made_lustre else []), *(["$HOME_GROUP"] if home else [])]
    if network.vpc is None or network.vpc.efa_security_group_id is None:
        groups.append("$EFA_GROUP")  # the others name it in their rules
    if groups:
        yield Step(
            "delete the security groups, once the file systems are gone",
            "",
            tuple(f"aws ec2 delete-security-group --group-id {group}" for group in groups),
        )
    if network.vpc is None:
        yield Step(
            "delete the subnet and the VPC",
            "",
            ("aws ec2 delete-subnet --subnet-id $SUBNET", "aws ec2 delete-vpc --vpc-id $VPC"),
        )
