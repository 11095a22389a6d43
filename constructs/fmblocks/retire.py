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


# The AWS CLI has no command for all versions of a bucket.
_EMPTY_BUCKET = (
    'import boto3, sys; bucket = boto3.resource("s3").Bucket(sys.argv[1]); bucket.object_versions.delete();'
    " [one.abort() for one in bucket.multipart_uploads.all()]; bucket.delete()"
)


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


def steps(project: Project) -> Iterator[Step]:
    """The steps of a project, in order."""
    name, lustre, home = project.name, project.storage.lustre, project.storage.home
    made_lustre = lustre is not None and lustre.existing is None
    network = project.network
    yield Step("be in the right place: what follows deletes by names", "", tuple(_place(project)))
    yield Step(
        "write down what stays: afterwards no stack knows it",
        "",
        tuple(_ids(project, lustre=lustre is not None, made_lustre=made_lustre, home=home is not None)),
    )
    if lustre is not None and lustre.exported:
        seen = "--namespace AWS/FSx --metric-name AgeOfOldestQueuedMessage --statistics Maximum --period 60"
        dimensions = "Name=FileSystemId,Value=$LUSTRE Name=Publisher,Value=AutoExport"
        yield Step(
            "stop the jobs, and wait until every change is exported: the last value is 0; no value says nothing",
            "",
            (
                f"aws cloudwatch get-metric-statistics {seen} --dimensions {dimensions}"
                " --start-time $(date -u -d -1hour +%FT%TZ) --end-time $(date -u +%FT%TZ)"
                " --query 'sort_by(Datapoints, &Timestamp)[].Maximum' --output text",
            ),
        )
    # By their names: a stack that the file has lost is deployed all the same, and bills.
    yield Step(
        "delete what serves",
        "nodes, by the hour",
        _delete_stack(name, "InferenceStack"),
    )
    yield Step(
        "delete the cluster",
        "nodes, by the hour",
        _delete_stack(name, "TrainingStack"),
    )
    yield Step(
        "give reserved capacity back, where there is any; it may be gone for good",
        "reservations, used or not",
        (*_unlocked(name, "CapacityStack"), *_delete_stack(name, "CapacityStack")),
    )
    yield Step(
        "destroy the foundation: data, its key and its network stay",
        "gateways and endpoints, by the hour",
        (*_unlocked(name, "FoundationStack"), *_delete_stack(name, "FoundationStack")),
    )
    yield from _data(project, made_lustre=made_lustre)
    database = project.storage.accounting_database is not None
    yield from _network(network, made_lustre=made_lustre, home=home is not None, database=database)
    yield Step(
        "last, the key: what it encrypted, backups too, can never be read again",
        "a month for each key",
        ("aws kms schedule-key-deletion --key-id $KEY --pending-window-in-days 30",),
    )


def _place(project: Project) -> Iterator[str]:
    yield "set -eu"
    if project.region is not None:
        yield f"export AWS_REGION={project.region} AWS_DEFAULT_REGION={project.region}"
    if project.account is not None:
        yield f'test "$(aws sts get-caller-identity --query Account --output text)" = {project.account}'


