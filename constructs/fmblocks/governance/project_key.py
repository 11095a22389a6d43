"""The key that a project's data is encrypted with."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from fmblocks._edge import typed

_USE = ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"]


# The role that carries data between a file system and S3; its name ends in the id of the file system.
SERVICE_LINKED_ROLES = "aws-service-role/s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_fs-*"


def data_repositories_statement(scope: Construct, *, region: str | None = None) -> iam.PolicyStatement:
    """What the key of a bucket says, so that file systems of this account can be linked with the bucket.

    The role's name ends in the id of a file system that does not exist yet, so the principal is matched by pattern; a
    missing statement shows as association MISCONFIGURED, AccessDenied. Source: FSx for Lustre User Guide, *Using
    server-side encrypted Amazon S3 buckets*.

    Args:
        scope: of the account of the file systems.
        region: of the bucket. Default: that of the stack.
    """
    stack = cdk.Stack.of(scope)
    role = f"arn:{cdk.Aws.PARTITION}:iam::{stack.account}:role/{SERVICE_LINKED_ROLES}"
    return iam.PolicyStatement(
        sid="FsxDataRepositories",
        principals=[iam.AnyPrincipal()],
        actions=_USE,
        resources=["*"],
        conditions={
            "StringEquals": {
                "kms:ViaService": f"s3.{region or stack.region}.{cdk.Aws.URL_SUFFIX}",
                "kms:CallerAccount": stack.account,
            },
            "ArnLike": {"aws:PrincipalArn": role},
        },
    )


class ProjectKey(kms.Key):
    """A customer-managed KMS key with its whole policy written at once.

    Other stacks import the key, and an imported key takes no statements: whatever a later stack needs must stand here
    from the first day. The account's own statement lets IAM policies grant the key (FSx file systems, EBS, Secrets
    Manager, Aurora, ECR, EKS secrets and Managed Prometheus are used through the caller's permissions). The statements
    below are for those that the account's statement does not reach: service principals and one service-linked role.

    Kept when the stack goes: without it the data is lost. Rotated every year.

    Args:
        description: shown in the console. Default: the stack's name.
        removal_policy: default RETAIN_ON_UPDATE_OR_DELETE.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        description: str | None = None,
        removal_policy: cdk.RemovalPolicy = cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(
            scope,
            id,
            description=description or f"Data of {cdk.Stack.of(scope).stack_name}",
            enable_key_rotation=True,
            removal_policy=removal_policy,
        )
        stack = cdk.Stack.of(self)
        account, region = stack.account, stack.region

        self.add_to_resource_policy(data_repositories_statement(self))
        # CloudWatch Logs User Guide, *Encrypt log data in CloudWatch Logs using AWS KMS*.
        self._allow(
            "CloudWatchLogs",
            iam.ServicePrincipal(f"logs.{region}.amazonaws.com"),
            ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:Describe*"],
            {
                "ArnLike": {
                    "kms:EncryptionContext:aws:logs:arn": f"arn:{cdk.Aws.PARTITION}:logs:{region}:{account}:log-group:*"
                }
            },
        )
        publish = ["kms:GenerateDataKey*", "kms:Decrypt"]
        # SNS Developer Guide, *Key management*. An alarm that cannot use the topic's key is dropped in silence.
        self._allow(
            "CloudWatchAlarms",
            iam.ServicePrincipal("cloudwatch.amazonaws.com"),
            publish,
            {
                "StringEquals": {"aws:SourceAccount": account},
                "ArnLike": {
                    "aws:SourceArn": f"arn:{cdk.Aws.PARTITION}:cloudwatch:{region}:{account}:alarm:*",
                },
            },
        )
        # Managed Prometheus User Guide, *Giving Amazon Managed Service for Prometheus permission to send alert messages
        # to your Amazon SNS topic*; Cost Management guide, *Creating an Amazon SNS topic for budget notifications*; SNS
        # Developer Guide: source conditions "are not supported for EventBridge-to-encrypted topics". AWS shows none for
        # the other two either; the topics' own policies name the account.
        for name in ("aps", "budgets", "events"):
            self._allow(f"Topics{name.capitalize()}", iam.ServicePrincipal(f"{name}.amazonaws.com"), publish, {})
        # EC2 Auto Scaling User Guide, *Required AWS KMS key policy for use with encrypted volumes*. The service-linked
        # role may not exist yet, and KMS refuses a policy with an unknown principal: matched by ARN as above.
        scaling = (
            f"arn:{cdk.Aws.PARTITION}:iam::{account}:role/aws-service-role/"
            "autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling*"
        )
        whose: dict[str, object] = {
            "StringEquals": {"kms:CallerAccount": account},
            "ArnLike": {"aws:PrincipalArn": scaling},
        }
        self._allow("AutoScalingVolumes", iam.AnyPrincipal(), _USE, whose)
        granted: dict[str, object] = {"Bool": {"kms:GrantIsForAWSResource": "true"}}
        self._allow("AutoScalingGrants", iam.AnyPrincipal(), ["kms:CreateGrant"], {**whose, **granted})

    def _allow(self, sid: str, principal: iam.IPrincipal, actions: list[str], conditions: dict[str, object]) -> None:
        # In a key policy "*" means this key.
        self.add_to_resource_policy(
            iam.PolicyStatement(
                sid=sid, principals=[principal], actions=actions, resources=["*"], conditions=conditions
            )
        )
