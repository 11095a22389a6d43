"""The edges of the constructs of EKS and PCS."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Match, Template

import fmblocks as fm

# Wrong arguments are the point.
# mypy: disable-error-code="arg-type"

ADMIN = "arn:aws:iam::111122223333:role/Admin"
CR = "cr-0123456789abcdef0"


@pytest.fixture
def imported(stack: cdk.Stack, vpc: ec2.Vpc) -> eks.ICluster:
    """A cluster that was there before: no add-ons of ours, a provider of somebody's."""
    return eks.Cluster.from_cluster_attributes(
        stack,
        "Imported",
        cluster_name="mine",
        vpc=vpc,
        cluster_security_group_id="sg-0123456789abcdef0",
        cluster_endpoint="https://example.com",
        cluster_certificate_authority_data="Y2E=",
        kubectl_provider=eks.KubectlProvider.from_kubectl_provider_attributes(
            stack,
            "Provider",
            service_token="arn:aws:lambda:us-west-2:111122223333:function:kubectl",
            role=iam.Role.from_role_arn(stack, "KubectlRole", ADMIN, mutable=False),
        ),
    )


@pytest.fixture
def cluster(stack: cdk.Stack, vpc: ec2.Vpc, fabric: fm.EfaSecurityGroup) -> Callable[..., fm.EksCluster]:
    def make(**changed: Any) -> fm.EksCluster:
        usual = {"vpc": vpc, "subnets": vpc.private_subnets, "security_group": fabric, "admins": [ADMIN]}
        return fm.EksCluster(stack, "Cluster", **{**usual, **changed})

    return make


def rules_of(error: pytest.ExceptionInfo[fm.FindingsError]) -> set[str]:
    return {finding.rule for finding in error.value.findings}


def test_a_cluster_in_a_vpc_of_your_own(stack: cdk.Stack, vpc: ec2.Vpc, fabric: Any, cluster: Any) -> None:
    made = cluster()
    assert made.kubernetes_version == "1.35"
    assert made.service_cidr == "172.20.0.0/16"
    template = fm.EksLaunchTemplate(
        stack, "Template", cluster=made, security_groups=[fabric], instance_type="ml.p5.48xlarge"
    )
    group = fm.EksGpuNodeGroup(
        stack,
        "Gpu",
        cluster=made,
        launch_template=template,
        vpc_subnet=vpc.private_subnets[0],
        group_name="gpu",
        count=2,
    )
    fm.DevicePlugins(stack, "Plugins", cluster=made, types=["p5.48xlarge"])
    found = Template.from_stack(stack)
    found.resource_count_is("AWS::EKS::Nodegroup", 2)
    found.has_resource_properties("AWS::EKS::Nodegroup", {"Version": "1.35", "AmiType": "AL2023_x86_64_NVIDIA"})
    assert len(group.connections.security_groups) == 2


def test_what_a_cluster_refuses(vpc: ec2.Vpc, cluster: Any) -> None:
    for changed, id, said in (
        ({"subnets": vpc.private_subnets[:1]}, "EKS-01", "subnets: 1 zones: eks needs two"),
        ({"subnets": vpc.public_subnets}, "NET-05", "subnets[0]: S/Vpc/PublicSubnet1 is public"),
        ({"endpoint": "public_and_private"}, "FMB-78", "public_access_cidrs: is required with a public endpoint"),
        ({"public_access_cidrs": ["203.0.113.0/24"]}, "FMB-78", "public_access_cidrs: 203.0.113.0/24 reach nothing"),
        ({"admins": ["Admin"]}, "FMB-79", "admins[0]: Admin is the ARN of no IAM role or user"),
        ({"service_cidr": "10.0.4.0/24"}, "EKS-03", "service_cidr: 10.0.4.0/24 overlaps the VPC"),
        ({"kubernetes_version": "1.31"}, "SHAPE", "kubernetes_version: kubectl 1.31 is not installed"),
        ({"system_count": 0}, "FMB-83", "system_count: 0 nodes for DNS, webhooks and controllers"),
        ({"system_instance_type": "g6.xlarge"}, "FMB-83", "system_instance_type: g6.xlarge has accelerators"),
        ({"add_ons": [fm.EksAddOn(name="coredns", version="latest")]}, "FMB-82", "add_ons[0].version: latest is no"),
        ({"endpoint": "open"}, "SHAPE", "endpoint: open is not one of private, public_and_private"),
        ({"vpc": "vpc-1"}, "SHAPE", "vpc: 'vpc-1' is not"),
    ):
        with pytest.raises(fm.FindingsError) as error:
            cluster(**changed)
        assert rules_of(error) == {id}, changed
        assert said in str(error.value), (changed, str(error.value))


