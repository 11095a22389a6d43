"""Lifecycle scripts in S3, under the hash of what they say."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from fmblocks._edge import check_arguments, typed
from fmblocks._handlers import custom_resource, handler_function
from fmblocks.cluster import rules
from fmblocks.cluster.settings import NodeRole


class LifecycleBundle(Construct):
    """A folder of scripts, unpacked to ``s3://<bucket>/<sha256>/`` before the cluster that runs them.

    Why a custom resource: HyperPod reads loose files under a prefix, CDK uploads an asset as one zip into the bootstrap
    bucket, whose name does not begin ``sagemaker-``, and no CloudFormation resource unpacks one into the other.

    A changed script gets a new prefix, so CloudFormation sees the change and nodes that boot meanwhile find what their
    group names. Old prefixes stay until the bundle is deleted; then those it wrote go, save where another bundle with
    the same scripts still uses them.

    Args:
        bucket: the lifecycle bucket. Its name should begin ``sagemaker-``: the managed policy of HyperPod nodes reads
            only such buckets (rule HP-07). Nodes are granted reading in any case.
        path: the folder.
        on_init_complete: the script of that folder that HyperPod starts once a node is set up.

    Raises:
        FindingsError: rule HP-08.
    """

    @typed
    def __init__(
        self, scope: Construct, id: str, *, bucket: s3.IBucket, path: str | Path, on_init_complete: str
    ) -> None:
        super().__init__(scope, id)
        check_arguments(self, rules.SCRIPTS, {"path": str(path), "on_init_complete": on_init_complete})
        self.bucket = bucket
        self.on_init_complete = on_init_complete
        asset = assets.Asset(self, "Scripts", path=str(path), exclude=["__pycache__"])
        self.prefix = asset.asset_hash

        self.handler = handler_function(
            self,
            "Unpack",
            module="lifecycle_bundle",
            description="Unpacks lifecycle scripts into the lifecycle bucket",
            timeout=cdk.Duration.minutes(5),
            memory_size_mib=512,
            environment={"BUCKET": bucket.bucket_name},
        )
        # Every archive of the bucket, as CDK's own grants do: a grant for this one alone would change with each script,
        # and the function would ask for the new archive before IAM knows.
        self._allow(["s3:GetObject"], asset.bucket.arn_for_objects("*.zip"))
        self._allow(["s3:ListBucket"], bucket.bucket_arn)
        self._allow(["s3:PutObject", "s3:DeleteObject"], bucket.arn_for_objects("*"))
        if bucket.encryption_key is not None:
            bucket.encryption_key.grant(self.handler, "kms:GenerateDataKey", "kms:Decrypt")

        self.resource = custom_resource(
            self,
            "Resource",
            handler=self.handler,
            resource_type="Custom::LifecycleBundle",
            properties={
                "SourceBucket": asset.s3_bucket_name,
                "SourceKey": asset.s3_object_key,
                "Bucket": bucket.bucket_name,
                "Prefix": self.prefix,
            },
        )

    def entry(self, role: NodeRole) -> str:
        """The script that HyperPod starts on nodes of a role: here the same for all."""
        del role
        return self.on_init_complete

    @property
    def source_s3_uri(self) -> str:
        """What ``LifeCycleConfig.SourceS3Uri`` takes. Whoever uses it must depend on this construct."""
        return f"s3://{self.bucket.bucket_name}/{self.prefix}/"

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let ``grantee`` (the nodes' role) read the scripts, old prefixes included: live nodes may still name them."""
        grant = iam.Grant.add_to_principal(
            grantee=grantee, actions=["s3:GetObject"], resource_arns=[self.bucket.arn_for_objects("*")]
        )
        grant = grant.combine(
            iam.Grant.add_to_principal(
                grantee=grantee, actions=["s3:ListBucket"], resource_arns=[self.bucket.bucket_arn]
            )
        )
        if self.bucket.encryption_key is not None:
            grant = grant.combine(self.bucket.encryption_key.grant(grantee, "kms:Decrypt"))
        return grant

    def _allow(self, actions: list[str], resource: str) -> None:
        self.handler.add_to_role_policy(iam.PolicyStatement(actions=actions, resources=[resource]))
