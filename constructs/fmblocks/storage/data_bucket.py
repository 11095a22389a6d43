"""Buckets for data, checkpoints and scripts, and for the logs about them."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from fmblocks._edge import typed

# A multipart upload that was given up bills like data and shows in no listing.
_ABORT = s3.LifecycleRule(abort_incomplete_multipart_upload_after=cdk.Duration.days(7))


class DataBucket(s3.Bucket):
    """A private, encrypted, versioned bucket that outlives its stack.

    TLS only, public access blocked, ownership enforced, SSE-KMS with a bucket key when a key is given (else SSE-S3).
    It is an ``s3.IBucket``: grants and events work as on any bucket.

    Args:
        encryption_key: default: S3's own keys.
        server_access_logs_bucket: where S3 writes access logs; a :class:`LogBucket`. Default: no access logs.
        intelligent_tiering_after: objects of this age move to S3 Intelligent-Tiering, which moves what nobody reads to
            cheaper tiers and answers at once. Default: they stay in S3 Standard.
        noncurrent_version_expiration: how long overwritten and deleted objects can be brought back. Default: 7 days.
        bucket_name: default: chosen by CloudFormation.
        removal_policy: default RETAIN_ON_UPDATE_OR_DELETE.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        encryption_key: kms.IKey | None = None,
        server_access_logs_bucket: s3.IBucket | None = None,
        intelligent_tiering_after: cdk.Duration | None = None,
        noncurrent_version_expiration: cdk.Duration | None = None,
        bucket_name: str | None = None,
        removal_policy: cdk.RemovalPolicy = cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        expire = s3.LifecycleRule(
            noncurrent_version_expiration=noncurrent_version_expiration or cdk.Duration.days(7),
            expired_object_delete_marker=True,
        )
        tiers = (
            [
                s3.LifecycleRule(
                    transitions=[
                        s3.Transition(
                            storage_class=s3.StorageClass.INTELLIGENT_TIERING,
                            transition_after=intelligent_tiering_after,
                        )
                    ]
                )
            ]
            if intelligent_tiering_after is not None
            else []
        )
        super().__init__(
            scope,
            id,
            bucket_name=bucket_name,
            encryption=s3.BucketEncryption.KMS if encryption_key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=encryption_key,
            bucket_key_enabled=True if encryption_key else None,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            versioned=True,
            lifecycle_rules=[_ABORT, expire, *tiers],
            server_access_logs_bucket=server_access_logs_bucket,
            server_access_logs_prefix=f"{id}/" if server_access_logs_bucket else None,
            removal_policy=removal_policy,
        )
        # A kept bucket keeps its policy: TLS only must not end with the stack.
        cdk.RemovalPolicies.of(self).apply(removal_policy)


class LogBucket(s3.Bucket):
    """A bucket that S3 writes access logs into.

    SSE-S3: server access logs cannot be delivered to an SSE-KMS bucket (S3 User Guide, *Enabling Amazon S3 server
    access logging*). Plain RETAIN: S3 writes into it within minutes, so not even a failed first creation could delete
    it.

    Args:
        expiration: how long logs are kept. Default: 90 days.
    """

    @typed
    def __init__(self, scope: Construct, id: str, *, expiration: cdk.Duration | None = None) -> None:
        super().__init__(
            scope,
            id,
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            lifecycle_rules=[_ABORT, s3.LifecycleRule(expiration=expiration or cdk.Duration.days(90))],
            removal_policy=cdk.RemovalPolicy.RETAIN,
        )
        cdk.RemovalPolicies.of(self).apply(cdk.RemovalPolicy.RETAIN)
