"""Deletes a bucket with every version in it: python docs/examples/delete_bucket.py BUCKET"""

from __future__ import annotations

import sys

import boto3


def main(name: str) -> None:
    """Delete all versions, delete markers and parts of uploads, then the bucket."""
    bucket = boto3.resource("s3").Bucket(name)
    bucket.object_versions.delete()
    for upload in bucket.multipart_uploads.all():
        upload.abort()
    bucket.delete()
    print(f"{name} is deleted")


if __name__ == "__main__":
    main(sys.argv[1])
