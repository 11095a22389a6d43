"""What stacks with a cluster have in common: what they read of the foundation."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from fmblocks.cluster.lifecycle_bundle import LifecycleBundle
from fmblocks.cluster.settings import Cluster
from fmblocks.governance.project_budget import ProjectBudget
from fmblocks.observability.metrics_workspace import IMetricsWorkspace, MetricsWorkspace
from fmblocks.project import Project
from fmblocks.storage.lustre_file_system import ILustreFileSystem, LustreFileSystem
from fmblocks_stacks.contract import Subscriber


class ClusterStack(cdk.Stack):
    """A stack on a foundation's network and storage, destroyed and rebuilt without touching data.

    Args:
        project: the project.
        purpose: what the cluster is for, in a word or two.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        project: Project,
        purpose: str,
        stack_name: str,
        env: cdk.Environment | None = None,
    ) -> None:
        super().__init__(scope, id, stack_name=stack_name, env=env, description=f"{project.name}: {purpose} (fmblocks)")
        self.node.set_context("fmblocks:suppress", sorted(project.suppressed))
        self.node.set_context("fmblocks:catalog", [entry.row() for entry in project.catalog])
        self._project = project
        self._foundation = Subscriber(self, foundation=project.name)

    def _budget(self) -> None:
        """What the project may cost, over what carries its tag."""
        if (budget := self._project.budget) is not None:
            ProjectBudget(
                self, "Budget", monthly_usd=budget.monthly_usd, email=budget.email, tag_value=self._project.name
            )

    def _primary_subnet(self) -> ec2.ISubnet:
        zone = self._project.network.primary
        subnet = ec2.Subnet.from_subnet_id(self, "Subnet", self._foundation.value(f"subnet/{zone}"))
        cdk.Annotations.of(subnet).acknowledge_warning(
            "@aws-cdk/aws-ec2:noSubnetRouteTableId", "nothing here looks at the route table"
        )
        return subnet

    def _fabric(self) -> ec2.ISecurityGroup:
        return ec2.SecurityGroup.from_security_group_id(
            self, "EfaGroup", self._foundation.value("efa-security-group-id"), mutable=False
        )

    def _metrics(self) -> IMetricsWorkspace:
        """The foundation's workspace. Exporters on the nodes write with the nodes' roles."""
        return MetricsWorkspace.from_workspace_attributes(
            self,
            "Metrics",
            workspace_arn=self._foundation.value("metrics/workspace-arn"),
            prometheus_endpoint=self._foundation.value("metrics/endpoint"),
        )

    def _key(self) -> kms.IKey:
        return kms.Key.from_key_arn(self, "Key", self._foundation.value("key-arn"))

    def _file_system(self) -> ILustreFileSystem:
        return LustreFileSystem.from_lustre_file_system_attributes(
            self,
            "Lustre",
            file_system_id=self._foundation.value("lustre/file-system-id"),
            dns_name=self._foundation.value("lustre/dns-name"),
            mount_name=self._foundation.value("lustre/mount-name"),
            efa_enabled=bool(self._project.storage.lustre and self._project.storage.lustre.efa_enabled),
        )

    def _own_scripts(self, wanted: Cluster, folder: Path) -> tuple[Path, str] | None:
        """The folder of scripts that the project brings, and the one that is started."""
        scripts = wanted.lifecycle_scripts
        return (folder / scripts.path, scripts.on_init_complete) if scripts else None

    def _plain_bundle(self, own: tuple[Path, str] | None) -> LifecycleBundle | None:
        """Those scripts where nodes find them."""
        if own is None:
            return None  # the image alone: nothing to be fetched while a node boots
        path, entry = own
        return LifecycleBundle(
            self, "LifecycleScripts", bucket=self._lifecycle_bucket(), path=path, on_init_complete=entry
        )

    def _lifecycle_bucket(self) -> s3.IBucket:
        return s3.Bucket.from_bucket_attributes(
            self,
            "LifecycleBucket",
            bucket_name=self._foundation.value("bucket/lifecycle/name"),
            encryption_key=kms.Key.from_key_arn(
                self, "LifecycleKey", self._foundation.value("bucket/lifecycle/key-arn")
            ),
        )
