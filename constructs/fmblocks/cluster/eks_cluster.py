"""An EKS cluster for accelerator nodes."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct, DependencyGroup, IConstruct, IDependable

from fmblocks._edge import check_arguments, fault, instance_types, member, public_among, typed, unresolved, zone_of
from fmblocks.catalog import normalise
from fmblocks.cluster import rules
from fmblocks.cluster.add_ons import ADD_ONS, CONFIGURATION, CORE, laid_over, pinned
from fmblocks.cluster.eks_gpu_node_group import EksGpuNodeGroup
from fmblocks.cluster.eks_launch_template import EksLaunchTemplate
from fmblocks.cluster.settings import (
    DEFAULT_KUBERNETES,
    SYSTEM,
    AddOn,
    EndpointAccess,
    Kubernetes,
    NodeGroup,
    NodeRole,
    Orchestrator,
    Provisioner,
)
from fmblocks.findings import FindingsError


@dataclass(frozen=True, slots=True, kw_only=True)
class EksAddOn:
    """An add-on that EKS installs.

    Attributes:
        name: as EKS calls it.
        version: as EKS lists it, ``v1.2.3-eksbuild.1``. Default: the one that is pinned for the cluster's Kubernetes.
        configuration_values: by the add-on's own schema. Default: ours for the add-ons of every cluster, else none.
        role: what its service account may do in AWS. Default: nothing.
        service_account: that gets the role.
        namespace: of the service account. Default: kube-system.
    """

    name: str
    version: str | None = None
    configuration_values: Mapping[str, object] | None = None
    role: iam.IRole | None = None
    service_account: str | None = None
    namespace: str = "kube-system"


class EksCluster(eks.Cluster):
    """An EKS control plane, its add-ons, and a group of nodes for them.

    Access entries decide who gets in, and nobody else does: neither a ConfigMap nor whoever deployed it. Secrets are
    encrypted with your key where you give one; all five control-plane logs are on. Add-ons are EKS's own, in pinned
    versions, with roles by pod identity in associations of their own: they change without the add-on. A small group of
    system nodes is always there, since DNS, webhooks and controllers must neither wait for accelerators nor take them.

    What is applied to the cluster afterwards (manifests, charts) goes through CDK's kubectl function, which runs in the
    private subnets.

    In place: version (one minor at a time), endpoint, logs, add-ons, admins. Replaces: name, key, service range, role.
    Constructs of aws-cdk-lib take it as the ``Cluster`` that it is.

    Args:
        vpc: the subnets' VPC.
        subnets: private subnets of at least two zones that EKS takes (rule EKS-01), for the control plane.
        system_subnet: where the system nodes stand. Default: the first of ``subnets``.
        security_group: a further group of the control plane and the system nodes: that of the fabric.
        kubernetes_version: default 1.35.
        endpoint: private: the API is reached from inside the VPC only. Default: private.
        public_access_cidrs: who reaches a public endpoint; required with one.
        service_cidr: IPv4 range of services. Default: 172.20.0.0/16, or 10.100.0.0/16 where that is the VPC's.
        secrets_encryption_key: encrypts secrets. Default: a key that AWS owns.
        admins: ARNs of IAM roles and users that get cluster-admin; of this app's own roles ``grant_cluster_admin`` is
            told instead, since access entries are named after the ARN.
        add_ons: further add-ons, or those of every cluster with another version or settings. Default: none.
        system_instance_type: of the system nodes, without accelerators. Default: m7i.xlarge.
        system_count: system nodes. Default: 2.
        system_volume_gib: their root volume, gp3, encrypted. Default: 100.
        kubectl_layer: kubectl and Helm, within a minor version of the cluster's. Default: the matching package
            ``aws-cdk.lambda-layer-kubectl-v<minor>``, which has to be installed.
        cluster_name: a name blocks replacement. Default: chosen by CloudFormation.

    Attributes:
        kubernetes_version, service_cidr: as given, or the default.
        network: the add-ons without which no node gets ready, to wait for.
        ready: everything that is always there, to wait for.
        add_on_roles: by add-on, to grant to.
        system_node_group: the nodes of controllers.

    Raises:
        FindingsError: rules EKS-01, EKS-03, FMB-78, FMB-79, FMB-82, FMB-83.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],
        security_group: ec2.ISecurityGroup,
        system_subnet: ec2.ISubnet | None = None,
        kubernetes_version: str = DEFAULT_KUBERNETES,
        endpoint: EndpointAccess = EndpointAccess.PRIVATE,
        public_access_cidrs: Sequence[str] = (),
        service_cidr: str | None = None,
        secrets_encryption_key: kms.IKey | None = None,
        admins: Sequence[str] = (),
        add_ons: Sequence[EksAddOn] = (),
        system_instance_type: str = SYSTEM.instance_type,
        system_count: int = SYSTEM.count,
        system_volume_gib: int = SYSTEM.ebs_volume_gib,
        kubectl_layer: lambda_.ILayerVersion | None = None,
        cluster_name: str | None = None,
    ) -> None:
        endpoint = member(EndpointAccess, endpoint, "endpoint")
        vpc_cidr = _cidr_of(vpc)
        settings = Kubernetes.model_construct(
            version=kubernetes_version,
            service_cidr=service_cidr,
            endpoint=endpoint,
            public_access_cidrs=tuple(public_access_cidrs),
            add_ons=tuple(map(_as_settings, add_ons)),
        )
        system = NodeGroup.model_construct(
            name=SYSTEM.name,
            role=NodeRole.SYSTEM,
            instance_type=normalise(system_instance_type),
            count=system_count,
            provisioned_by=Provisioner.NODE_GROUP,
        )
        _check(scope, settings, subnets, vpc_cidr, admins, system)
        self.kubernetes_version = kubernetes_version
        self.service_cidr = service_cidr or rules.service_cidr_beside(vpc_cidr)
        access = eks.EndpointAccess.PRIVATE
        if endpoint is EndpointAccess.PUBLIC_AND_PRIVATE:
            access = eks.EndpointAccess.PUBLIC_AND_PRIVATE.only_from(*public_access_cidrs)
        super().__init__(
            scope,
            id,
            version=eks.KubernetesVersion.of(kubernetes_version),
            vpc=vpc,
            vpc_subnets=[ec2.SubnetSelection(subnets=list(subnets))],
            security_group=security_group,
            endpoint_access=access,
            service_ipv4_cidr=self.service_cidr,
            secrets_encryption_key=secrets_encryption_key,
            cluster_logging=list(eks.ClusterLoggingTypes),
            default_capacity_type=eks.DefaultCapacityType.NODEGROUP,
            default_capacity=0,
            # EKS would install its own, which nothing updates afterwards.
            bootstrap_self_managed_addons=False,
            bootstrap_cluster_creator_admin_permissions=False,
            kubectl_provider_options=eks.KubectlProviderOptions(
                kubectl_layer=kubectl_layer or kubectl_layer_for(scope, kubernetes_version)
            ),
            output_config_command=False,
            cluster_name=cluster_name,
        )
        # ClusterVpc tags the subnets it makes; others are their owner's.
        cdk.Annotations.of(self).acknowledge_warning(
            "@aws-cdk/aws-eks:clusterMustManuallyTagSubnet", "load balancers are not made here"
        )
        forget_logs(self.node.find_child("KubectlProvider"))
        # What runs in the cluster may use roles by OpenID Connect too: some operators know nothing else.
        self.oidc_provider = self.open_id_connect_provider
        for arn in admins:
            self.grant_cluster_admin(f"Admin{hashlib.sha256(arn.encode()).hexdigest()[:8]}", arn)

        self.add_on_roles: dict[str, iam.IRole] = {}
        self._made: dict[str, eks.CfnAddon] = {}
        wanted = {one.name: one for one in (*(EksAddOn(name=name) for name in ADD_ONS), *add_ons)}
        self.network: IDependable = DependencyGroup(*(self._add(wanted.pop(name)) for name in CORE))
        ready = DependencyGroup(self.network)
        self.ready: IDependable = ready
        self.system_node_group = self._system_nodes(
            system_subnet or subnets[0], security_group, system_instance_type, system_count, system_volume_gib
        )
        others = [self._add(one) for one in wanted.values()]
        for one in others:
            one.node.add_dependency(self.system_node_group)
        ready.add(self.system_node_group, *others)

    def add_on(self, name: str) -> eks.CfnAddon:
        """The resource of an add-on, to wait for it."""
        return self._made[name]

    def _system_nodes(
        self, subnet: ec2.ISubnet, group: ec2.ISecurityGroup, instance_type: str, count: int, volume_gib: int
    ) -> EksGpuNodeGroup:
        template = EksLaunchTemplate(
            self,
            "SystemTemplate",
            cluster=self,
            security_groups=[group],
            instance_type=instance_type,
            root_volume_gib=volume_gib,
        )
        return EksGpuNodeGroup(
            self,
            "System",
            cluster=self,
            launch_template=template,
            vpc_subnet=subnet,
            group_name=SYSTEM.name,
            count=count,
            group_role=NodeRole.SYSTEM,
        )

    def _add(self, one: EksAddOn) -> eks.CfnAddon:
        role, account = one.role, one.service_account
        home = Construct(self, f"AddOn-{one.name}")
        if role is None and one.name in _ROLES:
            account, role = _ROLES[one.name][0], self._role(home, one.name)
        values = laid_over(CONFIGURATION.get(one.name, {}), one.configuration_values or {})
        resource = eks.CfnAddon(
            home,
            "Resource",
            cluster_name=self.cluster_name,
            addon_name=one.name,
            addon_version=one.version or pinned(self.kubernetes_version).get(one.name),
            configuration_values=json.dumps(values, sort_keys=True) if values else None,
            # Settings that somebody made by hand would stop every later deployment.
            resolve_conflicts="OVERWRITE",
        )
        if role is not None and account is not None:
            association = eks.CfnPodIdentityAssociation(
                home,
                "Association",
                cluster_name=self.cluster_name,
                namespace=one.namespace,
                service_account=account,
                role_arn=role.role_arn,
            )
            # Pods that start without their role go on without it.
            resource.add_resource_dependency(association)
            self.add_on_roles[one.name] = role
        self._made[one.name] = resource
        return resource

    def _role(self, home: Construct, name: str) -> iam.Role:
        role = pod_role(home, "Role")
        _, policies, actions = _ROLES[name]
        for policy in policies:
            role.add_managed_policy(iam.ManagedPolicy.from_aws_managed_policy_name(policy))
        if actions:
            role.add_to_policy(iam.PolicyStatement(actions=list(actions), resources=["*"]))
        return role