def test_services_stand_beside_the_vpc(stack: cdk.Stack) -> None:
    other = ec2.Vpc(
        stack,
        "Other",
        ip_addresses=ec2.IpAddresses.cidr("172.20.0.0/16"),
        availability_zones=["us-west-2a", "us-west-2b"],
    )
    group = fm.EfaSecurityGroup(stack, "OtherFabric", vpc=other)
    made = fm.EksCluster(
        stack, "Cluster", vpc=other, subnets=other.private_subnets, security_group=group, admins=[ADMIN]
    )
    assert made.service_cidr == "10.100.0.0/16"


def test_system_nodes_stand_in_private_subnets(vpc: ec2.Vpc, cluster: Any) -> None:
    with pytest.raises(fm.FindingsError, match="NET-05"):
        cluster(system_subnet=vpc.public_subnets[0])


def test_an_add_on_with_a_role_of_your_own(stack: cdk.Stack, cluster: Any) -> None:
    role = iam.Role.from_role_arn(stack, "Ebs", "arn:aws:iam::111122223333:role/ebs", mutable=False)
    made = cluster(
        add_ons=[
            fm.EksAddOn(
                name="aws-ebs-csi-driver",
                version="v1.50.0-eksbuild.1",
                role=role,
                service_account="ebs-csi-controller-sa",
            ),
            fm.EksAddOn(name="coredns", configuration_values={"replicaCount": 3}),
        ]
    )
    assert made.add_on_roles["aws-ebs-csi-driver"] is role
    found = Template.from_stack(stack)
    # Over our own settings: it stays on the system nodes.
    values = '{"nodeSelector": {"fmblocks/role": "system"}, "replicaCount": 3}'
    found.has_resource_properties("AWS::EKS::Addon", {"AddonName": "coredns", "ConfigurationValues": values})
    found.has_resource_properties("AWS::EKS::PodIdentityAssociation", {"ServiceAccount": "ebs-csi-controller-sa"})
    assert stack.resolve(made.add_on("coredns").ref)


def test_nodes_of_a_cluster_that_was_there(stack: cdk.Stack, vpc: ec2.Vpc, fabric: Any, imported: Any) -> None:
    def template(id: str, **more: Any) -> fm.EksLaunchTemplate:
        usual = {"cluster": imported, "security_groups": [fabric], "instance_type": "trn2.48xlarge"}
        return fm.EksLaunchTemplate(stack, id, **{**usual, **more})

    with pytest.raises(fm.FindingsError, match="service_cidr: is required with an image of your own, ami-1"):
        template("Wrong", image_id="ami-1")
    with pytest.raises(fm.FindingsError, match="cluster: 'mine' is not"):
        template("Worse", cluster="mine")
    with pytest.raises(fm.FindingsError, match="security_groups: is empty; pass an EfaSecurityGroup"):
        template("Alone", security_groups=[])
    fm.EksGpuNodeGroup(
        stack,
        "Trn",
        cluster=imported,
        launch_template=template("Template"),
        vpc_subnet=vpc.private_subnets[0],
        group_name="trn",
        count=1,
    )
    Template.from_stack(stack).has_resource_properties(
        "AWS::EKS::Nodegroup",
        {"ClusterName": "mine", "AmiType": "AL2023_x86_64_NEURON", "Version": Match.absent()},
    )


def test_what_a_node_group_refuses(stack: cdk.Stack, vpc: ec2.Vpc, fabric: Any, imported: Any) -> None:
    block = fm.CapacityBlock(capacity_reservation_id=CR, availability_zone="us-west-2b")
    template = fm.EksLaunchTemplate(
        stack, "T", cluster=imported, security_groups=[fabric], instance_type="p5.48xlarge", capacity=block
    )
    usual = {"cluster": imported, "launch_template": template, "group_name": "gpu", "count": 2}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"vpc_subnet": vpc.private_subnets[0]}, "CB-07"),
        ({"vpc_subnet": vpc.public_subnets[1]}, "NET-05"),
        ({"vpc_subnet": vpc.private_subnets[1], "launch": "scheduled"}, "FMB-46"),
        ({"vpc_subnet": vpc.private_subnets[1], "min_count": 3}, "FMB-32"),
        ({"vpc_subnet": vpc.private_subnets[1], "group_name": "My Group!"}, "SHAPE"),
        ({"vpc_subnet": vpc.private_subnets[1], "group_role": "controller"}, "FMB-43"),
    ]
    for at, (changed, id) in enumerate(wrong):
        with pytest.raises(fm.FindingsError) as error:
            fm.EksGpuNodeGroup(stack, f"G{at}", **{**usual, **changed})
        assert rules_of(error) == {id}


