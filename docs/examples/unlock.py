"""Switches termination protection of a project's FoundationStack off: python docs/examples/unlock.py projects/x.yaml

Needed before a wanted destroy, and after a first creation that failed: the CLI switches protection on before the first
change set.
"""

from __future__ import annotations

import sys

import boto3
from botocore.exceptions import ClientError

from fmblocks import Project


def main(file: str) -> None:
    """Unlock the stack."""
    stack = f"{Project.load(file).project.name}-FoundationStack"
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
