"""A cluster on EKS: settings in, constructs out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct, IDependable

from fmblocks.capacity.settings import Launch
from fmblocks.cluster.add_ons import HYPERPOD_ADD_ONS, INFERENCE_OPERATOR
from fmblocks.cluster.device_plugins import DevicePlugins
from fmblocks.cluster.eks_cluster import EksAddOn, EksCluster
from fmblocks.cluster.eks_gpu_node_group import EksGpuNodeGroup
from fmblocks.cluster.eks_launch_template import EksLaunchTemplate
from fmblocks.cluster.karpenter import Karpenter
from fmblocks.cluster.karpenter_node_pool import KarpenterNodePool
from fmblocks.cluster.kube_ray import KubeRay
from fmblocks.cluster.kueue import Kueue
from fmblocks.cluster.lustre_volume import LustreVolume
from fmblocks.cluster.prepared import wait_until_ready
from fmblocks.cluster.rules import control_plane_zones_among
from fmblocks.cluster.settings import AddOn, Kubernetes, NodeGroup, NodeRole, Provisioner
from fmblocks.cluster.settings import Cluster as ClusterSettings
from fmblocks.compute.launch_profile import launch_profile
from fmblocks.observability.eks_metrics_collector import EksMetricsCollector
from fmblocks.observability.metrics_workspace import MetricsWorkspace
from fmblocks.observability.settings import Collector, seconds
from fmblocks.project import Project
from fmblocks.serving.settings import Inference, ServingCluster
from fmblocks.storage.lustre_file_system import LustreFileSystem
from fmblocks.storage.lustre_ports import LUSTRE_PORTS
from fmblocks.storage.settings import Lustre
from fmblocks_stacks.contract import Subscriber
from fmblocks_stacks.fleet import GroupParts

# Source: EKS User Guide, *Store S3 objects with Mountpoint for Amazon S3 CSI driver*.
_OBJECTS = ("s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload", "s3:DeleteObject")


class ControlPlane(Construct):
    """The control plane of a project, and what runs on every cluster, whoever brings its nodes.

    Attributes:
        cluster: the control plane.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        project: Project,
        settings: ClusterSettings,
        foundation: Subscriber,
        security_group: ec2.ISecurityGroup,
    ) -> None:
        super().__init__(scope, id)
        self._project, self._wanted, self._foundation = project, settings, foundation
        self._security_group = security_group
        self._kubernetes = settings.kubernetes or Kubernetes()
        self._subnets = self._private_subnets()
        self.cluster = self._cluster()
        work = (group for group in settings.groups if group.role is not NodeRole.SYSTEM)
        self._work = sorted(work, key=lambda group: group.name)
        DevicePlugins(
            self,
            "DevicePlugins",
            cluster=self.cluster,
            types=[name for group in self._work for name in group.every_type],
            image_registry=self._kubernetes.image_registry,
        )
        if project.storage.lustre is not None:
            self._mount(project.storage.lustre)
        self._publish_launch_profiles("default")
        cdk.CfnOutput(self, "ClusterName", value=self.cluster.cluster_name).override_logical_id("ClusterName")
        cdk.CfnOutput(
            self,
            "Kubeconfig",
            value=f"aws eks update-kubeconfig --name {self.cluster.cluster_name} --region {cdk.Aws.REGION}",
            description="what makes kubectl find the cluster",
        ).override_logical_id("Kubeconfig")

    def _private_subnets(self) -> dict[str, ec2.ISubnet]:
        """Those in which the control plane may stand, by zone, in one order whatever the project's."""
        zones = sorted({self._project.network.primary, *control_plane_zones_among(self._project.network.zones)})
        vpc = ec2.Vpc.from_vpc_attributes(
            self,
            "Vpc",
            vpc_id=self._foundation.value("vpc-id"),
            vpc_cidr_block=self._project.network.ipv4_range,
            availability_zones=zones,
            private_subnet_ids=[self._foundation.value(f"subnet/{zone}") for zone in zones],
        )
        for subnet in vpc.private_subnets:
            cdk.Annotations.of(subnet).acknowledge_warning(
                "@aws-cdk/aws-ec2:noSubnetRouteTableId", "nothing here looks at the route table"
            )
        cdk.CfnOutput(self, "VpcId", value=vpc.vpc_id).override_logical_id("VpcId")
        self._vpc = vpc
        return dict(zip(zones, vpc.private_subnets, strict=True))

    def _cluster(self) -> EksCluster:
        settings = self._kubernetes
        (system,) = [one for one in self._wanted.groups if one.role is NodeRole.SYSTEM]
        usable = control_plane_zones_among(self._project.network.zones)
        return EksCluster(
            self,
            "Cluster",
            vpc=self._vpc,
            subnets=[subnet for zone, subnet in self._subnets.items() if zone in usable],
            system_subnet=self._subnets[self._project.network.primary],
            security_group=self._security_group,
            kubernetes_version=self._wanted.kubernetes_version,
            endpoint=settings.endpoint,
            public_access_cidrs=settings.public_access_cidrs,
            service_cidr=settings.service_cidr,
            secrets_encryption_key=kms.Key.from_key_arn(self, "Key", self._foundation.value("key-arn")),
            admins=self._project.access.admins,
            # Those of HyperPod come after its nodes.
            add_ons=[self._add_on(one) for one in settings.add_ons if one.name not in self._later()],
            system_instance_type=system.instance_type,
            system_count=system.count,
            system_volume_gib=system.ebs_volume_gib,
        )

    def _later(self) -> set[str]:
        """Add-ons that come after HyperPod's nodes: its own, and what endpoints bring."""
        inference = self._project.inference
        here = isinstance(self._wanted, Inference) or (
            inference is not None and inference.cluster is ServingCluster.TRAINING
        )
        brought = inference is not None and inference.endpoints and here and self._wanted.orchestrator.hyperpod
        return {*HYPERPOD_ADD_ONS.values(), *([INFERENCE_OPERATOR] if brought else [])}

    def _add_on(self, one: AddOn) -> EksAddOn:
        role = iam.Role.from_role_arn(self, f"Role-{one.name}", one.role_arn, mutable=False) if one.role_arn else None
        values = json.loads(one.configuration_values) if one.configuration_values else None
        return EksAddOn(
            name=one.name,
            version=one.version,
            configuration_values=values,
            role=role,
            service_account=one.service_account,
            namespace=one.namespace,
        )

    def _mount(self, settings: Lustre) -> None:
        file_system = LustreFileSystem.from_lustre_file_system_attributes(
            self,
            "Lustre",
            file_system_id=self._foundation.value("lustre/file-system-id"),
            dns_name=self._foundation.value("lustre/dns-name"),
            mount_name=self._foundation.value("lustre/mount-name"),
            efa_enabled=settings.efa_enabled,
        )
        self._file_system = file_system
        volume = self._claim(settings, "default")
        # Every node carries the cluster's group; the foundation lets that of the fabric in. The rules stand here: the
        # group is the cluster's and goes with it.
        for first, last in LUSTRE_PORTS:
            rule = ec2.CfnSecurityGroupIngress(
                volume,
                f"From{first}",
                group_id=self._foundation.value("lustre/security-group-id"),
                source_security_group_id=self.cluster.cluster_security_group_id,
                ip_protocol="tcp",
                from_port=first,
                to_port=last,
                description="Lustre LNET from the nodes of the cluster",
            )
            volume.manifest.node.add_dependency(rule)
        self._let_s3_driver_in(settings)

    def _claim(self, settings: Lustre, namespace: str, *, after: IDependable | None = None) -> LustreVolume:
        volume = LustreVolume(
            self,
            "Fsx" if namespace == "default" else f"Fsx-{namespace}",
            cluster=self.cluster,
            file_system=self._file_system,
            capacity_gib=settings.capacity_gib or 1200,
            namespace=namespace,
        )
        if after is not None:
            volume.manifest.node.add_dependency(after)
        return volume

    def _let_s3_driver_in(self, settings: Lustre) -> None:
        """Pods mount the buckets that the file system is linked with, too."""
        role = self.cluster.add_on_roles["aws-mountpoint-s3-csi-driver"]
        for link in settings.data_repository_associations:
            place = f"link{link.path.rstrip('/')}/bucket"
            name = link.bucket or self._foundation.value(f"{place}/name")
            bucket = f"arn:{cdk.Aws.PARTITION}:s3:::{name}"
            objects = f"{bucket}/{link.prefix or ''}*"
            role.add_to_principal_policy(iam.PolicyStatement(actions=["s3:ListBucket"], resources=[bucket]))
            role.add_to_principal_policy(iam.PolicyStatement(actions=list(_OBJECTS), resources=[objects]))
            if link.bucket is None:
                key = self._foundation.value(f"{place}/key-arn")
                role.add_to_principal_policy(
                    iam.PolicyStatement(actions=["kms:Decrypt", "kms:GenerateDataKey"], resources=[key])
                )

    def _publish_launch_profiles(self, namespace: str, *, after: IDependable | None = None) -> None:
        """The environment of jobs, for ``envFrom``."""
        found = [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"launch-profile-{group.name}", "namespace": namespace},
                "data": profile,
            }
            for group in self._work
            if (profile := launch_profile(self._project.instance_types[group.instance_type]))
        ]
        if found:
            id = "LaunchProfiles" if namespace == "default" else f"LaunchProfiles-{namespace}"
            manifest = eks.KubernetesManifest(self, id, cluster=cast(eks.ICluster, self.cluster), manifest=found)
            wait_until_ready(manifest, self.cluster)
            if after is not None:
                manifest.node.add_dependency(after)

    def _install_kube_ray(self) -> None:
        if self._kubernetes.kube_ray:
            KubeRay(
                self,
                "KubeRay",
                cluster=self.cluster,
                chart_registry=self._kubernetes.chart_registry,
                image_registry=self._kubernetes.image_registry,
            )