def test_a_group_of_its_own_is_open_to_itself(stack: cdk.Stack, vpc: ec2.Vpc, imported: Any) -> None:
    """That of the cluster, which every node carries too, does not count."""
    plain = ec2.SecurityGroup(stack, "Plain", vpc=vpc)
    template = fm.EksLaunchTemplate(stack, "T", cluster=imported, security_groups=[plain], instance_type="p5.48xlarge")
    assert "EFA-12" in str(template.node.validate())


def test_only_a_block_is_scheduled(stack: cdk.Stack, vpc: ec2.Vpc, fabric: Any, imported: Any) -> None:
    template = fm.EksLaunchTemplate(stack, "T", cluster=imported, security_groups=[fabric], instance_type="p5.48xlarge")
    usual = {"cluster": imported, "launch_template": template, "group_name": "gpu", "count": 2}
    with pytest.raises(fm.FindingsError, match="launch: belongs to a Capacity Block") as error:
        fm.EksGpuNodeGroup(stack, "G", vpc_subnet=vpc.private_subnets[0], launch=fm.Launch.SCHEDULED, **usual)
    assert rules_of(error) == {"FMB-24"}


def test_names_and_places_that_pcs_refuses(stack: cdk.Stack, vpc: ec2.Vpc, fabric: Any) -> None:
    def cluster(id: str, **more: Any) -> fm.PcsCluster:
        return fm.PcsCluster(stack, id, **{"vpc_subnet": vpc.private_subnets[0], "security_groups": [fabric], **more})

    with pytest.raises(fm.FindingsError, match="cluster_name: pcs_1 is no name of PCS: 3 to 40 letters"):
        cluster("Named", cluster_name="pcs_1")
    with pytest.raises(fm.FindingsError, match="accounting_purge: is no whole number of days"):
        cluster("Purged", accounting_purge=cdk.Duration.hours(5))
    with pytest.raises(fm.FindingsError, match="NET-05"):
        cluster("Public", vpc_subnet=vpc.public_subnets[0])
    made = cluster("Cluster")
    usual = {"vpc_subnet": vpc.private_subnets[0], "security_groups": [fabric], "instance_type": "p5.48xlarge"}
    elsewhere = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
    there = iam.Role.from_role_arn(stack, "There", ADMIN)
    for at, role in enumerate((elsewhere, there)):
        with pytest.raises(fm.FindingsError, match="has path /, where PCS does not look"):
            fm.PcsLaunchTemplate(stack, f"T{at}", role=role, **usual)
    named = iam.Role.from_role_arn(stack, "Known", "arn:aws:iam::111122223333:role/aws-pcs/nodes")
    template = fm.PcsLaunchTemplate(stack, "T", role=named, **usual)
    with pytest.raises(fm.FindingsError, match="group_name: pcs_x is no name of PCS: 3 to 25 letters"):
        fm.PcsComputeNodeGroup(stack, "Wrong", cluster=made, launch_template=template, group_name="pcs_x", count=1)
    nodes = fm.PcsComputeNodeGroup(stack, "Nodes", cluster=made, launch_template=template, group_name="gpu", count=1)
    with pytest.raises(fm.FindingsError, match="queue_name: q is no name"):
        fm.PcsQueue(stack, "Queue", cluster=made, queue_name="q", compute_node_groups=[nodes])


def test_a_block_without_times_has_no_schedule(stack: cdk.Stack, vpc: ec2.Vpc, fabric: Any, imported: Any) -> None:
    template = fm.EksLaunchTemplate(
        stack,
        "T",
        cluster=imported,
        security_groups=[fabric],
        instance_type="p5.48xlarge",
        capacity=fm.CapacityBlock(capacity_reservation_id=CR),
    )
    subnet = vpc.private_subnets[0]
    fm.EksGpuNodeGroup(
        stack, "G", cluster=imported, launch_template=template, vpc_subnet=subnet, group_name="gpu", count=2
    )
    Template.from_stack(stack).resource_count_is("AWS::Scheduler::Schedule", 0)


def queue_of(stack: cdk.Stack) -> dict[str, Any]:
    """The ClusterQueue of the one Kueue."""
    found = [
        one
        for resource in Template.from_stack(stack).find_resources("Custom::AWSCDK-EKS-KubernetesResource").values()
        for one in json.loads(resource["Properties"]["Manifest"])
        if one["kind"] == "ClusterQueue"
    ]
    return dict(found[0])


