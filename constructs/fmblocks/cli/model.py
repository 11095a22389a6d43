"""``fmblocks model``: weights into the store of a project."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fmblocks.cli.deployed import output_of, session_of, stop
from fmblocks.cli.terminal import tell
from fmblocks.findings import FindingsError
from fmblocks.project import Project
from fmblocks.serving.model_manifest import NAME, File, describe, differing, text
from fmblocks.serving.settings import STORED_MODEL, STORED_MODEL_FORM

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

app = typer.Typer(no_args_is_help=True, help="Weights in the model store of a project.")
_DIGEST = "sha256"


@app.callback()
def _root() -> None:
    """Weights in the model store of a project."""


@app.command()
def push(
    file: Annotated[Path, typer.Argument(help="A project file with storage.model_store.")],
    folder: Annotated[Path, typer.Argument(help="The weights.", exists=True, file_okay=False)],
    model: Annotated[str, typer.Argument(help="Name and version, for example llama-70b/v1.")],
) -> None:
    """Copy a folder of weights into the project's model store, with a manifest of digests.

    The manifest comes last, and no version is written twice: what endpoints start with does not change. A push that
    was broken off goes on where it was, one of the same files does nothing. Hidden files stay behind.
    """
    try:
        project = Project.load(file).project
    except FindingsError as error:
        tell(error.findings, err=True)
        raise typer.Exit(2) from None
    if project.storage.model_store is None:
        stop(f"{file} has no model store: write storage: {{model_store: {{}}}}")
    if not re.fullmatch(STORED_MODEL, model):
        stop(f"{model} is not {STORED_MODEL_FORM}")
    try:
        files = describe(folder)
    except (OSError, ValueError) as error:
        stop(str(error))
    # Only here: boto3 takes longer to load than a file takes to check.
    from boto3.exceptions import S3UploadFailedError
    from botocore.exceptions import BotoCoreError, ClientError

    stack = f"{project.name}-FoundationStack"
    try:
        session = session_of(project)
        bucket = output_of(stack, "ModelStoreBucket", session.client("cloudformation"))
        if bucket is None:
            stop(f"{stack} has no model store yet: npx cdk deploy FoundationStack -c project={file}")
        pushed = copy(session.client("s3"), bucket, f"{model}/", folder, files)
        for name in pushed:
            typer.echo(f"pushed {name}")
    except (BotoCoreError, ClientError, S3UploadFailedError) as error:
        stop(f"AWS does not answer: {error}")
    size = sum(one["bytes"] for one in files.values())
    told = "" if pushed else ", which were there already"
    typer.echo(f"s3://{bucket}/{model}/: {len(files)} files, {size} bytes{told}", err=True)


def copy(s3: S3Client, bucket: str, prefix: str, folder: Path, files: Mapping[str, File]) -> list[str]:
    """Upload what is not there yet, then the manifest; give back what was uploaded: nothing where all was there."""
    there: dict[str, int] = {}
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        there |= {one["Key"].removeprefix(prefix): one["Size"] for one in page.get("Contents", [])}
    if NAME in there:
        there_already = s3.get_object(Bucket=bucket, Key=prefix + NAME)["Body"].read().decode()
        if there_already == text(files):
            return []
        other = ", ".join(differing(there_already, files)[:5]) or NAME
        stop(f"s3://{bucket}/{prefix} is whole already and differs in {other}; versions do not change: push another")
    if strange := sorted(set(there) - set(files)):
        listed = ", ".join(strange[:5])
        stop(f"s3://{bucket}/{prefix} holds what {folder} does not: {listed}; delete it, or push another version")
    done = []
    for name, told in files.items():
        key = prefix + name
        if there.get(name) == told["bytes"]:
            metadata = s3.head_object(Bucket=bucket, Key=key)["Metadata"]
            if metadata.get(_DIGEST) == told["sha256"]:
                continue
        s3.upload_file(str(folder / name), bucket, key, ExtraArgs={"Metadata": {_DIGEST: told["sha256"]}})
        done.append(name)
    s3.put_object(Bucket=bucket, Key=prefix + NAME, Body=text(files).encode(), ContentType="application/json")
    return [*done, NAME]
