"""What is deployed of a project: a session for its account, and outputs of its stacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import typer

from fmblocks.project import Project

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_cloudformation.client import CloudFormationClient


def session_of(project: Project) -> boto3.Session:
    """A session in the project's Region; ends the command where the credentials are of another account."""
    # Only here: boto3 takes longer to load than a file takes to check.
    import boto3

    session = boto3.Session(region_name=project.region)
    identity = session.client("sts").get_caller_identity()["Account"]
    if project.account is not None and identity != project.account:
        stop(f"the credentials are of account {identity}, and the project is for {project.account}")
    return session


def output_of(stack: str, key: str, cloudformation: CloudFormationClient) -> str | None:
    """An output of a stack; None where it has none of that name, or is not deployed."""
    from botocore.exceptions import ClientError

    try:
        outputs = cloudformation.describe_stacks(StackName=stack)["Stacks"][0].get("Outputs", [])
    except ClientError as error:
        # CloudFormation has no code of its own for it.
        if error.response["Error"]["Code"] == "ValidationError" and "does not exist" in str(error):
            return None
        raise
    return next((one["OutputValue"] for one in outputs if one["OutputKey"] == key), None)


def stop(text: str) -> NoReturn:
    """End the command: it could not be done."""
    typer.echo(text, err=True)
    raise typer.Exit(2)