@dataclasses.dataclass(frozen=True)
class Queued:
    """Nodes of somebody else's."""

    group_name: str
    instance_type: str
    count: int
    efa_interfaces: int


def test_a_queue_needs_groups_and_knows_their_types(stack: cdk.Stack, imported: Any) -> None:
    with pytest.raises(fm.FindingsError, match="groups: is empty"):
        fm.Kueue(stack, "K1", cluster=imported, groups=[])
    unknown = Queued(group_name="a", instance_type="p9.48xlarge", count=1, efa_interfaces=0)
    with pytest.raises(fm.FindingsError, match="FMB-09"):
        fm.Kueue(stack, "K2", cluster=imported, groups=[unknown])


def test_resources_that_nobody_has_are_not_counted(stack: cdk.Stack, imported: Any) -> None:
    groups = [
        Queued(group_name="cpu", instance_type="m7i.xlarge", count=2, efa_interfaces=0),
        Queued(group_name="gpu", instance_type="g6.2xlarge", count=1, efa_interfaces=0),
    ]
    fm.Kueue(stack, "K", cluster=imported, groups=groups)
    (group,) = queue_of(stack)["spec"]["resourceGroups"]
    assert group["coveredResources"] == ["cpu", "memory", "nvidia.com/gpu"]
    # Work without accelerators goes where there are none.
    assert [one["name"] for one in group["flavors"]] == ["cpu", "gpu"]


def test_names_and_groups_of_a_pool(stack: cdk.Stack, vpc: ec2.Vpc, fabric: Any, cluster: Any) -> None:
    usual = {
        "karpenter": fm.Karpenter(stack, "Karpenter", cluster=cluster()),
        "instance_type": "p5.48xlarge",
        "max_count": 2,
        "vpc_subnet": vpc.private_subnets[0],
    }
    with pytest.raises(fm.FindingsError, match="group_name: My Group! is no name of Kubernetes"):
        fm.KarpenterNodePool(stack, "P1", group_name="My Group!", security_groups=[fabric], **usual)
    with pytest.raises(fm.FindingsError, match="security_groups: is empty; pass an EfaSecurityGroup"):
        fm.KarpenterNodePool(stack, "P2", group_name="gpu", security_groups=[], **usual)
    plain = ec2.SecurityGroup(stack, "Plain", vpc=vpc)
    pool = fm.KarpenterNodePool(stack, "P3", group_name="gpu", security_groups=[plain], **usual)
    assert "EFA-12" in str(pool.node.validate())


@pytest.mark.parametrize(
    ("changed", "id"),
    [
        ({"capacity": fm.TrainingPlan(training_plan_arn="arn:aws:sagemaker:us-west-2:1:training-plan/x")}, "X-03"),
        ({"instance_type": "p9.48xlarge"}, "FMB-09"),
        ({"efa_interface_count": 40}, "EFA-02"),
        ({"capacity": fm.CapacityBlock(capacity_reservation_id="block")}, "FMB-25"),
        ({"instance_type": "m7i.xlarge", "capacity": fm.CapacityBlock(capacity_reservation_id=CR)}, "CB-02"),
    ],
)
def test_what_a_pool_refuses(
    stack: cdk.Stack, vpc: ec2.Vpc, fabric: Any, cluster: Any, changed: dict[str, Any], id: str
) -> None:
    karpenter = fm.Karpenter(stack, "Karpenter", cluster=cluster())
    usual = {
        "karpenter": karpenter,
        "group_name": "gpu",
        "instance_type": "p5.48xlarge",
        "max_count": 2,
        "vpc_subnet": vpc.private_subnets[0],
        "security_groups": [fabric],
    }
    with pytest.raises(fm.FindingsError) as error:
        fm.KarpenterNodePool(stack, "Pool", **{**usual, **changed})
    assert rules_of(error) == {id}


