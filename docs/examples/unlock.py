"""Switches termination protection of a project's stacks off: python docs/examples/unlock.py projects/x.yaml

Needed before a wanted destroy, and after a first creation that failed: the CLI switches protection on before the first
change set.
"""

from __future__ import annotations

import sys

import boto3
from botocore.exceptions import ClientError

from fmblocks import Project


def main(file: str) -> None:
    """Unlock what is locked: the foundation, and reserved capacity where the project creates some."""
    project = Project.load(file).project
    groups = [group for cluster in project.clusters.values() for group in cluster.node_groups]
    reserved = any(group.capacity.create is not None for group in groups)
    for stack in ("FoundationStack", *(["CapacityStack"] if reserved else [])):
        unlock(f"{project.name}-{stack}")


def unlock(stack: str) -> None:
    """Unlock one stack; one that is not there is told."""
    try:
        boto3.client("cloudformation").update_termination_protection(StackName=stack, EnableTerminationProtection=False)
    except ClientError as error:
        if "does not exist" not in str(error):
            raise
        print(f"{stack}: not deployed, nothing to unlock")
    else:
        print(f"{stack}: termination protection is off")


if __name__ == "__main__":
    main(sys.argv[1])
