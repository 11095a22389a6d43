"""What a project's stacks hold right now: python docs/examples/look_around.py projects/x.yaml

Works wherever boto3 finds credentials: in a real account, or behind ``fmblocks local run --``.
"""

from __future__ import annotations

import sys

import boto3
from botocore.exceptions import ClientError

from fmblocks import Project
from fmblocks.project import STACKS_OF_CLUSTERS


def main(file: str) -> None:
    """Print stacks, clusters and fleets, reservations, file systems with their links, and metrics workspaces."""
    project = Project.load(file).project
    name = project.name
    wanted = {f"{name}-FoundationStack", *(f"{name}-{STACKS_OF_CLUSTERS[key]}" for key in project.clusters)}
    cloudformation = boto3.client("cloudformation")
    for part in ("FoundationStack", "CapacityStack", "TrainingStack", "InferenceStack"):
        stack = f"{name}-{part}"
        try:
            found = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
            print(f"{stack:40} {found['StackStatus']}")
            for one in cloudformation.describe_stack_resources(StackName=stack)["StackResources"]:
                if one["ResourceType"] == "AWS::EC2::CapacityReservation":
                    print(f"  reservation {one['PhysicalResourceId']}: bills until the stack goes, used or not")
                if one["ResourceType"].startswith(("AWS::EKS::Cluster", "AWS::EKS::Nodegroup", "AWS::PCS::")):
                    print(f"  {one['ResourceType']:28} {one['PhysicalResourceId']}: {one['ResourceStatus']}")
        except ClientError:
            if stack not in wanted:
                continue  # only some projects have it
            print(f"{stack:40} not deployed")

    sagemaker = boto3.client("sagemaker")
    for cluster in sagemaker.list_clusters()["ClusterSummaries"]:
        print(f"cluster {cluster['ClusterName']}: {cluster['ClusterStatus']}")
        described = sagemaker.describe_cluster(ClusterName=cluster["ClusterArn"])
        for group in described["InstanceGroups"]:
            print(f"  {group['InstanceGroupName']:20} {group['CurrentCount']:4} × {group['InstanceType']}")

    for fleet in boto3.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]:
        print(f"fleet {fleet['AutoScalingGroupName']}: {fleet['DesiredCapacity']} of {fleet['MaxSize']} nodes")

    fsx = boto3.client("fsx")
    for system in fsx.describe_file_systems()["FileSystems"]:
        lustre = system.get("LustreConfiguration")
        mount = f"{system['DNSName']}@tcp:/{lustre['MountName']}" if lustre else f"{system['DNSName']}:/fsx"
        print(f"file system {system['FileSystemId']}: {system['StorageCapacity']} GiB, {mount}")
    for link in fsx.describe_data_repository_associations()["Associations"]:
        print(f"  {link['FileSystemId']} {link['FileSystemPath']} ↔ {link['DataRepositoryPath']}")

    for workspace in boto3.client("amp").list_workspaces()["workspaces"]:
        print(f"metrics workspace {workspace['workspaceId']}: {workspace['status']['statusCode']}")


if __name__ == "__main__":
    main(sys.argv[1])
