"""A cluster of AWS Parallel Computing Service."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

import aws_cdk as cdk
import jsii
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_pcs as pcs
from constructs import Construct

from fmblocks._edge import check_arguments, fault, member, public_among, typed, unresolved, zone_of
from fmblocks.cluster import rules
from fmblocks.cluster.settings import DEFAULT_SLURM, ControllerSize, Orchestrator, Slurm
from fmblocks.findings import FindingsError
from fmblocks.network.self_rules import SelfRulesValidation

# Source: Service Authorization Reference, AWS Parallel Computing Service: all of them take a cluster.
_READ_ACTIONS = ("pcs:GetCluster", "pcs:ListComputeNodeGroups", "pcs:ListQueues")


class IPcsCluster(Protocol):
    """A PCS cluster, made here or elsewhere."""

    @property
    def cluster_id(self) -> str: ...
    @property
    def cluster_arn(self) -> str: ...
    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant: ...


@jsii.implements(ec2.IConnectable)
class PcsCluster(cdk.Resource):
    """A Slurm controller that AWS runs; nodes are your own EC2 instances (:class:`PcsComputeNodeGroup`).

    In place: Slurm version, accounting, settings. Replaces: name, subnet, groups, size. One cluster is made at a time
    in a Region: stacks with several chain them (rule PCS-09).

    Args:
        vpc_subnet: the one private subnet of the controller's interface.
        security_groups: one that is open to itself in both directions serves controller and nodes, EFA too (AWS PCS
            User Guide, *Security groups in AWS PCS*).
        size: small, medium or large: 32, 512 or 2048 nodes. Default: small.
        scheduler_version: of Slurm. Default: 25.11.
        accounting: keep a database of jobs and accounts in the service. Default: true.
        accounting_purge: how long records are kept. Default: for ever.
        rest_api: serve Slurm's REST API on port 6820, without TLS, in the VPC. Default: false.
        open_metrics: serve /metrics on port 6817, without authentication, in the VPC; from Slurm 25.11. Default: where
            the version can.
        scale_down_idle_time: how long a node without work stays. Default: chosen by PCS, 10 minutes.
        slurm_custom_settings: parameters of slurm.conf, of those that PCS takes. Default: none.
        cluster_name: a name blocks replacement. Default: chosen by CloudFormation.

    Raises:
        FindingsError: rules FMB-90, PCS-01, PCS-02, PCS-10.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        vpc_subnet: ec2.ISubnet,
        security_groups: Sequence[ec2.ISecurityGroup],
        size: ControllerSize = ControllerSize.SMALL,
        scheduler_version: str = DEFAULT_SLURM,
        accounting: bool = True,
        accounting_purge: cdk.Duration | None = None,
        rest_api: bool = False,
        open_metrics: bool | None = None,
        scale_down_idle_time: cdk.Duration | None = None,
        slurm_custom_settings: Mapping[str, str] | None = None,
        cluster_name: str | None = None,
    ) -> None:
        super().__init__(scope, id)
        size = member(ControllerSize, size, "size")
        if accounting_purge is not None and accounting_purge.to_seconds() % 86_400:
            raise FindingsError([fault("accounting_purge", "is no whole number of days", "pass Duration.days(…)")])
        settings = Slurm.model_construct(
            version=scheduler_version,
            size=size,
            rest_api=rest_api,
            accounting=accounting,
            accounting_purge_days=int(accounting_purge.to_days()) if accounting_purge else None,
            open_metrics=open_metrics,
            scale_down_idle_seconds=int(scale_down_idle_time.to_seconds()) if scale_down_idle_time else None,
            custom_settings=dict(slurm_custom_settings or {}),
        )
        self._check(settings, vpc_subnet)
        if cluster_name is not None:
            check_pcs_name("cluster_name", cluster_name, 40)
        self._connections = ec2.Connections(security_groups=list(security_groups))
        self.node.add_validation(SelfRulesValidation(self, security_groups, one_is_enough=True))
        custom = {**settings.custom_settings, **(_METRICS if rules.serves_metrics(settings) else {})}
        self.resource = pcs.CfnCluster(
            self,
            "Resource",
            name=cluster_name,
            size=size.value.upper(),
            scheduler=pcs.CfnCluster.SchedulerProperty(type="SLURM", version=scheduler_version),
            networking=pcs.CfnCluster.NetworkingProperty(
                subnet_ids=[vpc_subnet.subnet_id],
                security_group_ids=[group.security_group_id for group in security_groups],
            ),
            slurm_configuration=pcs.CfnCluster.SlurmConfigurationProperty(
                accounting=pcs.CfnCluster.AccountingProperty(
                    mode="STANDARD", default_purge_time_in_days=settings.accounting_purge_days
                )
                if accounting
                else None,
                slurm_rest=pcs.CfnCluster.SlurmRestProperty(mode="STANDARD") if rest_api else None,
                scale_down_idle_time_in_seconds=settings.scale_down_idle_seconds,
                slurm_custom_settings=[
                    pcs.CfnCluster.SlurmCustomSettingProperty(parameter_name=name, parameter_value=value)
                    for name, value in sorted(custom.items())
                ]
                or None,
            ),
        )
        # The list of Regions moves: rule REG-02 warns in the project file.
        cdk.Validations.of(self.resource).acknowledge(
            cdk.Acknowledgment(id="CloudFormation-Validate::F3006", reason="the list of Regions moves, see REG-02")
        )
        self.resource.node.add_dependency(*security_groups)

    @property
    def cluster_id(self) -> str:
        """The id, ``pcs_…``."""
        return self.resource.attr_id

    @property
    def cluster_arn(self) -> str:
        """The ARN."""
        return self.resource.attr_arn

    @property
    def connections(self) -> ec2.Connections:
        """The network connections of the controller."""
        return self._connections

    @staticmethod
    def from_cluster_id(scope: Construct, id: str, cluster_id: str) -> IPcsCluster:
        """A cluster that was made elsewhere. Nothing is created, nothing is checked."""
        return _Imported(scope, id, cluster_id)

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let ``grantee`` look at the cluster, its node groups and its queues."""
        return _grant_read(self.cluster_arn, grantee)

    def _check(self, settings: Slurm, subnet: ec2.ISubnet) -> None:
        zone = zone_of(subnet)
        values: dict[str, object] = {"slurm": settings, "orchestrator": Orchestrator.PCS, "node_groups": ()}
        names = {
            "slurm.version": "scheduler_version",
            "slurm.accounting_purge_days": "accounting_purge",
            "slurm.scale_down_idle_seconds": "scale_down_idle_time",
            "slurm.custom_settings": "slurm_custom_settings",
            "slurm.rest_api": "rest_api",
            "slurm.open_metrics": "open_metrics",
        }
        check_arguments(self, rules.PCS_CONSTRUCT, values, names=names)
        if zone is not None:
            told = {"orchestrator": Orchestrator.PCS, "primary": zone}
            check_arguments(self, ("PCS-01",), told, names={"network.primary_availability_zone": "vpc_subnet"})
        public = {"public_subnets": public_among([subnet], None)}
        check_arguments(self, ("NET-05",), public, names={"subnets[0]": "vpc_subnet"})


def check_pcs_name(key: str, name: str, most: int) -> None:
    """Refuse a name that PCS refuses (its API: CreateCluster, CreateComputeNodeGroup, CreateQueue).

    Raises:
        FindingsError: with what PCS takes.
    """
    if not unresolved(name) and not re.fullmatch(rf"(?!pcs_)[A-Za-z][A-Za-z0-9-]{{2,{most - 1}}}", name):
        text = f"{name} is no name of PCS: 3 to {most} letters, digits and hyphens, beginning with a letter"
        raise FindingsError([fault(key, text, "rename it")])


# Source: AWS PCS User Guide, *Slurm OpenMetrics*.
_METRICS = {"MetricsType": "metrics/openmetrics", "CommunicationParameters": "enable_http"}


class _Imported(cdk.Resource):
    def __init__(self, scope: Construct, id: str, cluster_id: str) -> None:
        super().__init__(scope, id)
        self.cluster_id = cluster_id
        self.cluster_arn = cdk.Stack.of(self).format_arn(service="pcs", resource="cluster", resource_name=cluster_id)

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        return _grant_read(self.cluster_arn, grantee)


def _grant_read(arn: str, grantee: iam.IGrantable) -> iam.Grant:
    return iam.Grant.add_to_principal(grantee=grantee, actions=list(_READ_ACTIONS), resource_arns=[arn])