class KubernetesCluster(ControlPlane):
    """A control plane with node groups of the account's own instances."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        project: Project,
        settings: ClusterSettings,
        foundation: Subscriber,
        security_group: ec2.ISecurityGroup,
    ) -> None:
        super().__init__(
            scope, id, project=project, settings=settings, foundation=foundation, security_group=security_group
        )
        karpenter = self._karpenter() if settings.karpenter else None
        nodes = [
            NodesOfGroup(
                self,
                f"Group-{group.name}",
                project=project,
                group=group,
                foundation=foundation,
                security_group=security_group,
                cluster=self.cluster,
                subnet=self._subnets[project.network.primary],
                karpenter=karpenter,
            ).nodes
            for group in self._work
        ]
        if self._kubernetes.kueue and nodes:
            Kueue(
                self,
                "Kueue",
                cluster=self.cluster,
                groups=nodes,
                chart_registry=self._kubernetes.chart_registry,
                image_registry=self._kubernetes.image_registry,
            )
        if project.observability.collector is Collector.AGENTS:
            self._collect(self._work)
        self._install_kube_ray()

    def _karpenter(self) -> Karpenter:
        return Karpenter(self, "Karpenter", cluster=self.cluster, chart_registry=self._kubernetes.chart_registry)

    def _collect(self, groups: Sequence[NodeGroup]) -> None:
        watched = self._project.observability

        def duration(text: str | None) -> cdk.Duration | None:
            return cdk.Duration.seconds(seconds(text)) if text else None

        EksMetricsCollector(
            self,
            "Metrics",
            cluster=self.cluster,
            workspace=MetricsWorkspace.from_workspace_attributes(
                self,
                "Workspace",
                workspace_arn=self._foundation.value("metrics/workspace-arn"),
                prometheus_endpoint=self._foundation.value("metrics/endpoint"),
            ),
            nvidia=any(
                self._project.instance_types[group.instance_type].accelerator_vendor == "nvidia" for group in groups
            ),
            scrape_interval=duration(watched.scrape_interval),
            scrape_timeout=duration(watched.scrape_timeout),
            image_registry=self._kubernetes.image_registry,
        )


class NodesOfGroup(GroupParts):
    """A node group of EKS: managed by EKS, or started by Karpenter when pods ask for it.

    Attributes:
        nodes: which of the two.
    """

    nodes: EksGpuNodeGroup | KarpenterNodePool

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        project: Project,
        group: NodeGroup,
        foundation: Subscriber,
        security_group: ec2.ISecurityGroup,
        cluster: EksCluster,
        subnet: ec2.ISubnet,
        karpenter: Karpenter | None,
    ) -> None:
        super().__init__(scope, id, project=project, group=group, foundation=foundation, security_group=security_group)
        self._publish_launch_profile()
        if group.provisioned_by is Provisioner.KARPENTER:
            assert karpenter is not None
            self.nodes = KarpenterNodePool(
                self,
                "Pool",
                karpenter=karpenter,
                group_name=group.name,
                instance_type=group.instance_type,
                max_count=group.count,
                vpc_subnet=subnet,
                security_groups=self._security_groups,
                capacity=self._capacity,
                placement_group=self._place,
                efa_mode=group.efa.mode,
                efa_interface_count=group.efa.count,
                efa_profile=group.efa.profile,
                root_volume_gib=group.ebs_volume_gib,
                tags={"fmblocks:project": project.name, **project.tags},
            )
            return
        image = group.image
        template = EksLaunchTemplate(
            self,
            "Template",
            cluster=cluster,
            **self._template(),
            image_id=self._image_id(),
            service_cidr=cluster.service_cidr,
            root_device_name=(image.root_device_name if image else None) or "/dev/xvda",
        )
        self.nodes = EksGpuNodeGroup(
            self,
            "Nodes",
            cluster=cluster,
            launch_template=template,
            vpc_subnet=subnet,
            group_name=group.name,
            count=group.count,
            min_count=group.min_count or 0,
            launch=group.capacity.launch or Launch.NOW,
        )
        # Accelerators start last: what fails before them costs little.
        self.nodes.node.add_dependency(cluster.ready)
        self._watch(self.nodes.block_schedule)

    def _image_id(self) -> str | None:
        image = self._image()
        return image.get_image(self).image_id if image else None