def test_slurm_in_a_vpc_of_your_own(stack: cdk.Stack, vpc: ec2.Vpc, fabric: Any) -> None:
    subnet = vpc.private_subnets[0]
    slurm = fm.PcsCluster(
        stack,
        "Slurm",
        vpc_subnet=subnet,
        security_groups=[fabric],
        accounting_purge=cdk.Duration.days(30),
        scale_down_idle_time=cdk.Duration.minutes(5),
    )
    template = fm.PcsLaunchTemplate(
        stack, "Template", instance_type="p5en.48xlarge", vpc_subnet=subnet, security_groups=[fabric]
    )
    nodes = fm.PcsComputeNodeGroup(
        stack, "Nodes", cluster=slurm, launch_template=template, group_name="gpu", count=2, min_count=0,
        slurm_custom_settings={"Features": "h200"},
    )  # fmt: skip
    fm.PcsQueue(
        stack, "Queue", cluster=slurm, queue_name="gpu", compute_node_groups=[nodes],
        slurm_custom_settings={"MaxTime": "7-0"},
    )  # fmt: skip
    role = iam.Role(stack, "Reader", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
    slurm.grant_read(role)
    found = Template.from_stack(stack)
    found.has_resource_properties(
        "AWS::PCS::Cluster",
        {
            "Size": "SMALL",
            "SlurmConfiguration": {
                "Accounting": {"Mode": "STANDARD", "DefaultPurgeTimeInDays": 30},
                "ScaleDownIdleTimeInSeconds": 300,
            },
        },
    )
    found.has_resource_properties(
        "AWS::PCS::ComputeNodeGroup",
        {
            "ScalingConfiguration": {"MinInstanceCount": 0, "MaxInstanceCount": 2},
            "SlurmConfiguration": {"SlurmCustomSettings": [{"ParameterName": "Features", "ParameterValue": "h200"}]},
        },
    )
    found.has_resource_properties(
        "AWS::PCS::Queue",
        {"SlurmConfiguration": {"SlurmCustomSettings": [{"ParameterName": "MaxTime", "ParameterValue": "7-0"}]}},
    )
    assert stack.resolve(nodes.compute_node_group_arn)
    assert stack.resolve(slurm.cluster_arn)


def test_what_slurm_refuses(stack: cdk.Stack, vpc: ec2.Vpc, fabric: Any) -> None:
    for at, (changed, id, said) in enumerate(
        (
            ({"scheduler_version": "24.11", "rest_api": True}, "PCS-10", "rest_api: true, which needs Slurm 25.05"),
            ({"scheduler_version": "25.05", "open_metrics": True}, "FMB-90", "open_metrics: true, which needs"),
            ({"accounting_purge": cdk.Duration.days(20_000)}, "FMB-90", "accounting_purge: 20000 is not between"),
            ({"size": "huge"}, "SHAPE", "size: huge is not one of small, medium, large"),
        )
    ):
        with pytest.raises(fm.FindingsError) as error:
            fm.PcsCluster(stack, f"S{at}", vpc_subnet=vpc.private_subnets[0], security_groups=[fabric], **changed)
        assert rules_of(error) == {id}
        assert said in str(error.value)
    local = ec2.Subnet.from_subnet_attributes(
        stack, "Local", subnet_id="subnet-0123456789abcdef0", availability_zone="us-west-2-lax-1a"
    )
    with pytest.raises(fm.FindingsError, match="PCS-01"):
        fm.PcsCluster(stack, "Far", vpc_subnet=local, security_groups=[fabric])
    slurm = fm.PcsCluster.from_cluster_id(stack, "There", "pcs_0123456789")
    with pytest.raises(fm.FindingsError, match="compute_node_groups: is empty"):
        fm.PcsQueue(stack, "Q", cluster=slurm, queue_name="gpu", compute_node_groups=[])
    assert slurm.grant_read(iam.Role(stack, "R", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))).success


def test_a_schedule_says_when_in_utc(stack: cdk.Stack, vpc: ec2.Vpc, fabric: Any, imported: Any) -> None:
    start, end = datetime(2027, 1, 11, 11, 30, tzinfo=UTC), datetime(2027, 1, 18, 11, 30, tzinfo=UTC)
    block = fm.CapacityBlock(capacity_reservation_id=CR, start=start, end=end)
    template = fm.EksLaunchTemplate(
        stack, "T", cluster=imported, security_groups=[fabric], instance_type="p6e-gb200.36xlarge", capacity=block
    )
    subnet = vpc.private_subnets[0]
    fm.EksGpuNodeGroup(
        stack, "G", cluster=imported, launch_template=template, vpc_subnet=subnet, group_name="gpu", count=9,
        launch=fm.Launch.SCHEDULED,
    )  # fmt: skip
    found = Template.from_stack(stack)
    for when in ("at(2027-01-11T11:30:00)", "at(2027-01-18T10:15:00)"):  # UltraServers go an hour before the end
        found.has_resource_properties(
            "AWS::Scheduler::Schedule", {"ScheduleExpression": when, "ScheduleExpressionTimezone": "UTC"}
        )
