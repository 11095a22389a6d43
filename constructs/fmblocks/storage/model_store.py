"""Weights of models in S3, one folder for each model and version."""

from __future__ import annotations

from typing import Protocol

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from fmblocks._edge import fault, typed
from fmblocks.findings import FindingsError
from fmblocks.storage.data_bucket import DataBucket


class IModelStore(Protocol):
    """A store of weights, made here or elsewhere."""

    @property
    def bucket(self) -> s3.IBucket: ...
    def grant_read_model(self, grantee: iam.IGrantable, model: str) -> iam.Grant: ...


def model_prefix(model: str) -> str:
    """Where ``name/version`` lies in the bucket."""
    name, slash, version = model.partition("/")
    if not name or not slash or not version or "/" in version:
        raise FindingsError([fault("model", f"{model} is not name/version", "write one like llama-70b/v1")])
    return f"{model}/"


class ModelStore(Construct):
    """A bucket of weights, kept when its stack goes.

    A version is a folder ``<name>/<version>/`` with a manifest of digests, which ``fmblocks model push`` writes last
    and never over another one: what a version holds does not change. Whoever serves it is granted that folder alone.

    Args:
        encryption_key: default: S3's own keys.
        server_access_logs_bucket: where S3 writes access logs. Default: no access logs.
        noncurrent_version_expiration: how long deleted weights can be brought back. Default: 7 days.
        removal_policy: default RETAIN_ON_UPDATE_OR_DELETE.

    Attributes:
        bucket: the bucket.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        encryption_key: kms.IKey | None = None,
        server_access_logs_bucket: s3.IBucket | None = None,
        noncurrent_version_expiration: cdk.Duration | None = None,
        removal_policy: cdk.RemovalPolicy = cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, id)
        self.bucket: s3.IBucket = DataBucket(
            self,
            "Bucket",
            encryption_key=encryption_key,
            server_access_logs_bucket=server_access_logs_bucket,
            noncurrent_version_expiration=noncurrent_version_expiration,
            removal_policy=removal_policy,
        )

    @staticmethod
    def from_bucket(bucket: s3.IBucket) -> IModelStore:
        """A store in a bucket that was made elsewhere. Nothing is created, nothing is checked."""
        return _Imported(bucket)

    def grant_read_model(self, grantee: iam.IGrantable, model: str) -> iam.Grant:
        """Let ``grantee`` read one version, ``name/version``.

        Raises:
            FindingsError: ``model`` is no such thing.
        """
        return grant_read_folder(self.bucket, grantee, model_prefix(model))


class _Imported:
    def __init__(self, bucket: s3.IBucket) -> None:
        self.bucket = bucket

    def grant_read_model(self, grantee: iam.IGrantable, model: str) -> iam.Grant:
        return grant_read_folder(self.bucket, grantee, model_prefix(model))


def grant_read_folder(bucket: s3.IBucket, grantee: iam.IGrantable, prefix: str) -> iam.Grant:
    """Let ``grantee`` list and read what lies below a prefix, and nothing beside it."""
    grant = iam.Grant.add_to_principal(
        grantee=grantee, actions=["s3:GetObject"], resource_arns=[bucket.arn_for_objects(f"{prefix}*")]
    )
    grant = grant.combine(
        iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["s3:ListBucket"],
            resource_arns=[bucket.bucket_arn],
            conditions={"StringLike": {"s3:prefix": [f"{prefix}*"]}} if prefix else None,
        )
    )
    if bucket.encryption_key is not None:
        grant = grant.combine(bucket.encryption_key.grant(grantee, "kms:Decrypt"))
    return grant