# Service account, managed policies, actions that take no resource. Source: EKS User Guide, *AWS add-ons*; the drivers
# make nothing here: volumes are static, so that reading is enough.
_ROLES: Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "vpc-cni": ("aws-node", ("AmazonEKS_CNI_Policy",), ()),
    "aws-fsx-csi-driver": ("fsx-csi-controller-sa", (), ("fsx:DescribeFileSystems",)),
    "aws-mountpoint-s3-csi-driver": ("s3-csi-driver-sa", (), ()),
}


_SOME_ROLE = "arn:aws:iam::111122223333:role/Name"


def _as_settings(one: EksAddOn) -> AddOn:
    """What the rules look at; of a role that is not known yet only that there is one."""
    role = one.role.role_arn if one.role else None
    role = _SOME_ROLE if role and unresolved(role) else role
    return AddOn.model_construct(name=one.name, version=one.version, role_arn=role, service_account=one.service_account)


def pod_role(scope: Construct, id: str) -> iam.Role:
    """A role that EKS gives to pods by pod identity (EKS User Guide, *EKS Pod Identity role*)."""
    role = iam.Role(scope, id, assumed_by=iam.ServicePrincipal("pods.eks.amazonaws.com"))
    assert role.assume_role_policy is not None
    role.assume_role_policy.add_statements(
        iam.PolicyStatement(actions=["sts:TagSession"], principals=[iam.ServicePrincipal("pods.eks.amazonaws.com")])
    )
    return role


