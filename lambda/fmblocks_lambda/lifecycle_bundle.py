"""Unpacks a zip of lifecycle scripts to a prefix of the lifecycle bucket.

Every prefix is named after the hash of its content. Under ``.fmblocks/bundles/<hash>/<owner>`` stands a marker for each
bundle that uses it, written after the last file: a prefix with our marker is whole, and a prefix without any other
marker is ours alone to remove.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

_RETRIES = Config(retries={"mode": "standard", "max_attempts": 10})
_MARKERS = ".fmblocks/bundles/"


def on_event(event: dict[str, Any], _context: object, *, s3: S3Client | None = None) -> dict[str, Any]:
    """Handle one CloudFormation request.

    The physical id stands for the bundle in its bucket: it is the same on every retry, and changes when the bucket
    does, so that CloudFormation deletes what is left in the former one.
    """
    properties = event["ResourceProperties"]
    bucket = properties["Bucket"]
    client = s3 or boto3.client("s3", config=_RETRIES)
    if event["RequestType"] == "Delete":
        owner = event["PhysicalResourceId"]
        _remove(client, bucket, owner)
    else:
        name = "|".join((event["StackId"], event["LogicalResourceId"], bucket))
        owner = "bundle-" + hashlib.sha256(name.encode()).hexdigest()[:32]
        _install(client, bucket, properties["Prefix"], owner, properties["SourceBucket"], properties["SourceKey"])
    return {"PhysicalResourceId": owner}


def _install(s3: S3Client, bucket: str, prefix: str, owner: str, source_bucket: str, source_key: str) -> None:
    marker = f"{_MARKERS}{prefix}/{owner}"
    if marker in _keys(s3, bucket, marker):
        return  # written before; the asset of an earlier deployment may be gone or out of reach
    with tempfile.TemporaryFile() as archive:
        shutil.copyfileobj(s3.get_object(Bucket=source_bucket, Key=source_key)["Body"], archive)
        with zipfile.ZipFile(archive) as files:
            for entry in files.infolist():
                if entry.is_dir():
                    continue
                if entry.filename.startswith("/") or ".." in entry.filename.split("/"):
                    raise ValueError(f"the bundle holds a path that leaves it: {entry.filename}")
                s3.put_object(Bucket=bucket, Key=f"{prefix}/{entry.filename}", Body=files.read(entry))
    s3.put_object(Bucket=bucket, Key=marker, Body=b"")


def _remove(s3: S3Client, bucket: str, owner: str) -> None:
    """Remove the prefixes that ``owner`` wrote; a bucket that is gone has nothing left to remove."""
    try:
        markers = [key.removeprefix(_MARKERS).split("/") for key in _keys(s3, bucket, _MARKERS)]
        for prefix in [parts[0] for parts in markers if parts[-1] == owner]:
            if not any(parts[0] == prefix and parts[-1] != owner for parts in markers):
                for key in _keys(s3, bucket, f"{prefix}/"):
                    s3.delete_object(Bucket=bucket, Key=key)
            s3.delete_object(Bucket=bucket, Key=f"{_MARKERS}{prefix}/{owner}")
    except ClientError as error:
        code = error.response["Error"]["Code"]
        # The bucket of an earlier deployment: the function's role has moved on to the present one.
        left = code == "AccessDenied" and bucket != os.environ.get("BUCKET", bucket)
        if code != "NoSuchBucket" and not left:
            raise


def _keys(s3: S3Client, bucket: str, prefix: str) -> Iterator[str]:
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for item in page.get("Contents", []):
            yield item["Key"]
