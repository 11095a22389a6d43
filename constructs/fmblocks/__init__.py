"""Building blocks for foundation-model clusters on AWS, as AWS CDK constructs.

Names load when they are first used: ``import fmblocks`` alone imports neither aws_cdk nor pydantic, so the command
line answers at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fmblocks.capacity.bought import CapacityBlock as CapacityBlock
    from fmblocks.capacity.bought import ICapacity as ICapacity
    from fmblocks.capacity.bought import OnDemandCapacity as OnDemandCapacity
    from fmblocks.capacity.bought import SpotCapacity as SpotCapacity
    from fmblocks.capacity.bought import TrainingPlan as TrainingPlan
    from fmblocks.capacity.capacity_reservation import CapacityReservation as CapacityReservation
    from fmblocks.capacity.capacity_reservation_group import CapacityReservationGroup as CapacityReservationGroup
    from fmblocks.capacity.settings import CapacityMode as CapacityMode
    from fmblocks.capacity.settings import Launch as Launch
    from fmblocks.capacity.settings import Match as Match
    from fmblocks.capacity.settings import Tenancy as Tenancy
    from fmblocks.cluster.compute_quota import ComputeQuota as ComputeQuota
    from fmblocks.cluster.compute_quota import QuotaOfType
    from fmblocks.cluster.device_plugins import DevicePlugins as DevicePlugins
    from fmblocks.cluster.eks_cluster import EksAddOn
    from fmblocks.cluster.eks_cluster import EksCluster as EksCluster
    from fmblocks.cluster.eks_cluster_access import EksClusterAccess as EksClusterAccess
    from fmblocks.cluster.eks_gpu_node_group import EksGpuNodeGroup as EksGpuNodeGroup
    from fmblocks.cluster.eks_launch_template import EksLaunchTemplate as EksLaunchTemplate
    from fmblocks.cluster.hyperpod_access import HyperPodAccess as HyperPodAccess
    from fmblocks.cluster.hyperpod_add_ons import HyperPodAddOns as HyperPodAddOns
    from fmblocks.cluster.hyperpod_cluster import HyperPodCluster
    from fmblocks.cluster.hyperpod_cluster import IHyperPodCluster as IHyperPodCluster
    from fmblocks.cluster.hyperpod_dependencies import HyperPodDependencies as HyperPodDependencies
    from fmblocks.cluster.hyperpod_eks_cluster import HyperPodEksCluster as HyperPodEksCluster
    from fmblocks.cluster.hyperpod_eks_cluster import RestrictedInstanceGroup
    from fmblocks.cluster.hyperpod_instance_group import EksInstanceGroup, HyperPodInstanceGroup, NodePatching
    from fmblocks.cluster.hyperpod_instance_group import SlurmInstanceGroup as SlurmInstanceGroup
    from fmblocks.cluster.hyperpod_node_pool import HyperPodNodePool as HyperPodNodePool
    from fmblocks.cluster.hyperpod_ready import HyperPodReady as HyperPodReady
    from fmblocks.cluster.hyperpod_slurm_cluster import HyperPodSlurmCluster as HyperPodSlurmCluster
    from fmblocks.cluster.karpenter import Karpenter as Karpenter
    from fmblocks.cluster.karpenter_node_pool import KarpenterNodePool as KarpenterNodePool
    from fmblocks.cluster.kube_ray import KubeRay as KubeRay
    from fmblocks.cluster.kueue import Kueue as Kueue
    from fmblocks.cluster.lifecycle_bundle import LifecycleBundle as LifecycleBundle
    from fmblocks.cluster.lustre_volume import LustreVolume as LustreVolume
    from fmblocks.cluster.node_group import INodeGroup
    from fmblocks.cluster.pcs_cluster import IPcsCluster
    from fmblocks.cluster.pcs_cluster import PcsCluster as PcsCluster
    from fmblocks.cluster.pcs_compute_node_group import PcsComputeNodeGroup as PcsComputeNodeGroup
    from fmblocks.cluster.pcs_launch_template import PcsLaunchTemplate as PcsLaunchTemplate
    from fmblocks.cluster.pcs_queue import PcsQueue as PcsQueue
    from fmblocks.cluster.scheduler_policy import SchedulerPolicy as SchedulerPolicy
    from fmblocks.cluster.settings import (
        ControllerSize,
        DeepHealthCheck,
        EndpointAccess,
        HyperPodAddOn,
        PatchingStrategy,
        TieredStorage,
    )
    from fmblocks.cluster.settings import NodeProvisioning as NodeProvisioning
    from fmblocks.cluster.settings import NodeRecovery as NodeRecovery
    from fmblocks.cluster.settings import NodeRole as NodeRole
    from fmblocks.cluster.slurm_lifecycle_bundle import SlurmLifecycleBundle as SlurmLifecycleBundle
    from fmblocks.cluster.slurm_lifecycle_bundle import SlurmUser
    from fmblocks.cluster.team_access import TeamAccess as TeamAccess
    from fmblocks.cluster.team_access import TeamMembers
    from fmblocks.compute.efa_launch_template import EfaLaunchTemplate as EfaLaunchTemplate
    from fmblocks.compute.efa_placement_group import EfaPlacementGroup as EfaPlacementGroup
    from fmblocks.compute.fixed_image import FixedImage as FixedImage
    from fmblocks.compute.gpu_fleet import GpuFleet as GpuFleet
    from fmblocks.compute.settings import EfaMode as EfaMode
    from fmblocks.compute.settings import InstancePlatform as InstancePlatform
    from fmblocks.compute.settings import InterfaceType as InterfaceType
    from fmblocks.compute.settings import NetworkInterface as NetworkInterface
    from fmblocks.compute.settings import NetworkInterfaceType as NetworkInterfaceType
    from fmblocks.compute.settings import Profile as Profile
    from fmblocks.findings import Finding as Finding
    from fmblocks.findings import FindingsError as FindingsError
    from fmblocks.governance.project_budget import ProjectBudget as ProjectBudget
    from fmblocks.governance.project_key import ProjectKey as ProjectKey
    from fmblocks.governance.settings import Preemption
    from fmblocks.governance.settings import Sharing as Sharing
    from fmblocks.network.addresses import ZoneAddresses as ZoneAddresses
    from fmblocks.network.cluster_vpc import ClusterVpc as ClusterVpc
    from fmblocks.network.cluster_vpc import IClusterVpc, PrivateSubnet
    from fmblocks.network.efa_security_group import EfaSecurityGroup as EfaSecurityGroup
    from fmblocks.network.interface_endpoints import InterfaceEndpoints as InterfaceEndpoints
    from fmblocks.observability.alert_topic import AlertTopic as AlertTopic
    from fmblocks.observability.eks_metrics_collector import EksMetricsCollector as EksMetricsCollector
    from fmblocks.observability.metrics_workspace import IMetricsWorkspace as IMetricsWorkspace
    from fmblocks.observability.metrics_workspace import MetricsWorkspace as MetricsWorkspace
    from fmblocks.project import Project as Project
    from fmblocks.serving.certificates_bucket import CertificatesBucket as CertificatesBucket
    from fmblocks.serving.hyperpod_inference_operator import HyperPodInferenceOperator as HyperPodInferenceOperator
    from fmblocks.serving.hyperpod_model_endpoint import HyperPodModelEndpoint as HyperPodModelEndpoint
    from fmblocks.serving.keda import Keda as Keda
    from fmblocks.serving.leader_worker_sets import LeaderWorkerSets as LeaderWorkerSets
    from fmblocks.serving.model_endpoint import ModelEndpoint as ModelEndpoint
    from fmblocks.serving.settings import Endpoint as Endpoint
    from fmblocks.storage.accounting_database import AccountingDatabase as AccountingDatabase
    from fmblocks.storage.accounting_database import IAccountingDatabase
    from fmblocks.storage.data_bucket import DataBucket as DataBucket
    from fmblocks.storage.data_bucket import LogBucket as LogBucket
    from fmblocks.storage.data_release_schedule import DataReleaseSchedule as DataReleaseSchedule
    from fmblocks.storage.data_repository_association import DataRepositoryAssociation as DataRepositoryAssociation
    from fmblocks.storage.lustre_alarms import LustreAlarms as LustreAlarms
    from fmblocks.storage.lustre_file_system import DataRepositoryPublisher as DataRepositoryPublisher
    from fmblocks.storage.lustre_file_system import ILustreFileSystem as ILustreFileSystem
    from fmblocks.storage.lustre_file_system import LustreFileSystem as LustreFileSystem
    from fmblocks.storage.lustre_security_group import LustreSecurityGroup as LustreSecurityGroup
    from fmblocks.storage.model_store import IModelStore
    from fmblocks.storage.model_store import ModelStore as ModelStore
    from fmblocks.storage.open_zfs_file_system import IOpenZfsFileSystem as IOpenZfsFileSystem
    from fmblocks.storage.open_zfs_file_system import OpenZfsFileSystem as OpenZfsFileSystem
    from fmblocks.storage.open_zfs_security_group import OpenZfsSecurityGroup as OpenZfsSecurityGroup
    from fmblocks.storage.settings import DataCompressionType as DataCompressionType
    from fmblocks.storage.settings import DataRepositoryEvent as DataRepositoryEvent
    from fmblocks.storage.settings import DeploymentType as DeploymentType
    from fmblocks.storage.settings import DriveCacheType as DriveCacheType
    from fmblocks.storage.settings import LustreLogLevel as LustreLogLevel
    from fmblocks.storage.settings import LustreMetadataMode as LustreMetadataMode
    from fmblocks.storage.settings import OpenZfsCompressionType as OpenZfsCompressionType
    from fmblocks.storage.settings import OpenZfsDeploymentType as OpenZfsDeploymentType
    from fmblocks.storage.settings import ReadCacheSizingMode as ReadCacheSizingMode
    from fmblocks.storage.settings import StorageType as StorageType

_HOMES = {
    "ProjectBudget": "governance.project_budget",
    "CertificatesBucket": "serving.certificates_bucket",
    "Endpoint": "serving.settings",
    "HyperPodModelEndpoint": "serving.hyperpod_model_endpoint",
    "HyperPodInferenceOperator": "serving.hyperpod_inference_operator",
    "ModelEndpoint": "serving.model_endpoint",
    "LeaderWorkerSets": "serving.leader_worker_sets",
    "Keda": "serving.keda",
    "EksClusterAccess": "cluster.eks_cluster_access",
    "IModelStore": "storage.model_store",
    "ModelStore": "storage.model_store",
    "TeamMembers": "cluster.team_access",
    "DeepHealthCheck": "cluster.settings",
    "HyperPodAccess": "cluster.hyperpod_access",
    "SlurmUser": "cluster.slurm_lifecycle_bundle",
    "SlurmLifecycleBundle": "cluster.slurm_lifecycle_bundle",
    "IAccountingDatabase": "storage.accounting_database",
    "AccountingDatabase": "storage.accounting_database",
    "TieredStorage": "cluster.settings",
    "Preemption": "governance.settings",
    "Sharing": "governance.settings",
    "TeamAccess": "cluster.team_access",
    "SchedulerPolicy": "cluster.scheduler_policy",
    "QuotaOfType": "cluster.compute_quota",
    "ComputeQuota": "cluster.compute_quota",
    "HyperPodNodePool": "cluster.hyperpod_node_pool",
    "PatchingStrategy": "cluster.settings",
    "HyperPodAddOn": "cluster.settings",
    "HyperPodAddOns": "cluster.hyperpod_add_ons",
    "HyperPodReady": "cluster.hyperpod_ready",
    "HyperPodDependencies": "cluster.hyperpod_dependencies",
    "RestrictedInstanceGroup": "cluster.hyperpod_eks_cluster",
    "HyperPodEksCluster": "cluster.hyperpod_eks_cluster",
    "NodePatching": "cluster.hyperpod_instance_group",
    "EksInstanceGroup": "cluster.hyperpod_instance_group",
    "HyperPodInstanceGroup": "cluster.hyperpod_instance_group",
    "HyperPodCluster": "cluster.hyperpod_cluster",
    "EksMetricsCollector": "observability.eks_metrics_collector",
    "ControllerSize": "cluster.settings",
    "EndpointAccess": "cluster.settings",
    "PcsQueue": "cluster.pcs_queue",
    "PcsComputeNodeGroup": "cluster.pcs_compute_node_group",
    "PcsLaunchTemplate": "cluster.pcs_launch_template",
    "IPcsCluster": "cluster.pcs_cluster",
    "PcsCluster": "cluster.pcs_cluster",
    "KarpenterNodePool": "cluster.karpenter_node_pool",
    "Karpenter": "cluster.karpenter",
    "KubeRay": "cluster.kube_ray",
    "INodeGroup": "cluster.node_group",
    "Kueue": "cluster.kueue",
    "LustreVolume": "cluster.lustre_volume",
    "DevicePlugins": "cluster.device_plugins",
    "EksGpuNodeGroup": "cluster.eks_gpu_node_group",
    "EksLaunchTemplate": "cluster.eks_launch_template",
    "EksAddOn": "cluster.eks_cluster",
    "EksCluster": "cluster.eks_cluster",
    "OpenZfsCompressionType": "storage.settings",
    "OpenZfsDeploymentType": "storage.settings",
    "OpenZfsSecurityGroup": "storage.open_zfs_security_group",
    "IOpenZfsFileSystem": "storage.open_zfs_file_system",
    "OpenZfsFileSystem": "storage.open_zfs_file_system",
    "DataRepositoryPublisher": "storage.lustre_file_system",
    "LustreLogLevel": "storage.settings",
    "AlertTopic": "observability.alert_topic",
    "LustreAlarms": "storage.lustre_alarms",
    "DataReleaseSchedule": "storage.data_release_schedule",
    "PrivateSubnet": "network.cluster_vpc",
    "IClusterVpc": "network.cluster_vpc",
    "InterfaceEndpoints": "network.interface_endpoints",
    "TrainingPlan": "capacity.bought",
    "Tenancy": "capacity.settings",
    "SpotCapacity": "capacity.bought",
    "Profile": "compute.settings",
    "OnDemandCapacity": "capacity.bought",
    "NetworkInterfaceType": "compute.settings",
    "NetworkInterface": "compute.settings",
    "Match": "capacity.settings",
    "Launch": "capacity.settings",
    "InterfaceType": "compute.settings",
    "InstancePlatform": "compute.settings",
    "ICapacity": "capacity.bought",
    "GpuFleet": "compute.gpu_fleet",
    "FixedImage": "compute.fixed_image",
    "EfaPlacementGroup": "compute.efa_placement_group",
    "EfaMode": "compute.settings",
    "EfaLaunchTemplate": "compute.efa_launch_template",
    "CapacityReservation": "capacity.capacity_reservation",
    "CapacityReservationGroup": "capacity.capacity_reservation_group",
    "CapacityBlock": "capacity.bought",
    "ReadCacheSizingMode": "storage.settings",
    "DriveCacheType": "storage.settings",
    "DataCompressionType": "storage.settings",
    "CapacityMode": "capacity.settings",
    "ClusterVpc": "network.cluster_vpc",
    "DataBucket": "storage.data_bucket",
    "DataRepositoryAssociation": "storage.data_repository_association",
    "DeploymentType": "storage.settings",
    "EfaSecurityGroup": "network.efa_security_group",
    "DataRepositoryEvent": "storage.settings",
    "Finding": "findings",
    "FindingsError": "findings",
    "HyperPodSlurmCluster": "cluster.hyperpod_slurm_cluster",
    "IHyperPodCluster": "cluster.hyperpod_cluster",
    "ILustreFileSystem": "storage.lustre_file_system",
    "IMetricsWorkspace": "observability.metrics_workspace",
    "LifecycleBundle": "cluster.lifecycle_bundle",
    "LogBucket": "storage.data_bucket",
    "LustreFileSystem": "storage.lustre_file_system",
    "LustreSecurityGroup": "storage.lustre_security_group",
    "LustreMetadataMode": "storage.settings",
    "MetricsWorkspace": "observability.metrics_workspace",
    "NodeProvisioning": "cluster.settings",
    "NodeRecovery": "cluster.settings",
    "Project": "project",
    "ProjectKey": "governance.project_key",
    "NodeRole": "cluster.settings",
    "SlurmInstanceGroup": "cluster.hyperpod_instance_group",
    "StorageType": "storage.settings",
    "ZoneAddresses": "network.addresses",
}

__all__ = [
    "AccountingDatabase",
    "AlertTopic",
    "CapacityBlock",
    "CapacityMode",
    "CapacityReservation",
    "CapacityReservationGroup",
    "CertificatesBucket",
    "ClusterVpc",
    "ComputeQuota",
    "ControllerSize",
    "DataBucket",
    "DataCompressionType",
    "DataReleaseSchedule",
    "DataRepositoryAssociation",
    "DataRepositoryEvent",
    "DataRepositoryPublisher",
    "DeepHealthCheck",
    "DeploymentType",
    "DevicePlugins",
    "DriveCacheType",
    "EfaLaunchTemplate",
    "EfaMode",
    "EfaPlacementGroup",
    "EfaSecurityGroup",
    "EksAddOn",
    "EksCluster",
    "EksClusterAccess",
    "EksGpuNodeGroup",
    "EksInstanceGroup",
    "EksLaunchTemplate",
    "EksMetricsCollector",
    "Endpoint",
    "EndpointAccess",
    "Finding",
    "FindingsError",
    "FixedImage",
    "GpuFleet",
    "HyperPodAccess",
    "HyperPodAddOn",
    "HyperPodAddOns",
    "HyperPodCluster",
    "HyperPodDependencies",
    "HyperPodEksCluster",
    "HyperPodInferenceOperator",
    "HyperPodInstanceGroup",
    "HyperPodModelEndpoint",
    "HyperPodNodePool",
    "HyperPodReady",
    "HyperPodSlurmCluster",
    "IAccountingDatabase",
    "ICapacity",
    "IClusterVpc",
    "IHyperPodCluster",
    "ILustreFileSystem",
    "IMetricsWorkspace",
    "IModelStore",
    "INodeGroup",
    "IOpenZfsFileSystem",
    "IPcsCluster",
    "InstancePlatform",
    "InterfaceEndpoints",
    "InterfaceType",
    "Karpenter",
    "KarpenterNodePool",
    "Keda",
    "KubeRay",
    "Kueue",
    "Launch",
    "LeaderWorkerSets",
    "LifecycleBundle",
    "LogBucket",
    "LustreAlarms",
    "LustreFileSystem",
    "LustreLogLevel",
    "LustreMetadataMode",
    "LustreSecurityGroup",
    "LustreVolume",
    "Match",
    "MetricsWorkspace",
    "ModelEndpoint",
    "ModelStore",
    "NetworkInterface",
    "NetworkInterfaceType",
    "NodePatching",
    "NodeProvisioning",
    "NodeRecovery",
    "NodeRole",
    "OnDemandCapacity",
    "OpenZfsCompressionType",
    "OpenZfsDeploymentType",
    "OpenZfsFileSystem",
    "OpenZfsSecurityGroup",
    "PatchingStrategy",
    "PcsCluster",
    "PcsComputeNodeGroup",
    "PcsLaunchTemplate",
    "PcsQueue",
    "Preemption",
    "PrivateSubnet",
    "Profile",
    "Project",
    "ProjectBudget",
    "ProjectKey",
    "QuotaOfType",
    "ReadCacheSizingMode",
    "RestrictedInstanceGroup",
    "SchedulerPolicy",
    "Sharing",
    "SlurmInstanceGroup",
    "SlurmLifecycleBundle",
    "SlurmUser",
    "SpotCapacity",
    "StorageType",
    "TeamAccess",
    "TeamMembers",
    "Tenancy",
    "TieredStorage",
    "TrainingPlan",
    "ZoneAddresses",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'fmblocks' has no attribute {name!r}")
    return getattr(importlib.import_module(f"fmblocks.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
