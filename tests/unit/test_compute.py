"""Launch templates, fleets, placement groups and reservations: what they write, and what they refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

import fmblocks as fm

START = datetime(2027, 1, 11, 11, 30, tzinfo=UTC)
CR = "cr-0123456789abcdef0"
KEY = "arn:aws:kms:us-west-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
PLAN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/llm-pretrain"
Make = Callable[..., Any]


def block(**changed: Any) -> fm.CapacityBlock:
    given = {"availability_zone": "usw2-az2", "start": START, "end": START + timedelta(days=7)}
    return fm.CapacityBlock(capacity_reservation_id=CR, **{**given, **changed})


@pytest.fixture
def stack(cdk_context: dict[str, Any]) -> cdk.Stack:
    return cdk.Stack(cdk.App(context=cdk_context), "S", env=cdk.Environment(account="111122223333", region="us-west-2"))


@pytest.fixture
def network(stack: cdk.Stack) -> fm.ClusterVpc:
    return fm.ClusterVpc(stack, "Network", availability_zones=["usw2-az2"])


@pytest.fixture
def template(stack: cdk.Stack, network: fm.ClusterVpc) -> Make:
    efa = fm.EfaSecurityGroup(stack, "Efa", vpc=network.vpc)

    def make(id: str = "Template", **changed: Any) -> fm.EfaLaunchTemplate:
        given = {"instance_type": "p5.48xlarge", "security_groups": [efa]}
        return fm.EfaLaunchTemplate(stack, id, **{**given, **changed})

    return make


@pytest.fixture
def fleet(stack: cdk.Stack, network: fm.ClusterVpc, template: Make) -> Make:
    def make(*, in_zone: str | None = None, **changed: Any) -> fm.GpuFleet:
        told = (
            ec2.Subnet.from_subnet_attributes(stack, "Told", subnet_id="subnet-1", availability_zone=in_zone)
            if in_zone
            else None
        )
        of_template = {
            key: changed.pop(key) for key in ("capacity", "instance_type", "placement_group") if key in changed
        }
        given = {"vpc_subnet": told or network.primary_subnet, "count": 2}
        return fm.GpuFleet(stack, "Fleet", launch_template=template(**of_template), **{**given, **changed})

    return make


def data(stack: cdk.Stack) -> dict[str, Any]:
    """What a launch of the only template asks for."""
    (found,) = assertions.Template.from_stack(stack).find_resources("AWS::EC2::LaunchTemplate").values()
    return dict(found["Properties"]["LaunchTemplateData"])


def only(stack: cdk.Stack, kind: str) -> dict[str, Any]:
    (found,) = assertions.Template.from_stack(stack).find_resources(kind).values()
    return dict(found)


def warned(stack: cdk.Stack, construct: str) -> str:
    found = assertions.Annotations.from_stack(stack).find_warning(construct, assertions.Match.any_value())
    return str([one.entry.data for one in found])


def test_a_node_carries_its_groups_on_every_interface(stack: cdk.Stack, template: Make) -> None:
    cdk.Tags.of(stack).add("team", "42")
    made = template()
    found = data(stack)
    interfaces = found["NetworkInterfaces"]
    assert len(interfaces) == 33
    assert made.has_efa
    for interface in interfaces:
        assert len(interface["Groups"]) == 1
        assert interface["DeleteOnTermination"] is True
        assert "AssociatePublicIpAddress" not in interface
        assert "SubnetId" not in interface
    assert "SecurityGroupIds" not in found
    assert "SecurityGroups" not in found
    assert found["MetadataOptions"] == {
        "HttpEndpoint": "enabled",
        "HttpPutResponseHopLimit": 2,
        "HttpTokens": "required",
    }
    (root,) = found["BlockDeviceMappings"]
    assert root["Ebs"] == {"DeleteOnTermination": True, "Encrypted": True, "VolumeSize": 500, "VolumeType": "gp3"}
    specifications = {one["ResourceType"]: one["Tags"] for one in found["TagSpecifications"]}
    assert set(specifications) == {"instance", "volume", "network-interface"}
    assert all(tags == [{"Key": "team", "Value": "42"}] for tags in specifications.values())
    for absent in ("InstanceMarketOptions", "CapacityReservationSpecification", "Placement", "KeyName"):
        assert absent not in found


def test_a_type_without_efa_has_one_interface_without_a_public_address(stack: cdk.Stack, template: Make) -> None:
    assert not template(instance_type="m7i.xlarge").has_efa
    (interface,) = data(stack)["NetworkInterfaces"]
    assert (interface["InterfaceType"], interface["AssociatePublicIpAddress"]) == ("interface", False)


@pytest.mark.parametrize(
    ("capacity", "market", "target"),
    [
        (fm.OnDemandCapacity(), None, None),
        (fm.SpotCapacity(), "spot", None),
        (block(), "capacity-block", {"CapacityReservationTarget": {"CapacityReservationId": CR}}),
    ],
)
def test_capacity_reaches_the_launch(
    stack: cdk.Stack, template: Make, capacity: fm.ICapacity, market: str | None, target: object
) -> None:
    template(capacity=capacity)
    found = data(stack)
    assert found.get("InstanceMarketOptions", {}).get("MarketType") == market
    assert found.get("CapacityReservationSpecification") == target


def test_a_group_of_reservations_starts_nothing_on_demand(stack: cdk.Stack, template: Make) -> None:
    arn = "arn:aws:resource-groups:us-west-2:111122223333:group/g"
    template(capacity=fm.CapacityReservation.from_resource_group_arn(stack, "Reserved", resource_group_arn=arn))
    assert data(stack)["CapacityReservationSpecification"] == {
        "CapacityReservationPreference": "capacity-reservations-only",
        "CapacityReservationTarget": {"CapacityReservationResourceGroupArn": arn},
    }


def test_a_reservation_and_its_group_go_together(stack: cdk.Stack, template: Make) -> None:
    group = fm.EfaPlacementGroup(stack, "Group")
    reservation = fm.CapacityReservation(
        stack,
        "Reservation",
        instance_type="ml.p5.48xlarge",
        instance_count=2,
        availability_zone="usw2-az2",
        placement_group=group,
        tenancy=fm.Tenancy.DEDICATED,
    )
    template(capacity=reservation)
    found = data(stack)
    name = stack.resolve(group.placement_group_name)
    assert found["Placement"] == {"GroupName": name, "Tenancy": "dedicated"}
    id = stack.resolve(reservation.capacity_reservation_id)
    assert found["CapacityReservationSpecification"] == {"CapacityReservationTarget": {"CapacityReservationId": id}}
    arn = json.dumps(only(stack, "AWS::EC2::CapacityReservation")["Properties"]["PlacementGroupArn"])
    assert ":placement-group/" in arn
    assert json.dumps(name) in arn


@pytest.mark.parametrize(("zone", "key"), [("usw2-az2", "AvailabilityZoneId"), ("us-west-2a", "AvailabilityZone")])
def test_a_reservation(stack: cdk.Stack, zone: str, key: str) -> None:
    cdk.Tags.of(stack).add("team", "42")
    end = datetime(2027, 3, 1, 1, 0, tzinfo=UTC)
    made = fm.CapacityReservation(
        stack, "R", instance_type="p5.48xlarge", instance_count=1000, availability_zone=zone, end=end
    )
    found = only(stack, "AWS::EC2::CapacityReservation")
    properties = found["Properties"]
    assert properties[key] == zone
    assert {"AvailabilityZone", "AvailabilityZoneId"} & set(properties) == {key}
    assert (properties["EndDateType"], properties["EndDate"]) == ("limited", "2027-03-01T01:00:00Z")
    assert (properties["InstanceMatchCriteria"], properties["Tenancy"]) == ("targeted", "default")
    assert properties["TagSpecifications"] == [
        {
            "ResourceType": "capacity-reservation",
            "Tags": [{"Key": "Name", "Value": "S/R"}, {"Key": "team", "Value": "42"}],
        }
    ]
    assert not {"StartDate", "CommitmentInfo", "PlacementGroupArn"} & set(properties)
    # Destroyed, the bill stops; replaced, the old one stays until the new one is there.
    assert (found["DeletionPolicy"], found["UpdateReplacePolicy"]) == ("Delete", "Retain")
    assert made.capacity_reservation_arn


def test_a_reservation_tells_what_is_paid_for_and_idle(stack: cdk.Stack) -> None:
    made = fm.CapacityReservation(
        stack, "R", instance_type="p5.48xlarge", instance_count=4, availability_zone="usw2-az2"
    )
    cloudwatch.Alarm(stack, "Idle", metric=made.metric_available_instance_count(), threshold=0, evaluation_periods=12)
    told = only(stack, "AWS::CloudWatch::Alarm")["Properties"]
    assert (told["Namespace"], told["MetricName"], told["Period"]) == (
        "AWS/EC2CapacityReservations", "AvailableInstanceCount", 300,
    )  # fmt: skip
    assert told["Dimensions"] == [
        {"Name": "CapacityReservationId", "Value": stack.resolve(made.capacity_reservation_id)}
    ]
    assert made.metric_instance_utilization().metric_name == "InstanceUtilization"


def test_a_reservation_without_an_end_says_so(stack: cdk.Stack) -> None:
    fm.CapacityReservation(
        stack, "R", instance_type="p5.48xlarge", instance_count=1, availability_zone="usw2-az2", match=fm.Match.OPEN
    )
    properties = only(stack, "AWS::EC2::CapacityReservation")["Properties"]
    assert properties["EndDateType"] == "unlimited"
    assert "EndDate" not in properties
    assert properties["InstanceMatchCriteria"] == "open"


@pytest.mark.parametrize(
    ("said", "arguments"),
    [
        ("CR-03] instance_count: a reservation of 1001", {"instance_count": 1001}),
        ("CR-03] instance_count: a reservation of 0", {"instance_count": 0}),
        ("FMB-01] availability_zone: use1-az1 is not a zone of region us-west-2", {"availability_zone": "use1-az1"}),
        ("FMB-09] instance_type: p5.49xlarge", {"instance_type": "p5.49xlarge"}),
        ("CR-04] match: some is not one of open, targeted", {"match": "some"}),
        ("CR-05] tenancy: host is not one of", {"tenancy": "host"}),
        ("CR-06] platform: BeOS is not one of Linux/UNIX", {"platform": "BeOS"}),
        ("end: 2027-01-01T00:00:00 has no time zone", {"end": datetime(2027, 1, 1)}),
    ],
)
def test_a_reservation_refuses(stack: cdk.Stack, said: str, arguments: dict[str, Any]) -> None:
    given = {"instance_type": "p5.48xlarge", "instance_count": 1, "availability_zone": "usw2-az2"}
    with pytest.raises(fm.FindingsError, match=said.replace("]", r"\]")):
        fm.CapacityReservation(stack, "R", **{**given, **arguments})


def test_importers_of_reservations(stack: cdk.Stack) -> None:
    with pytest.raises(fm.FindingsError, match=r"FMB-25\] capacity_reservation_id: cr-old"):
        fm.CapacityReservation.from_capacity_reservation_id(stack, "A", capacity_reservation_id="cr-old")
    found = fm.CapacityReservation.from_capacity_reservation_id(stack, "B", capacity_reservation_id=CR)
    assert (found.capacity_reservation_id, found.placement_group, found.availability_zone) == (CR, None, None)
    assert [child.node.id for child in stack.node.find_all() if isinstance(child, cdk.CfnResource)] == []


def test_a_group_of_reservations_is_one_that_launches_may_name(stack: cdk.Stack, template: Make) -> None:
    """CR-15: a group without both configuration types is refused, or not used."""
    made = [
        fm.CapacityReservation(stack, id, instance_type="p5.48xlarge", instance_count=2, availability_zone="usw2-az2")
        for id in ("A", "B")
    ]
    arns = [one.capacity_reservation_arn for one in made]
    group = fm.CapacityReservationGroup(stack, "Both", capacity_reservation_arns=arns, availability_zone="usw2-az2")
    template(capacity=group)
    told = only(stack, "AWS::ResourceGroups::Group")["Properties"]
    assert told == {
        "Name": "cr-SBothE1DE2CF6",
        "Configuration": [
            {"Type": "AWS::EC2::CapacityReservationPool"},
            {
                "Type": "AWS::ResourceGroups::Generic",
                "Parameters": [{"Name": "allowed-resource-types", "Values": ["AWS::EC2::CapacityReservation"]}],
            },
        ],
        "Resources": stack.resolve(arns),
    }
    target = data(stack)["CapacityReservationSpecification"]["CapacityReservationTarget"]
    assert target == {"CapacityReservationResourceGroupArn": stack.resolve(group.resource_group_arn)}
    assert "Placement" not in data(stack)


def test_tags_of_a_stack_do_not_reach_a_placement_group(stack: cdk.Stack) -> None:
    """CloudFormation would replace it, and that fails while instances stand in it."""
    cdk.Tags.of(stack).add("team", "42")
    fm.EfaPlacementGroup(stack, "A", immutable_tags={"fmblocks:project": "p"})
    assert only(stack, "AWS::EC2::PlacementGroup")["Properties"] == {
        "Strategy": "cluster",
        "Tags": [{"Key": "fmblocks:project", "Value": "p"}],
    }


def test_a_placement_group_refuses(stack: cdk.Stack) -> None:
    partition = ec2.PlacementGroupStrategy.PARTITION
    with pytest.raises(fm.FindingsError, match=r"PG-03\] partition_count: 8 is not between 1 and the 7"):
        fm.EfaPlacementGroup(stack, "A", strategy=partition, partition_count=8)
    with pytest.raises(fm.FindingsError, match=r"PG-03\] partition_count: 2 is not read with mode cluster"):
        fm.EfaPlacementGroup(stack, "B", partition_count=2)
    fm.EfaPlacementGroup(stack, "C", strategy=partition, partition_count=7)
    assert only(stack, "AWS::EC2::PlacementGroup")["Properties"] == {"Strategy": "partition", "PartitionCount": 7}


def placed(stack: cdk.Stack) -> fm.EfaPlacementGroup:
    return fm.EfaPlacementGroup(stack, "Group")


def nic(card: int, device: int, kind: str = "efa-only") -> fm.NetworkInterface:
    return fm.NetworkInterface(
        network_card_index=card, device_index=device, interface_type=fm.NetworkInterfaceType(kind)
    )


@pytest.mark.parametrize(
    ("said", "arguments"),
    [
        ("X-03] capacity: a SageMaker training plan", {"capacity": fm.TrainingPlan(training_plan_arn=PLAN)}),
        ("CB-02] instance_type: Capacity Blocks are not sold for g6.xlarge", {"instance_type": "g6.xlarge", "capacity": block()}),
        ("FMB-09] instance_type: p5.49xlarge", {"instance_type": "p5.49xlarge"}),
        ("EFA-01] efa_interface_count: EFA is not available on g5.xlarge", {"instance_type": "g5.xlarge", "efa_interface_count": 1}),
        ("EFA-01] efa_mode: EFA is not available on g5.xlarge", {"instance_type": "g5.xlarge", "efa_mode": "required"}),
        ("EFA-02] efa_interface_count: 33", {"efa_interface_count": 33}),
        ("FMB-30] efa_profile: max-ip-bandwidth", {"instance_type": "p5en.48xlarge", "efa_profile": "max-ip-bandwidth"}),
        ("EFA-05] network_interfaces", {"network_interfaces": [fm.NetworkInterface(device_index=0, interface_type=fm.NetworkInterfaceType.EFA_ONLY)]}),
        ("EFA-03] network_interfaces", {"network_interfaces": [nic(0, 0, "interface"), nic(1, 0), nic(1, 1)]}),
        ("EFA-04] network_interfaces", {"network_interfaces": [nic(0, 0, "interface"), nic(32, 0)]}),
        ("EFA-06] network_interfaces", {"instance_type": "p6-b300.48xlarge", "network_interfaces": [nic(0, 0, "efa")]}),
        ("EFA-27] efa_interface_type", {"instance_type": "p6e-gb200.36xlarge", "efa_interface_type": "efa"}),
        ("FMB-41] efa_interface_count: 4 is not read with mode none", {"efa_mode": "none", "efa_interface_count": 4}),
        ("security_groups: is empty; pass an EfaSecurityGroup", {"security_groups": []}),
        ("efa_mode: some is not one of auto, required, none", {"efa_mode": "some"}),
    ],
)  # fmt: skip
def test_a_template_refuses(template: Make, said: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(fm.FindingsError, match=said.replace("]", r"\]")):
        template(**arguments)


def test_a_placement_group_and_capacity_that_does_not_stand_in_it(stack: cdk.Stack, template: Make) -> None:
    group = placed(stack)
    with pytest.raises(fm.FindingsError, match=r"X-01\] placement_group: "):
        template("A", capacity=block(), placement_group=group)
    foreign = fm.CapacityReservation.from_capacity_reservation_id(stack, "Foreign", capacity_reservation_id=CR)
    template("B", capacity=foreign, placement_group=group)
    assert "fmblocks:X-08" in warned(stack, "/S/B")
    own = fm.CapacityReservation.from_capacity_reservation_id(
        stack, "Own", capacity_reservation_id=CR, placement_group=group
    )
    assert template("C", capacity=own).placement_group is group
    assert warned(stack, "/S/C") == "[]"
    other = ec2.PlacementGroup.from_placement_group_name(stack, "Other", "other")
    with pytest.raises(fm.FindingsError, match=r"PG-13\] placement_group: other is not S/"):
        template("D", capacity=own, placement_group=other)


def test_only_what_is_known_of_a_group_is_held_against_it(stack: cdk.Stack, template: Make) -> None:
    spread = ec2.PlacementGroup(stack, "Spread", strategy=ec2.PlacementGroupStrategy.SPREAD)
    template("A", instance_type="t3.large", placement_group=spread)
    template(
        "B", instance_type="t3.large", placement_group=ec2.PlacementGroup.from_placement_group_name(stack, "I", "i")
    )
    with pytest.raises(fm.FindingsError, match=r"PG-07\] placement_group: cluster"):
        template("C", instance_type="t3.large", placement_group=placed(stack))
    with pytest.raises(fm.FindingsError, match=r"PG-12\] placement_group: .*spread"):
        fm.CapacityReservation(
            stack,
            "R",
            instance_type="p5.48xlarge",
            instance_count=1,
            availability_zone="usw2-az2",
            placement_group=spread,
        )


def test_a_reservation_feeds_its_own_type(stack: cdk.Stack, template: Make) -> None:
    bought = fm.CapacityReservation(
        stack, "R", instance_type="p5.48xlarge", instance_count=1, availability_zone="usw2-az2"
    )
    template("A", capacity=bought)
    with pytest.raises(fm.FindingsError, match=r"FMB-40\] capacity: the reservation serves S/R, of p5.48xlarge"):
        template("B", instance_type="p5en.48xlarge", capacity=bought)
    with pytest.raises(fm.FindingsError, match=r"FMB-25\] capacity: cr-1"):
        template("C", capacity=fm.CapacityBlock(capacity_reservation_id="cr-1"))


def test_zones_that_cannot_be_compared_are_not(stack: cdk.Stack, fleet: Make) -> None:
    """Subnets of ec2.Vpc have names of zones, what was bought has an id: they may be the same zone."""
    fleet(capacity=block(), in_zone="us-west-2b")
    assert "CB-07" not in warned(stack, "/S/Fleet")


def test_a_zone_that_is_not_looked_up_yet_is_no_mistake(stack: cdk.Stack) -> None:
    fm.CapacityReservation(stack, "R", instance_type="p5.48xlarge", instance_count=1, availability_zone="dummy1a")


def test_one_group_that_is_open_to_itself_is_enough(stack: cdk.Stack, network: fm.ClusterVpc, template: Make) -> None:
    """The rules of all groups of an interface count together."""
    monitoring = ec2.SecurityGroup(stack, "Monitoring", vpc=network.vpc)
    efa = fm.EfaSecurityGroup(stack, "Fabric", vpc=network.vpc)
    assert template("A", security_groups=[efa, monitoring]).node.validate() == []
    assert "EFA-12" in str(template("B", security_groups=[monitoring]).node.validate())


def test_a_fleet_waits_for_its_way_out_and_asks_for_its_least(
    stack: cdk.Stack, fleet: Make, network: fm.ClusterVpc
) -> None:
    fleet(capacity=block(), launch=fm.Launch.SCHEDULED, count=4, min_count=3)
    waits = only(stack, "AWS::AutoScaling::AutoScalingGroup")["DependsOn"]
    logical = {stack.get_logical_id(child) for child in network.node.find_all() if isinstance(child, ec2.CfnRoute)}
    assert logical & set(waits)
    actions = assertions.Template.from_stack(stack).find_resources("AWS::AutoScaling::ScheduledAction").values()
    assert sorted(one["Properties"]["MinSize"] for one in actions) == [0, 3]


def test_rules_for_lustre_stay_when_a_template_goes(cdk_context: dict[str, Any]) -> None:
    """EC2 refuses a rule twice, and CloudFormation creates before it deletes."""

    def ids(*names: str) -> set[str]:
        app = cdk.App(context=cdk_context)
        base, nodes = cdk.Stack(app, "Base"), cdk.Stack(app, "Nodes")
        vpc = fm.ClusterVpc(base, "Network", availability_zones=["1"])
        group = fm.EfaSecurityGroup(base, "Efa", vpc=vpc.vpc)
        lustre = fm.LustreFileSystem(
            base, "Lustre", vpc=vpc.vpc, vpc_subnet=vpc.primary_subnet, capacity_gib=1200, throughput_mbps_per_tib=125
        )
        for name in names:
            fm.EfaLaunchTemplate(nodes, name, instance_type="p5.48xlarge", security_groups=[group], file_system=lustre)
        found = assertions.Template.from_stack(nodes)
        rules = set(found.find_resources("AWS::EC2::SecurityGroupIngress"))
        for one in found.find_resources("AWS::EC2::LaunchTemplate").values():
            assert rules <= set(one["DependsOn"])
        return rules

    assert ids("A", "B") == ids("B")
    assert ids("B")


def test_fewer_interfaces_are_warned_about(stack: cdk.Stack, template: Make) -> None:
    template(efa_interface_count=16, capacity=fm.SpotCapacity())
    assert "fmblocks:EFA-18" in warned(stack, "/S/Template")


def test_spot_that_is_not_sold_is_warned_about(stack: cdk.Stack, template: Make) -> None:
    template(instance_type="p6e-gb200.36xlarge", capacity=fm.SpotCapacity())
    assert "fmblocks:EFA-25" in warned(stack, "/S/Template")


def test_lustre_is_mounted_over_efa_where_type_and_file_system_can(stack: cdk.Stack, template: Make) -> None:
    def system(id: str, *, efa: bool | None) -> fm.ILustreFileSystem:
        return fm.LustreFileSystem.from_lustre_file_system_attributes(
            stack, id, file_system_id="fs-1", dns_name=f"{id}.fsx", mount_name="abc", efa_enabled=efa
        )

    def boots(id: str, **arguments: Any) -> str:
        return str(stack.resolve(template(id, **arguments).resource.launch_template_data))

    assert "FMBLOCKS_LUSTRE_EFA=true" in boots("A", file_system=system("one", efa=True))
    assert "FMBLOCKS_LUSTRE_EFA=false" in boots("B", file_system=system("two", efa=None))
    over_tcp = boots("C", file_system=system("three", efa=True), instance_type="m7i.xlarge", mount_path="/data")
    assert "FMBLOCKS_LUSTRE_EFA=false" in over_tcp
    assert "FMBLOCKS_LUSTRE_PATH=/data" in over_tcp
    assert "FMBLOCKS_LUSTRE" not in boots("D", user_data=ec2.UserData.for_linux())
    with pytest.raises(fm.FindingsError, match=r"FSX-15\] file_system: p4d.24xlarge of E"):
        template("E", file_system=system("four", efa=True), instance_type="p4d.24xlarge")


def test_what_is_passed_in_is_used(stack: cdk.Stack, template: Make) -> None:
    role = iam.Role(stack, "Theirs", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
    made = template(
        role=role,
        machine_image=fm.FixedImage("ami-0123456789abcdef0"),
        root_volume_gib=100,
        root_volume_kms_key=kms.Key.from_key_arn(stack, "Key", KEY),
        root_device_name="/dev/sda1",
    )
    found = data(stack)
    assert found["ImageId"] == "ami-0123456789abcdef0"
    (root,) = found["BlockDeviceMappings"]
    assert root["DeviceName"] == "/dev/sda1"
    assert (root["Ebs"]["KmsKeyId"], root["Ebs"]["VolumeSize"]) == (KEY, 100)
    assert made.role is role
    assert "AmazonSSMManagedInstanceCore" in str(assertions.Template.from_stack(stack).find_resources("AWS::IAM::Role"))


@pytest.mark.parametrize(
    ("instance_type", "parameter"),
    [
        ("p5.48xlarge", "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id"),
        ("p6e-gb200.36xlarge", "/aws/service/deeplearning/ami/arm64/base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id"),
        ("trn2.48xlarge", "/aws/service/neuron/dlami/base/amazon-linux-2023/latest/image_id"),
        ("m7i.xlarge", "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"),
        ("m7g.16xlarge", "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-arm64"),
    ],
)  # fmt: skip
def test_the_image_follows_from_the_type(stack: cdk.Stack, template: Make, instance_type: str, parameter: str) -> None:
    template(instance_type=instance_type)
    parameters = assertions.Template.from_stack(stack).to_json()["Parameters"].values()
    assert parameter in {one.get("Default") for one in parameters}


def test_a_fleet_stands_in_one_subnet_and_pins_its_template(stack: cdk.Stack, fleet: Make) -> None:
    made = fleet()
    found = only(stack, "AWS::AutoScaling::AutoScalingGroup")
    properties = found["Properties"]
    assert len(properties["VPCZoneIdentifier"]) == 1
    assert (properties["MinSize"], properties["MaxSize"], properties["DesiredCapacity"]) == ("0", "2", "2")
    assert properties["LaunchTemplate"]["Version"] == stack.resolve(made.template.latest_version)
    assert not {"MixedInstancesPolicy", "WarmPoolConfiguration", "PlacementGroup"} & set(properties)
    # No spare node is needed to replace one: a full reservation has none.
    assert properties["InstanceMaintenancePolicy"] == {"MaxHealthyPercentage": 100, "MinHealthyPercentage": 0}
    assert found["UpdatePolicy"] == {"AutoScalingScheduledAction": {"IgnoreUnmodifiedGroupSizeProperties": True}}
    assert any("Role" in name for name in found["DependsOn"])
    assert made.metric_in_service_instances().metric_name == "GroupInServiceInstances"
    assert made.connections.security_groups
    assert iam.Grant.add_to_principal(grantee=made, actions=["s3:GetObject"], resource_arns=["*"]).success


def test_the_example_of_the_page_is_right(stack: cdk.Stack, root: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (root / "docs" / "constructs.md").read_text(), re.DOTALL)
    exec(code, {"self": stack, "fm": fm, "ec2": ec2})
    assert only(stack, "AWS::AutoScaling::AutoScalingGroup")["Properties"]["MaxSize"] == "4"
    assert data(stack)["CapacityReservationSpecification"]["CapacityReservationTarget"]["CapacityReservationId"] == CR
    assert warned(stack, "/S/Fleet") == "[]"


def test_a_fleet_replaces_nodes_where_it_is_told_to(stack: cdk.Stack, fleet: Make) -> None:
    fleet(instance_refresh=True)
    policy = only(stack, "AWS::AutoScaling::AutoScalingGroup")["UpdatePolicy"]["AutoScalingInstanceRefresh"]
    assert policy["Strategy"] == "Rolling"
    assert (policy["Preferences"]["MinHealthyPercentage"], policy["Preferences"]["MaxHealthyPercentage"]) == (0, 100)


def actions(stack: cdk.Stack) -> dict[str, Any]:
    found = assertions.Template.from_stack(stack).find_resources("AWS::AutoScaling::ScheduledAction").values()
    return {one["Properties"]["StartTime"]: one["Properties"]["DesiredCapacity"] for one in found}


def test_a_fleet_waits_for_its_block_and_leaves_before_its_end(stack: cdk.Stack, fleet: Make) -> None:
    fleet(capacity=block(), launch=fm.Launch.SCHEDULED)
    assert actions(stack) == {"2027-01-11T11:30:00Z": 2, "2027-01-18T10:45:00Z": 0}
    properties = only(stack, "AWS::AutoScaling::AutoScalingGroup")["Properties"]
    assert (properties["MinSize"], properties["MaxSize"], properties["DesiredCapacity"]) == ("0", "2", "0")


def test_a_fleet_starts_in_a_block_that_has_begun(stack: cdk.Stack, fleet: Make) -> None:
    fleet(capacity=block(), launch="now")
    assert actions(stack) == {"2027-01-18T10:45:00Z": 0}
    assert only(stack, "AWS::AutoScaling::AutoScalingGroup")["Properties"]["DesiredCapacity"] == "2"


def test_ultraservers_are_left_earlier(stack: cdk.Stack, fleet: Make) -> None:
    fleet(capacity=block(), instance_type="p6e-gb200.36xlarge", count=18)
    assert list(actions(stack)) == ["2027-01-18T10:15:00Z"]


@pytest.mark.parametrize(
    ("said", "arguments"),
    [
        ("CB-07] vpc_subnet: usw2-az1, but the nodes stand in usw2-az2", {"capacity": block(availability_zone="usw2-az1"), "in_zone": "usw2-az2"}),
        ("FMB-24] capacity: 2027-01-01", {"capacity": block(end=datetime(2027, 1, 1, tzinfo=UTC))}),
        ("FMB-32] min_count: 3 is not between 0 and count, 2", {"min_count": 3}),
        ("FMB-46] capacity.start: is required with launch scheduled", {"capacity": block(start=None), "launch": "scheduled"}),
        ("CB-15] count: 10", {"capacity": block(), "instance_type": "p6e-gb200.36xlarge", "count": 10}),
        ("capacity.start: 2027-01-11T11:30:00 has no time zone", {"capacity": block(start=START.replace(tzinfo=None))}),
        ("launch: later is not one of scheduled, now", {"launch": "later"}),
    ],
)  # fmt: skip
def test_a_fleet_refuses(fleet: Make, said: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(fm.FindingsError, match=said.replace("]", r"\]").replace(".", r"\.")):
        fleet(**arguments)


def test_a_fleet_of_a_reservation_stands_in_its_zone(stack: cdk.Stack, fleet: Make) -> None:
    elsewhere = fm.CapacityReservation.from_capacity_reservation_id(
        stack, "R", capacity_reservation_id=CR, availability_zone="usw2-az1"
    )
    with pytest.raises(fm.FindingsError, match=r"CR-07\] vpc_subnet: usw2-az1"):
        fleet(capacity=elsewhere, in_zone="usw2-az2")


def test_a_fleet_in_a_public_subnet_is_refused(stack: cdk.Stack, fleet: Make) -> None:
    made = ec2.Vpc(stack, "Made", availability_zones=["us-west-2a"])
    with pytest.raises(fm.FindingsError, match=r"NET-05\] vpc_subnet: S/Made/PublicSubnet1 is public"):
        fleet(vpc_subnet=made.public_subnets[0])


def test_a_spread_group_takes_seven(stack: cdk.Stack, fleet: Make) -> None:
    group = fm.EfaPlacementGroup(stack, "Spread", strategy=ec2.PlacementGroupStrategy.SPREAD)
    with pytest.raises(fm.FindingsError, match=r"PG-04\] count: 8"):
        fleet(placement_group=group, count=8)


def test_a_block_that_is_not_sold_like_this_is_warned_about(stack: cdk.Stack, fleet: Make) -> None:
    fleet(capacity=block(end=START + timedelta(days=9, hours=5)))
    assert "fmblocks:CB-05" in warned(stack, "/S/Fleet")
    other = cdk.Stack(cdk.App(), "Elsewhere", env=cdk.Environment(account="111122223333", region="eu-west-3"))
    group = ec2.SecurityGroup.from_security_group_id(other, "Group", "sg-0123456789abcdef0")
    fm.EfaLaunchTemplate(
        other, "T", instance_type="p6-b300.48xlarge", security_groups=[group], capacity=block(availability_zone=None)
    )
    assert "fmblocks:CB-21" in warned(other, "/Elsewhere/T")


def test_weeks_of_a_block_are_counted(stack: cdk.Stack, fleet: Make) -> None:
    fleet(capacity=block(end=START + timedelta(days=20)))
    assert "fmblocks:CB-04" in warned(stack, "/S/Fleet")


def test_a_block_without_its_end_is_warned_about(stack: cdk.Stack, fleet: Make) -> None:
    fleet(capacity=block(end=None))
    assert "fmblocks:FMB-47" in warned(stack, "/S/Fleet")
    assert actions(stack) == {}


def test_a_template_is_one_that_others_take(stack: cdk.Stack, template: Make) -> None:
    made = template()
    found = made.launch_template()
    assert made.launch_template() is found
    assert stack.resolve(found.launch_template_id) == stack.resolve(made.launch_template_id)