def forget_logs(kubectl: IConstruct) -> None:
    """CDK keeps the logs of its functions, so that each cluster that goes would leave two groups behind."""
    for part in kubectl.node.find_all():
        if isinstance(part, logs.CfnLogGroup):
            part.apply_removal_policy(cdk.RemovalPolicy.DESTROY)
            part.retention_in_days = 30


def kubectl_layer_for(scope: Construct, version: str) -> lambda_.ILayerVersion:
    """The layer of the package for a Kubernetes version; kubectl serves the minor versions beside its own too."""
    minor = version.removeprefix("1.")
    stack, id = cdk.Stack.of(scope), f"Kubectl{minor}"
    found = stack.node.try_find_child(id)  # one for all clusters of a stack: 37 MB
    if isinstance(found, lambda_.LayerVersion):
        return found
    try:
        package = importlib.import_module(f"aws_cdk.lambda_layer_kubectl_v{minor}")
    except ModuleNotFoundError:
        text = f"kubectl {version} is not installed"
        hint = f"pip install aws-cdk.lambda-layer-kubectl-v{minor}, or pass kubectl_layer"
        raise FindingsError([fault("kubernetes_version", text, hint)]) from None
    layer: lambda_.ILayerVersion = getattr(package, f"KubectlV{minor}Layer")(stack, id)
    return layer


