"""Empties a bucket that goes with its stack: CloudFormation deletes empty ones only.

Nothing happens before the deletion. What is half done is finished by the next request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef

_RETRIES = Config(retries={"mode": "standard", "max_attempts": 10})


def on_event(event: dict[str, Any], _context: object, *, s3: S3Client | None = None) -> dict[str, Any]:
    """Handle one CloudFormation request."""
    bucket = event["ResourceProperties"]["Bucket"]
    if event["RequestType"] == "Delete":
        _empty(s3 or boto3.client("s3", config=_RETRIES), bucket)
    return {"PhysicalResourceId": bucket}


def _empty(s3: S3Client, bucket: str) -> None:
    """Delete every version and every marker; a bucket that is gone has none."""
    try:
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
            listed: list[ObjectIdentifierTypeDef] = [
                {"Key": one["Key"], "VersionId": one["VersionId"]}
                for one in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
            ]
            if listed:
                failed = s3.delete_objects(Bucket=bucket, Delete={"Objects": listed, "Quiet": True}).get("Errors", [])
                if failed:
                    raise RuntimeError(f"{len(failed)} objects stay, the first: {failed[0]}")
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchBucket":
            raise
