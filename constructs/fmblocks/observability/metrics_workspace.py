"""An Amazon Managed Service for Prometheus workspace."""

from __future__ import annotations

from typing import Protocol

import aws_cdk as cdk
from aws_cdk import aws_aps as aps
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from fmblocks._edge import check_arguments, typed
from fmblocks.observability import rules

# Source: Managed Prometheus User Guide, *IAM permissions and policies* (AmazonPrometheusRemoteWriteAccess,
# AmazonPrometheusQueryAccess).
_WRITE = ("aps:RemoteWrite",)
_QUERY = ("aps:QueryMetrics", "aps:GetSeries", "aps:GetLabels", "aps:GetMetricMetadata")


class IMetricsWorkspace(Protocol):
    """A workspace that metrics are written to, made here or elsewhere."""

    @property
    def workspace_arn(self) -> str: ...
    @property
    def prometheus_endpoint(self) -> str: ...
    def grant_remote_write(self, grantee: iam.IGrantable) -> iam.Grant: ...
    def grant_query(self, grantee: iam.IGrantable) -> iam.Grant: ...


class MetricsWorkspace(cdk.Resource):
    """A workspace, kept when its stack goes: its samples are data.

    Args:
        retention_days: how long samples are kept, 1 to 1095 days. Default: 150.
        alias: a label, which need not be unique. Default: the stack's name.
        kms_key: create-only. The encryption guide says that AWS managed collectors cannot use a workspace with a
            customer key. Default: a key that AWS owns.
        removal_policy: default RETAIN_ON_UPDATE_OR_DELETE.

    Raises:
        FindingsError: rule FMB-15.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        retention_days: int = 150,
        alias: str | None = None,
        kms_key: kms.IKey | None = None,
        removal_policy: cdk.RemovalPolicy = cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, id)
        check_arguments(self, rules.RULES, {"retention_days": retention_days})
        self.resource = aps.CfnWorkspace(
            self,
            "Resource",
            alias=alias or cdk.Stack.of(self).stack_name,
            kms_key_arn=kms_key.key_arn if kms_key else None,
            workspace_configuration=aps.CfnWorkspace.WorkspaceConfigurationProperty(
                retention_period_in_days=retention_days
            ),
        )
        self.resource.apply_removal_policy(removal_policy)

    @property
    def workspace_arn(self) -> str:
        """The ARN."""
        return self.resource.attr_arn

    @property
    def prometheus_endpoint(self) -> str:
        """The endpoint, ending in a slash; remote write goes to ``api/v1/remote_write`` below it."""
        return self.resource.attr_prometheus_endpoint

    @staticmethod
    def from_workspace_attributes(
        scope: Construct, id: str, *, workspace_arn: str, prometheus_endpoint: str | None = None
    ) -> IMetricsWorkspace:
        """A workspace that was made elsewhere. Nothing is created, nothing is checked.

        Without its endpoint that of the stack's Region is taken, as AWS builds it.
        """
        return _Imported(scope, id, workspace_arn, prometheus_endpoint)

    def grant_remote_write(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let ``grantee`` write samples."""
        return _grant(self.workspace_arn, grantee, _WRITE)

    def grant_query(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let ``grantee`` read samples."""
        return _grant(self.workspace_arn, grantee, _QUERY)


def workspace_address(scope: Construct, workspace: IMetricsWorkspace) -> str:
    """Where a workspace is reached, without the slash that ends its own endpoint: what is added begins with one."""
    name = cdk.Fn.select(1, cdk.Fn.split("/", workspace.workspace_arn))
    return f"https://aps-workspaces.{cdk.Stack.of(scope).region}.{cdk.Aws.URL_SUFFIX}/workspaces/{name}"


class _Imported(cdk.Resource):
    def __init__(self, scope: Construct, id: str, workspace_arn: str, prometheus_endpoint: str | None) -> None:
        super().__init__(scope, id, environment_from_arn=workspace_arn)
        self.workspace_arn = workspace_arn
        self.prometheus_endpoint = prometheus_endpoint or f"{workspace_address(self, self)}/"

    def grant_remote_write(self, grantee: iam.IGrantable) -> iam.Grant:
        return _grant(self.workspace_arn, grantee, _WRITE)

    def grant_query(self, grantee: iam.IGrantable) -> iam.Grant:
        return _grant(self.workspace_arn, grantee, _QUERY)


def _grant(workspace_arn: str, grantee: iam.IGrantable, actions: tuple[str, ...]) -> iam.Grant:
    return iam.Grant.add_to_principal(grantee=grantee, actions=list(actions), resource_arns=[workspace_arn])