def _ids(project: Project, *, lustre: bool, made_lustre: bool, home: bool) -> Iterator[str]:
    name, network = project.name, project.network
    published = {
        "KEY": "key-arn",
        "WORKSPACE": "metrics/workspace-arn",
        **({"LUSTRE": "lustre/file-system-id"} if lustre else {}),
        **({"LUSTRE_GROUP": "lustre/security-group-id"} if made_lustre else {}),
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
    if project.storage.accounting_database is not None:
        for variable, kind in _OF_DATABASE.items():
            yield (
                f"{variable}=$(aws cloudformation list-stack-resources --stack-name {name}-FoundationStack --query"
                f" \"StackResourceSummaries[?ResourceType=='{kind}'].PhysicalResourceId\" --output text)"
            )
        yield (
            "DATABASE_GROUP=$(aws rds describe-db-clusters --db-cluster-identifier $DATABASE"
            " --query 'DBClusters[0].VpcSecurityGroups[0].VpcSecurityGroupId' --output text)"
        )
        yield (
            "DATABASE_SUBNETS=$(aws rds describe-db-subnet-groups --db-subnet-group-name $SUBNET_GROUP"
            " --query 'DBSubnetGroups[0].Subnets[].SubnetIdentifier' --output text)"
        )
    yield (
        f"BUCKETS=$(aws cloudformation list-stack-resources --stack-name {name}-FoundationStack"
        f' --query "{query}" --output text)'
    )


def _unlocked(name: str, stack: str) -> tuple[str, ...]:
    return (
        "aws cloudformation update-termination-protection --no-enable-termination-protection"
        f" --stack-name {name}-{stack} || true",
    )


def _delete_stack(name: str, stack: str) -> tuple[str, ...]:
    return (
        f"aws cloudformation delete-stack --stack-name {name}-{stack}",
        f"aws cloudformation wait stack-delete-complete --stack-name {name}-{stack}",
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
            tuple(
                f"aws fsx describe-backups --filters Name=file-system-id,Values={system}"
                " --query 'Backups[].BackupId' --output text"
                for system in (*(["$LUSTRE"] if lustre and lustre.backups else []), *(["$HOME_SYSTEM"] if home else []))
            ),
        )
    if project.storage.accounting_database is not None:
        yield Step(
            "delete the database of Slurm's accounting; RDS makes a last snapshot",
            "its capacity, by the hour; backups and snapshots, by the GB",
            (
                "aws rds delete-db-instance --db-instance-identifier $DATABASE_INSTANCE --skip-final-snapshot",
                "aws rds wait db-instance-deleted --db-instance-identifier $DATABASE_INSTANCE",
                "aws rds delete-db-cluster --db-cluster-identifier $DATABASE"
                " --final-db-snapshot-identifier $DATABASE-last",
                "aws rds wait db-cluster-deleted --db-cluster-identifier $DATABASE",
                "aws rds delete-db-subnet-group --db-subnet-group-name $SUBNET_GROUP",
                "aws rds delete-db-cluster-parameter-group --db-cluster-parameter-group-name $PARAMETER_GROUP",
                "aws secretsmanager delete-secret --secret-id $SECRET --recovery-window-in-days 30",
            ),
        )
    yield Step(
        "empty and delete the buckets, every version; not yours, nor those that earlier changes left",
        "what is stored, by the GB",
        (f"for bucket in $BUCKETS; do python3 -c '{_EMPTY_BUCKET}' $bucket; done",),
    )
    yield Step(
        "delete the metrics workspace",
        "stored samples, by the GB",
        ("aws amp delete-workspace --workspace-id ${WORKSPACE##*/}",),
    )


# What CloudFormation keeps of a database, and nobody publishes.
_OF_DATABASE = {
    "DATABASE": "AWS::RDS::DBCluster",
    "DATABASE_INSTANCE": "AWS::RDS::DBInstance",
    "SUBNET_GROUP": "AWS::RDS::DBSubnetGroup",
    "PARAMETER_GROUP": "AWS::RDS::DBClusterParameterGroup",
    "SECRET": "AWS::SecretsManager::Secret",
}


def _network(network: Network, *, made_lustre: bool, home: bool, database: bool) -> Iterator[Step]:
    groups = [*(["$LUSTRE_GROUP"] if made_lustre else []), *(["$HOME_GROUP"] if home else [])]
    groups += ["$DATABASE_GROUP"] if database else []
    if network.vpc is None or network.vpc.efa_security_group_id is None:
        groups.append("$EFA_GROUP")  # the others name it in their rules
    if groups:
        yield Step(
            "delete the security groups, once the file systems are gone",
            "",
            tuple(f"aws ec2 delete-security-group --group-id {group}" for group in groups),
        )
    if network.vpc is None:
        subnets = "for subnet in $DATABASE_SUBNETS; do aws ec2 delete-subnet --subnet-id $subnet; done"
        yield Step(
            "delete the subnets and the VPC" if database else "delete the subnet and the VPC",
            "",
            (
                subnets if database else "aws ec2 delete-subnet --subnet-id $SUBNET",  # the primary one among them
                "aws ec2 delete-vpc --vpc-id $VPC",
            ),
        )