def _cidr_of(vpc: ec2.IVpc) -> str | None:
    made = vpc.node.default_child
    if isinstance(made, ec2.CfnVPC) and made.cidr_block and not unresolved(made.cidr_block):
        return made.cidr_block
    try:
        found = vpc.vpc_cidr_block
    except RuntimeError:  # CDK refuses to say what it was not told
        return None
    return None if unresolved(found) else found


def _check(
    scope: Construct,
    settings: Kubernetes,
    subnets: Sequence[ec2.ISubnet],
    vpc_cidr: str | None,
    admins: Sequence[str],
    system: NodeGroup,
) -> None:
    for at, arn in enumerate(admins):
        if unresolved(arn):
            text = "is a token: the access entry could have no name that stays"
            raise FindingsError([fault(f"admins[{at}]", text, "call grant_cluster_admin with an id of yours")])
    zones = [zone_of(subnet) for subnet in subnets]
    values: dict[str, object] = {
        "orchestrator": Orchestrator.EKS,
        # Zones that nobody told count as different ones: it is the number that EKS asks for.
        "availability_zones": [zone or f"subnet {at}" for at, zone in enumerate(zones)],
        "kubernetes": settings,
        "admins": tuple(admins),
        "node_groups": [system],
        "types": instance_types(scope),
        "public_subnets": public_among(subnets, None),
    }
    ids: tuple[str, ...] = (*rules.EKS_CONSTRUCT, "NET-05")
    if vpc_cidr is not None:
        ids, values = (*ids, "EKS-03"), {**values, "cidr": vpc_cidr}
    names = {
        "network.availability_zones": "subnets",
        "kubernetes.version": "kubernetes_version",
        "kubernetes.service_cidr": "service_cidr",
        "kubernetes.endpoint": "endpoint",
        "kubernetes.public_access_cidrs": "public_access_cidrs",
        "kubernetes.add_ons": "add_ons",
        "access.admins": "admins",
        "node_groups[0].count": "system_count",
        "node_groups[0].instance_type": "system_instance_type",
    }
    check_arguments(scope, ids, values, names=names)
