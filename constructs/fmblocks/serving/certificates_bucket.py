"""Where HyperPod's inference operator puts the certificates that it makes."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from fmblocks._edge import typed
from fmblocks._handlers import custom_resource, handler_function
from fmblocks._stack_id import end_of_stack_id


class CertificatesBucket(s3.Bucket):
    """A private, encrypted bucket that goes with its stack, with what is in it: certificates are made again.

    Its name begins ``hyperpod-tls-``, since AWS's policy for the operator writes to such buckets only, and ends with a
    part of the stack's id.

    Args:
        project: stands in the name.
        encryption_key: default: S3's own keys.

    Attributes:
        emptied: what empties it; whoever writes into the bucket has to go before.
    """

    @typed
    def __init__(self, scope: Construct, id: str, *, project: str, encryption_key: kms.IKey | None = None) -> None:
        super().__init__(
            scope,
            id,
            bucket_name=f"hyperpod-tls-{project}-{end_of_stack_id(scope)}",
            encryption=s3.BucketEncryption.KMS if encryption_key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=encryption_key,
            bucket_key_enabled=True if encryption_key else None,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        handler = handler_function(
            self,
            "Empty",
            module="emptied_bucket",
            description="Empties a bucket before it is deleted",
            timeout=cdk.Duration.minutes(5),
        )
        list_them, delete_them = ["s3:ListBucketVersions"], ["s3:DeleteObject", "s3:DeleteObjectVersion"]
        handler.add_to_role_policy(iam.PolicyStatement(actions=list_them, resources=[self.bucket_arn]))
        handler.add_to_role_policy(iam.PolicyStatement(actions=delete_them, resources=[self.arn_for_objects("*")]))
        self.emptied = custom_resource(
            self,
            "Emptied",
            handler=handler,
            resource_type="Custom::EmptiedBucket",
            properties={"Bucket": self.bucket_name},
        )
