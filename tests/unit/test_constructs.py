"""Constructs in somebody's own app: what they refuse, what they leave to tokens, what they take and give."""

# Wrong kinds of arguments are the point here.
# mypy: disable-error-code="arg-type,list-item"

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import jsii
import pytest
from aws_cdk import assertions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_scheduler as scheduler

import fmblocks as fm


@jsii.implements(cdk.IStableStringProducer)
class _Nothing:
    def produce(self) -> str:
        return "10.0.0.0/16"


CONTROLLER = fm.SlurmInstanceGroup(name="controller", role=fm.NodeRole.CONTROLLER, instance_type="m7i.xlarge", count=1)
TIERING: dict[str, Any] = {
    "storage_type": fm.StorageType.INTELLIGENT_TIERING,
    "capacity_gib": None,
    "throughput_mbps_per_tib": None,
    "throughput_capacity_mbps": 4000,
    "read_cache_sizing_mode": fm.ReadCacheSizingMode.NO_CACHE,
    "metadata_mode": fm.LustreMetadataMode.USER_PROVISIONED,
    "metadata_iops": 6000,
}
GPU = fm.SlurmInstanceGroup(name="gpu", role=fm.NodeRole.COMPUTE, instance_type="ml.p5.48xlarge", count=2)


BLOCK = fm.CapacityBlock(capacity_reservation_id="cr-0123456789abcdef0")
PLAN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/llm-pretrain"


@pytest.fixture
def stack(cdk_context: dict[str, Any]) -> cdk.Stack:
    return cdk.Stack(cdk.App(context=cdk_context), "S", env=cdk.Environment(account="111122223333", region="us-west-2"))


@pytest.fixture
def vpc(stack: cdk.Stack) -> ec2.IVpc:
    """A VPC that was made elsewhere."""
    return ec2.Vpc.from_vpc_attributes(
        stack,
        "Theirs",
        vpc_id="vpc-0123456789abcdef0",
        availability_zones=["us-west-2a"],
        private_subnet_ids=["subnet-0123456789abcdef0"],
        private_subnet_route_table_ids=["rtb-0123456789abcdef0"],
    )


@pytest.fixture
def lustre(stack: cdk.Stack, vpc: ec2.IVpc) -> Callable[..., fm.LustreFileSystem]:
    def make(**changed: Any) -> fm.LustreFileSystem:
        given = {"vpc_subnet": vpc.private_subnets[0], "capacity_gib": 2400, "throughput_mbps_per_tib": 250}
        return fm.LustreFileSystem(stack, "Lustre", vpc=vpc, **{**given, **changed})

    return make


@pytest.fixture
def cluster(stack: cdk.Stack, vpc: ec2.IVpc) -> Callable[..., fm.HyperPodSlurmCluster]:
    def make(**changed: Any) -> fm.HyperPodSlurmCluster:
        group = ec2.SecurityGroup.from_security_group_id(stack, "Group", "sg-0123456789abcdef0", mutable=False)
        given = {"vpc": vpc, "security_groups": [group], "instance_groups": [CONTROLLER, GPU]}
        return fm.HyperPodSlurmCluster(stack, "Cluster", **{**given, **changed})

    return make


def rules_of(error: pytest.ExceptionInfo[fm.FindingsError]) -> set[str]:
    return {finding.rule for finding in error.value.findings}


@pytest.mark.parametrize(
    ("rule", "arguments"),
    [
        ("NET-01", {"cidr": "10.0.0.0/24"}),
        ("FMB-01", {"availability_zones": ["use1-az1"]}),
        ("FMB-02", {"availability_zones": ["1"]}),
        ("FMB-03", {"availability_zones": ["usw2-az1", "us-west-2b"], "primary_availability_zone": "usw2-az1"}),
        ("FMB-04", {"availability_zones": ["usw2-az1", "usw2-az2"]}),
        ("FMB-06", {"availability_zones": ["usw2-az9"]}),
        ("FMB-07", {"nat_gateways": 2}),
        ("FMB-52", {"nat_gateways": 0, "interface_endpoints": ["ecr"]}),
        ("FMB-52", {"interface_endpoints": ["ssm"], "endpoint_availability_zones": ["usw2-az2"]}),
        ("FMB-14", {"availability_zones": []}),
        ("FMB-14", {"availability_zones": ["usw2-az1", "usw2-az1"], "primary_availability_zone": "usw2-az1"}),
        ("SHAPE", {"cidr": cdk.Lazy.string(_Nothing())}),
    ],
)
def test_a_vpc_refuses(stack: cdk.Stack, rule: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(fm.FindingsError) as caught:
        fm.ClusterVpc(stack, "Vpc", **{"availability_zones": ["usw2-az1"], **arguments})
    assert rule in rules_of(caught)


@pytest.mark.parametrize(
    ("rule", "arguments"),
    [
        ("FSX-02", {"capacity_gib": 5000}),
        ("FSX-03", {"throughput_mbps_per_tib": None}),
        ("FSX-05", {"version": "2.12"}),
        ("FSX-11", {"metadata_mode": fm.LustreMetadataMode.USER_PROVISIONED}),
        ("FSX-13", {"efa_enabled": True}),
        ("FMB-20", {"efa_enabled": True, "capacity_gib": 19200}),
        ("FSX-07", {"drive_cache_type": fm.DriveCacheType.READ}),
        ("FSX-08", {"storage_type": fm.StorageType.INTELLIGENT_TIERING}),
        ("FSX-09", {**TIERING, "throughput_capacity_mbps": 5000}),
        ("FSX-10", {**TIERING, "read_cache_sizing_mode": fm.ReadCacheSizingMode.USER_PROVISIONED}),
        ("FSX-20", {"automatic_backup_retention_days": 91}),
        ("FSX-21", {"data_compression_type": "zip"}),
        ("FSX-30", {"weekly_maintenance_start_time": "Sunday"}),
    ],
)
def test_a_file_system_refuses(
    lustre: Callable[..., fm.LustreFileSystem], rule: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(fm.FindingsError) as caught:
        lustre(**arguments)
    assert rule in rules_of(caught)


@pytest.mark.parametrize(
    ("rule", "arguments"),
    [
        ("FSX-12", {**TIERING, "metadata_mode": fm.LustreMetadataMode.AUTOMATIC, "metadata_iops": None}),
        ("FMB-29", {**TIERING, "throughput_capacity_mbps": 2000}),
    ],
)
def test_a_file_system_warns(
    stack: cdk.Stack, lustre: Callable[..., fm.LustreFileSystem], rule: str, arguments: dict[str, Any]
) -> None:
    lustre(**arguments)
    found = assertions.Annotations.from_stack(stack).find_warning("/S/Lustre", assertions.Match.any_value())
    assert any(f"fmblocks:{rule}" in str(one.entry.data) for one in found)


def test_intelligent_tiering_and_hard_disks_reach_the_template(stack: cdk.Stack, vpc: ec2.IVpc, lustre: Any) -> None:
    lustre(**{**TIERING, "read_cache_sizing_mode": "user_provisioned", "read_cache_size_gib": 64})
    fm.LustreFileSystem(
        stack,
        "Disks",
        vpc=vpc,
        vpc_subnet=vpc.private_subnets[0],
        deployment_type=fm.DeploymentType.PERSISTENT_1,
        storage_type=fm.StorageType.HDD,
        capacity_gib=1800,
        throughput_mbps_per_tib=40,
        drive_cache_type=fm.DriveCacheType.NONE,
        data_compression_type=fm.DataCompressionType.LZ4,
        automatic_backup_retention_days=7,
        daily_automatic_backup_start_time="05:00",
        copy_tags_to_backups=True,
        weekly_maintenance_start_time="7:06:00",
    )
    found = assertions.Template.from_stack(stack).find_resources("AWS::FSx::FileSystem")
    tiering, disks = (
        next(one["Properties"] for one in found.values() if one["Properties"]["StorageType"] == kind)
        for kind in ("INTELLIGENT_TIERING", "HDD")
    )
    assert "StorageCapacity" not in tiering
    assert tiering["LustreConfiguration"] == {
        "DeploymentType": "PERSISTENT_2",
        "DataCompressionType": "NONE",
        "AutomaticBackupRetentionDays": 0,
        "ThroughputCapacity": 4000,
        "DataReadCacheConfiguration": {"SizingMode": "USER_PROVISIONED", "SizeGiB": 64},
        "MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 6000},
    }
    assert disks["StorageCapacity"] == 1800
    assert disks["LustreConfiguration"] == {
        "DeploymentType": "PERSISTENT_1",
        "PerUnitStorageThroughput": 40,
        "DriveCacheType": "NONE",
        "DataCompressionType": "LZ4",
        "AutomaticBackupRetentionDays": 7,
        "DailyAutomaticBackupStartTime": "05:00",
        "CopyTagsToBackups": True,
        "WeeklyMaintenanceStartTime": "7:06:00",
    }


def test_nothing_of_the_old_links_is_written(lustre: Any, stack: cdk.Stack) -> None:
    """FSX-04: persistent_2 refuses them; associations take their place."""
    link_to(lustre())
    found = assertions.Template.from_stack(stack).find_resources("AWS::FSx::FileSystem")
    (configuration,) = [one["Properties"]["LustreConfiguration"] for one in found.values()]
    assert not {"ImportPath", "ExportPath", "AutoImportPolicy", "ImportedFileChunkSize"} & set(configuration)


def test_a_subnet_without_room_is_refused(stack: cdk.Stack, vpc: ec2.IVpc, lustre: Any) -> None:
    def subnet(id: str, cidr: str) -> ec2.ISubnet:
        return ec2.Subnet.from_subnet_attributes(stack, id, subnet_id=f"subnet-{id}", ipv4_cidr_block=cidr)

    with pytest.raises(fm.FindingsError, match=r"FSX-27\] vpc_subnet: 12 addresses"):
        lustre(vpc_subnet=subnet("a", "10.0.0.0/28"), capacity_gib=26400)
    fm.LustreFileSystem(
        stack, "Other", vpc=vpc, vpc_subnet=subnet("b", "10.0.0.0/28"), capacity_gib=24000, throughput_mbps_per_tib=125
    )


def test_a_scratch_file_system_refuses_a_key(stack: cdk.Stack, lustre: Callable[..., fm.LustreFileSystem]) -> None:
    with pytest.raises(fm.FindingsError, match="FSX-07"):
        lustre(deployment_type=fm.DeploymentType.SCRATCH_2, throughput_mbps_per_tib=None, kms_key=kms.Key(stack, "Key"))


@pytest.mark.parametrize(
    ("rule", "arguments"),
    [
        ("FMB-09", {"instance_groups": [CONTROLLER, fm.SlurmInstanceGroup(name="gpu", role=fm.NodeRole.COMPUTE, instance_type="p9.large", count=1)]}),
        ("HP-01", {"instance_groups": [CONTROLLER, fm.SlurmInstanceGroup(name="g_u", role=fm.NodeRole.COMPUTE, instance_type="p5.48xlarge", count=1)]}),
        ("HP-02", {"instance_groups": [CONTROLLER, GPU, GPU]}),
        ("HP-03", {"instance_groups": [CONTROLLER, fm.SlurmInstanceGroup(name="g", role=fm.NodeRole.COMPUTE, instance_type="trn2u.48xlarge", count=1)]}),
        ("HP-09", {"security_groups": []}),
        ("HP-11", {"instance_groups": [GPU]}),
        ("HP-13", {"instance_groups": [CONTROLLER, fm.SlurmInstanceGroup(name="g", role=fm.NodeRole.COMPUTE, instance_type="p5.48xlarge", count=1, ebs_volume_gib=0)]}),
        ("HP-14", {"mount_path": "fsx"}),
        ("X-02", {"instance_groups": [CONTROLLER, fm.SlurmInstanceGroup(name="g", role=fm.NodeRole.COMPUTE, instance_type="p5.48xlarge", count=1, capacity=fm.CapacityMode.ODCR)]}),
        ("TP-01", {"instance_groups": [CONTROLLER, fm.SlurmInstanceGroup(name="g", role=fm.NodeRole.COMPUTE, instance_type="p5.48xlarge", count=1, capacity=fm.CapacityMode.TRAINING_PLAN)]}),
    ],
)  # fmt: skip
def test_a_cluster_refuses(
    cluster: Callable[..., fm.HyperPodSlurmCluster], rule: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(fm.FindingsError) as caught:
        cluster(**arguments)
    assert rule in rules_of(caught)


@pytest.mark.parametrize(
    ("rule", "arguments"),
    [
        ("HP-04", {"alternative_instance_types": ["p5en.48xlarge"]}),
        ("HP-05", {"min_count": 1}),
        ("HP-18", {"threads_per_core": 3}),
        ("FMB-31", {"image_id": "my image"}),
    ],
)
def test_a_group_refuses(cluster: Callable[..., fm.HyperPodSlurmCluster], rule: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(fm.FindingsError) as caught:
        cluster(instance_groups=[CONTROLLER, dataclasses.replace(GPU, **arguments)])
    assert rules_of(caught) == {rule}
    assert "instance_groups[1]." in str(caught.value)


def test_what_a_group_can_be_told_reaches_the_template(
    stack: cdk.Stack, cluster: Callable[..., fm.HyperPodSlurmCluster]
) -> None:
    flexible = dataclasses.replace(
        GPU,
        min_count=1,
        alternative_instance_types=["ml.p5e.48xlarge"],
        threads_per_core=1,
        image_id="ami-0123456789abcdef0",
    )
    cluster(instance_groups=[CONTROLLER, flexible], node_provisioning=fm.NodeProvisioning.CONTINUOUS)
    (found,) = assertions.Template.from_stack(stack).find_resources("AWS::SageMaker::Cluster").values()
    (group,) = [one for one in found["Properties"]["InstanceGroups"] if one["InstanceGroupName"] == "gpu"]
    assert "InstanceType" not in group
    assert group["InstanceRequirements"] == {"InstanceTypes": ["ml.p5.48xlarge", "ml.p5e.48xlarge"]}
    assert (group["MinInstanceCount"], group["ThreadsPerCore"]) == (1, 1)
    assert group["ImageId"] == "ami-0123456789abcdef0"


def test_nodes_do_not_stand_in_public_subnets(stack: cdk.Stack, cluster: Any) -> None:
    made = ec2.Vpc(stack, "Made", availability_zones=["us-west-2a"])
    group = ec2.SecurityGroup.from_security_group_id(stack, "Other", "sg-0123456789abcdef0", mutable=False)
    with pytest.raises(fm.FindingsError, match=r"NET-05\] subnets\[1\]: S/Made/PublicSubnet1 is public"):
        fm.HyperPodSlurmCluster(
            stack,
            "Mixed",
            subnets=[made.private_subnets[0], made.public_subnets[0]],
            security_groups=[group],
            instance_groups=[CONTROLLER],
        )
    theirs = ec2.Vpc.from_vpc_attributes(
        stack, "Imported", vpc_id="vpc-1", availability_zones=["us-west-2a"], public_subnet_ids=["subnet-1"]
    )
    with pytest.raises(fm.FindingsError, match=r"NET-05\] subnets\[0\]"):
        cluster(vpc=theirs, subnets=[ec2.Subnet.from_subnet_id(stack, "Again", "subnet-1")])


@pytest.mark.parametrize(
    ("opened", "said"),
    [((), "no inbound and no outbound rule"), (("in",), "no outbound rule"), (("in", "out"), None), (("tcp",), "no")],
)
def test_a_group_of_nodes_is_open_to_itself(
    stack: cdk.Stack, vpc: ec2.IVpc, cluster: Any, opened: tuple[str, ...], said: str | None
) -> None:
    group = ec2.SecurityGroup(stack, "Plain", vpc=vpc, allow_all_outbound=False)
    cluster(security_groups=[fm.EfaSecurityGroup(stack, "Efa", vpc=vpc), group])
    # After the cluster, as people do.
    for way in opened:
        if way == "out":
            group.add_egress_rule(group, ec2.Port.all_traffic())
        else:
            group.add_ingress_rule(group, ec2.Port.all_traffic() if way == "in" else ec2.Port.all_tcp())
    if said is None:
        assert assertions.Template.from_stack(stack)
        return
    with pytest.raises(RuntimeError, match=f"EFA-12.*S/Plain has {said}"):
        assertions.Template.from_stack(stack)


def test_volume_keys_need_continuous_provisioning(
    stack: cdk.Stack, cluster: Callable[..., fm.HyperPodSlurmCluster]
) -> None:
    with pytest.raises(fm.FindingsError, match="FMB-12"):
        cluster(volume_kms_key=kms.Key(stack, "Key"))


def test_continuous_provisioning_warns_and_encrypts_volumes(
    stack: cdk.Stack, cluster: Callable[..., fm.HyperPodSlurmCluster]
) -> None:
    cluster(volume_kms_key=kms.Key(stack, "Key"), node_provisioning=fm.NodeProvisioning.CONTINUOUS)
    assertions.Annotations.from_stack(stack).has_warning(
        "/S/Cluster", assertions.Match.string_like_regexp(".*continuous is for EKS only.*fmblocks:HP-12.*")
    )
    template = assertions.Template.from_stack(stack)
    (found,) = template.find_resources("AWS::SageMaker::Cluster").values()
    assert found["Properties"]["NodeProvisioningMode"] == "Continuous"
    assert "Orchestrator" not in found["Properties"]
    for group in found["Properties"]["InstanceGroups"]:
        assert "VolumeKmsKeyId" in group["InstanceStorageConfigs"][0]["EbsVolumeConfig"]
    template.has_resource_properties(
        "AWS::IAM::Policy",
        {
            "PolicyDocument": {
                "Statement": assertions.Match.array_with(
                    [
                        assertions.Match.object_like(
                            {
                                "Action": "kms:CreateGrant",
                                "Condition": {
                                    "StringEquals": assertions.Match.any_value(),
                                    "Bool": {"kms:GrantIsForAWSResource": "true"},
                                },
                            }
                        )
                    ]
                )
            }
        },
    )


def test_spot_groups(stack: cdk.Stack, cluster: Callable[..., fm.HyperPodSlurmCluster]) -> None:
    spot = fm.SlurmInstanceGroup(
        name="gpu", role=fm.NodeRole.COMPUTE, instance_type="p5.48xlarge", count=2, capacity=fm.CapacityMode.SPOT
    )
    cluster(instance_groups=[CONTROLLER, spot])
    said = assertions.Match.string_like_regexp(
        r"instance_groups\[1\]\.capacity: AWS describes spot groups .* for EKS only"
    )
    assertions.Annotations.from_stack(stack).has_warning("/S/Cluster", said)
    (found,) = assertions.Template.from_stack(stack).find_resources("AWS::SageMaker::Cluster").values()
    assert found["Properties"]["InstanceGroups"][1]["CapacityRequirements"] == {"Spot": {}}


def test_tokens_are_left_to_the_deployment(
    stack: cdk.Stack,
    lustre: Callable[..., fm.LustreFileSystem],
    cluster: Callable[..., fm.HyperPodSlurmCluster],
) -> None:
    """A token fails every pattern and every range; nobody knows its value yet."""
    number = cdk.CfnParameter(stack, "Number", type="Number")
    text = cdk.CfnParameter(stack, "Text")
    lustre(capacity_gib=number.value_as_number, version=text.value_as_string)
    group = fm.SlurmInstanceGroup(
        name="gpu",
        role=fm.NodeRole.COMPUTE,
        instance_type=text.value_as_string,
        count=number.value_as_number,
    )
    cluster(instance_groups=[CONTROLLER, group], mount_path=text.value_as_string)
    template = assertions.Template.from_stack(stack)
    template.has_resource_properties("AWS::FSx::FileSystem", {"StorageCapacity": {"Ref": "Number"}})


def test_what_is_wrong_beside_a_token_is_still_refused(
    stack: cdk.Stack, lustre: Callable[..., fm.LustreFileSystem]
) -> None:
    number = cdk.CfnParameter(stack, "Number", type="Number")
    with pytest.raises(fm.FindingsError, match="FSX-03"):
        lustre(capacity_gib=number.value_as_number, throughput_mbps_per_tib=7)


def test_the_vpc_is_one_that_others_take(stack: cdk.Stack) -> None:
    network = fm.ClusterVpc(
        stack, "Net", availability_zones=["usw2-az1", "usw2-az2"], primary_availability_zone="usw2-az2", nat_gateways=2
    )
    assert network.primary_subnet is network.private_subnet("usw2-az2")
    with pytest.raises(KeyError):
        network.private_subnet("usw2-az3")
    ec2.Instance(
        stack,
        "Bastion",
        vpc=network.vpc,
        vpc_subnets=ec2.SubnetSelection(subnets=[network.primary_subnet]),
        instance_type=ec2.InstanceType("t3.micro"),
        machine_image=ec2.MachineImage.generic_linux({"us-west-2": "ami-0123456789abcdef0"}),
    )
    template = assertions.Template.from_stack(stack)
    template.resource_count_is("AWS::EC2::NatGateway", 2)
    template.resource_count_is("AWS::EC2::Instance", 1)


def test_whoever_depends_on_the_vpc_waits_for_its_routes(
    stack: cdk.Stack, cluster: Callable[..., fm.HyperPodSlurmCluster]
) -> None:
    network = fm.ClusterVpc(stack, "Net", availability_zones=["usw2-az1"])
    cluster(vpc=network.vpc)
    template = assertions.Template.from_stack(stack)
    (found,) = template.find_resources("AWS::SageMaker::Cluster").values()
    for kind in ("AWS::EC2::Route", "AWS::EC2::VPCEndpoint"):
        assert set(template.find_resources(kind)) <= set(found["DependsOn"])


def test_a_role_that_is_given_gets_what_nodes_need(
    stack: cdk.Stack, cluster: Callable[..., fm.HyperPodSlurmCluster]
) -> None:
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    assert cluster(execution_role=role).execution_role is role
    template = assertions.Template.from_stack(stack)
    template.resource_count_is("AWS::IAM::Role", 1)
    (policy,) = template.find_resources("AWS::IAM::Policy").values()
    allowed = str(policy)
    for action in (
        "ec2:CreateNetworkInterface'",
        "ec2:CreateTags",
        "ec2:DetachNetworkInterface",
        "ec2:DescribeSubnets",
    ):
        assert action in allowed
    (found,) = template.find_resources("AWS::IAM::Role").values()
    assert "AmazonSageMakerClusterInstanceRolePolicy" in str(found["Properties"]["ManagedPolicyArns"])


def test_importers_create_nothing(stack: cdk.Stack) -> None:
    imported = fm.LustreFileSystem.from_lustre_file_system_attributes(
        stack, "Imported", file_system_id="fs-1", dns_name="fs-1.fsx.us-west-2.amazonaws.com", mount_name="abc"
    )
    assert (imported.file_system_id, imported.mount_name) == ("fs-1", "abc")
    workspace = fm.MetricsWorkspace.from_workspace_attributes(
        stack,
        "Workspace",
        workspace_arn="arn:aws:aps:us-west-2:111122223333:workspace/ws-1",
        prometheus_endpoint="https://w/",
    )
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
    workspace.grant_remote_write(role).assert_success()
    workspace.grant_query(role).assert_success()
    fm.HyperPodSlurmCluster.from_cluster_arn(
        stack, "Cluster", "arn:aws:sagemaker:us-west-2:111122223333:cluster/abc"
    ).grant_read(role).assert_success()
    template = assertions.Template.from_stack(stack)
    assert {found["Type"] for found in template.to_json()["Resources"].values()} == {
        "AWS::IAM::Role",
        "AWS::IAM::Policy",
    }
    text = str(template.find_resources("AWS::IAM::Policy"))
    assert "aps:RemoteWrite" in text
    assert "aps:GetMetricMetadata" in text
    assert "sagemaker:DescribeCluster" in text


def test_associations_of_one_file_system_wait_for_each_other(
    stack: cdk.Stack, lustre: Callable[..., fm.LustreFileSystem]
) -> None:
    system, bucket = lustre(), s3.Bucket.from_bucket_name(stack, "Bucket", "data")
    for name in ("A", "B", "C"):
        fm.DataRepositoryAssociation(
            stack, name, file_system=system, file_system_path=f"/{name}/", bucket=bucket, bucket_prefix=f"{name}"
        )
    found = assertions.Template.from_stack(stack).find_resources("AWS::FSx::DataRepositoryAssociation")
    first, second, third = sorted(found)
    assert "DependsOn" not in found[first]
    assert found[second]["DependsOn"] == [first]
    assert found[third]["DependsOn"] == [second]
    assert found[first]["Properties"]["DataRepositoryPath"] == "s3://data/A/"
    assert found[first]["Properties"]["FileSystemPath"] == "/A"


@pytest.mark.parametrize(
    ("rule", "arguments"),
    [
        ("DRA-03", {"file_system_path": "data"}),
        ("DRA-06", {"auto_import": [fm.DataRepositoryEvent.NEW, fm.DataRepositoryEvent.NEW]}),
        ("DRA-07", {"imported_file_chunk_size_mib": 0}),
    ],
)
def test_an_association_refuses(
    stack: cdk.Stack, lustre: Callable[..., fm.LustreFileSystem], rule: str, arguments: dict[str, Any]
) -> None:
    given = {"file_system_path": "/data", "bucket": s3.Bucket.from_bucket_name(stack, "Bucket", "data")}
    with pytest.raises(fm.FindingsError, match=rule):
        fm.DataRepositoryAssociation(stack, "Link", file_system=lustre(), **{**given, **arguments})


def test_a_file_system_with_backups_takes_no_association(lustre: Any) -> None:
    with pytest.raises(fm.FindingsError, match="DRA-11\\] file_system: 7 days of backups"):
        link_to(lustre(automatic_backup_retention_days=7))


def test_scratch_1_takes_no_association(stack: cdk.Stack, lustre: Callable[..., fm.LustreFileSystem]) -> None:
    system = lustre(deployment_type=fm.DeploymentType.SCRATCH_1, throughput_mbps_per_tib=None, capacity_gib=1200)
    with pytest.raises(fm.FindingsError, match="DRA-02"):
        fm.DataRepositoryAssociation(
            stack,
            "Link",
            file_system=system,
            file_system_path="/data",
            bucket=s3.Bucket.from_bucket_name(stack, "Bucket", "data"),
        )


def test_metrics_of_a_file_system(stack: cdk.Stack, lustre: Callable[..., fm.LustreFileSystem]) -> None:
    system = lustre()
    metric = system.metric_free_data_storage_capacity()
    assert (metric.namespace, metric.metric_name, metric.statistic) == ("AWS/FSx", "FreeDataStorageCapacity", "Sum")
    assert stack.resolve(metric.dimensions) == {"FileSystemId": stack.resolve(system.file_system_id)}


def test_a_bundle_without_its_script_is_refused(stack: cdk.Stack, tmp_path: Any) -> None:
    with pytest.raises(fm.FindingsError, match=r"HP-08.*setup\.sh is not a file"):
        fm.LifecycleBundle(
            stack,
            "Bundle",
            bucket=s3.Bucket(stack, "Bucket"),
            path=tmp_path,
            on_init_complete="setup.sh",
        )


def test_a_bucket_without_a_key_uses_those_of_s3(stack: cdk.Stack) -> None:
    fm.DataBucket(stack, "Data", removal_policy=cdk.RemovalPolicy.DESTROY)
    template = assertions.Template.from_stack(stack)
    template.has_resource(
        "AWS::S3::Bucket",
        {
            "DeletionPolicy": "Delete",
            "Properties": {
                "BucketEncryption": {
                    "ServerSideEncryptionConfiguration": [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]
                },
                "LoggingConfiguration": assertions.Match.absent(),
            },
        },
    )


def test_a_workspace_takes_a_key(stack: cdk.Stack) -> None:
    fm.MetricsWorkspace(stack, "Metrics", retention_days=30, kms_key=kms.Key(stack, "Key"))
    assertions.Template.from_stack(stack).has_resource_properties(
        "AWS::APS::Workspace",
        {
            "KmsKeyArn": assertions.Match.any_value(),
            "WorkspaceConfiguration": {"RetentionPeriodInDays": 30},
        },
    )


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda lustre, _cluster: lustre(deployment_type="persistent_3"),
            "deployment_type: persistent_3 is not one of scratch_1",
        ),
        (lambda lustre, _cluster: lustre(metadata_mode="auto"), "did you mean automatic?"),
        (
            lambda _lustre, cluster: cluster(node_provisioning="sometimes"),
            "sometimes is not one of standard, continuous",
        ),
    ],
)
def test_what_is_no_member_is_refused(lustre: Any, cluster: Any, make: Any, said: str) -> None:
    with pytest.raises(fm.FindingsError, match=said):
        make(lustre, cluster)


def test_text_is_read_as_the_member_it_names(stack: cdk.Stack, lustre: Any, cluster: Any) -> None:
    """jsii does not look at our enums; compared by identity, text would silently build something else."""
    lustre(deployment_type="persistent_2")
    spot = fm.SlurmInstanceGroup(
        name="gpu",
        role="compute",
        instance_type=ec2.InstanceType("p5.48xlarge"),
        count=1,
        capacity="spot",
    )
    cluster(instance_groups=[CONTROLLER, spot], node_provisioning="standard", node_recovery="none")
    template = assertions.Template.from_stack(stack)
    (system,) = template.find_resources("AWS::FSx::FileSystem").values()
    assert system["Properties"]["LustreConfiguration"]["MetadataConfiguration"] == {"Mode": "AUTOMATIC"}
    (found,) = template.find_resources("AWS::SageMaker::Cluster").values()
    assert found["Properties"]["NodeRecovery"] == "None"
    assert "NodeProvisioningMode" not in found["Properties"]
    assert found["Properties"]["InstanceGroups"][1]["CapacityRequirements"] == {"Spot": {}}
    assert found["Properties"]["InstanceGroups"][1]["InstanceType"] == "ml.p5.48xlarge"


def test_a_group_of_its_own_is_kept_with_the_file_system(stack: cdk.Stack, lustre: Any) -> None:
    lustre()
    for found in assertions.Template.from_stack(stack).to_json()["Resources"].values():
        assert found["DeletionPolicy"] == "RetainExceptOnCreate", found["Type"]


def test_a_cluster_lets_its_nodes_into_the_file_system_once(
    stack: cdk.Stack, vpc: ec2.IVpc, lustre: Any, cluster: Any
) -> None:
    efa = fm.EfaSecurityGroup(stack, "Efa", vpc=vpc)
    group = fm.LustreSecurityGroup(stack, "LustreGroup", vpc=vpc, clients={"Nodes": efa})
    other = ec2.SecurityGroup.from_security_group_id(stack, "Other", "sg-0aaaaaaaaaaaaaaaa")
    cluster(file_system=lustre(security_group=group), security_groups=[efa, other])
    template = assertions.Template.from_stack(stack)
    opened = [
        (str(rule["Properties"]["SourceSecurityGroupId"]), rule["Properties"]["FromPort"])
        for rule in template.find_resources("AWS::EC2::SecurityGroupIngress").values()
        if rule["Properties"]["IpProtocol"] == "tcp"
    ]
    assert len(opened) == len(set(opened)) == 6  # itself, the fabric, the other group; two ranges each
    (system,) = template.find_resources("AWS::FSx::FileSystem").values()
    assert set(template.find_resources("AWS::EC2::SecurityGroupIngress")) - set(system["DependsOn"]) == {
        id for id in template.find_resources("AWS::EC2::SecurityGroupIngress") if id.startswith("Efa")
    }


def test_connections(stack: cdk.Stack, vpc: ec2.IVpc, lustre: Any, cluster: Any) -> None:
    bastion = ec2.SecurityGroup(stack, "Bastion", vpc=vpc)
    lustre().connections.allow_default_port_from(bastion)
    assert len(cluster().connections.security_groups) == 1
    assertions.Template.from_stack(stack).has_resource_properties(
        "AWS::EC2::SecurityGroupIngress", {"FromPort": 988, "ToPort": 1023}
    )


def test_types_with_efa_take_one_subnet(stack: cdk.Stack, cluster: Any) -> None:
    two = ec2.Vpc.from_vpc_attributes(
        stack,
        "Two",
        vpc_id="vpc-0123456789abcdef1",
        availability_zones=["us-west-2a", "us-west-2b"],
        private_subnet_ids=["subnet-0123456789abcdef1", "subnet-0123456789abcdef2"],
        private_subnet_route_table_ids=["rtb-0123456789abcdef1", "rtb-0123456789abcdef2"],
    )
    with pytest.raises(fm.FindingsError, match=r"X-04.*2 subnets for p5\.48xlarge"):
        cluster(vpc=two)


def test_associations_of_one_file_system_are_checked_together(stack: cdk.Stack, lustre: Any) -> None:
    system, bucket = lustre(), s3.Bucket(stack, "Bucket")
    fm.DataRepositoryAssociation(
        stack, "A", file_system=system, file_system_path="/a", bucket=bucket, bucket_prefix="a"
    )
    with pytest.raises(fm.FindingsError, match=r"DRA-03.*/a/b overlaps /a"):
        fm.DataRepositoryAssociation(
            stack, "B", file_system=system, file_system_path="/a/b", bucket=bucket, bucket_prefix="b"
        )
    with pytest.raises(fm.FindingsError, match="DRA-04"):
        fm.DataRepositoryAssociation(stack, "C", file_system=system, file_system_path="/c", bucket=bucket)


def test_an_imported_file_system_takes_associations(stack: cdk.Stack) -> None:
    system = fm.LustreFileSystem.from_lustre_file_system_attributes(
        stack, "Imported", file_system_id="fs-0123456789abcdef0", dns_name="fs.fsx", mount_name="abc"
    )
    fm.DataRepositoryAssociation(
        stack, "A", file_system=system, file_system_path="/a", bucket=s3.Bucket.from_bucket_name(stack, "B", "data")
    )
    assertions.Template.from_stack(stack).has_resource_properties(
        "AWS::FSx::DataRepositoryAssociation", {"FileSystemId": "fs-0123456789abcdef0"}
    )


@pytest.mark.parametrize("days", [0, 1096])
def test_a_workspace_refuses(stack: cdk.Stack, days: int) -> None:
    with pytest.raises(fm.FindingsError, match="FMB-15"):
        fm.MetricsWorkspace(stack, "Metrics", retention_days=days)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda s, v: fm.LustreFileSystem(s, "L", vpc=v, vpc_subnet="subnet-1", capacity_gib=1200), "S/L: error .* vpc_subnet: 'subnet-1' is not ISubnet"),
        (lambda s, v: fm.LustreFileSystem(s, "L", vpc=v, vpc_subnet=v.private_subnets[0], capacity_gib="1200"), "capacity_gib: '1200' is not int"),
        (lambda s, v: fm.LustreFileSystem(s, "L", vpc=v, vpc_subnet=v.private_subnets[0], capacity_gib=True), "capacity_gib: True is not int"),
        (lambda s, v: fm.LustreFileSystem(s, "L", vpc=v, vpc_subnet=v.private_subnets[0], capacity_gib=1200, kms_key="alias/x"), "kms_key: 'alias/x' is not IKey"),
        (lambda s, v: fm.ClusterVpc(s, "V", availability_zones=2), "availability_zones: 2 is not Sequence"),
        (lambda s, v: fm.ClusterVpc(s, "V", availability_zones="usw2-az1"), "availability_zones: 'usw2-az1' is not Sequence"),
        (lambda s, v: fm.LustreSecurityGroup(s, "G", vpc=v, clients=["x"]), "clients: .* is not Mapping"),
        (lambda s, v: fm.HyperPodSlurmCluster(s, "C", subnets=v.private_subnets[0], security_groups=[], instance_groups=[]), "subnets: .* is not Sequence"),
        (lambda s, v: fm.HyperPodSlurmCluster(s, "C", security_groups=[], instance_groups=[{}]), "instance_groups: .* is not Sequence"),
        (lambda s, v: fm.SlurmInstanceGroup(name="g", role=fm.NodeRole.COMPUTE, instance_type="m5.large", count="4"), "SlurmInstanceGroup g: error .* count: '4' is not int"),
        (lambda s, v: fm.DataBucket(s, "B", encryption_key="key"), "encryption_key: 'key' is not IKey"),
    ],
)  # fmt: skip
def test_arguments_of_the_wrong_kind_are_named(stack: cdk.Stack, vpc: ec2.IVpc, make: Any, said: str) -> None:
    with pytest.raises(fm.FindingsError, match=said):
        make(stack, vpc)


def test_a_rule_can_be_suppressed_by_context(cdk_context: dict[str, Any]) -> None:
    app = cdk.App(context={**cdk_context, "fmblocks:suppress": ["FMB-15"]})
    assert fm.MetricsWorkspace(cdk.Stack(app, "S"), "Metrics", retention_days=2000).workspace_arn


def test_errors_name_the_construct(stack: cdk.Stack, lustre: Callable[..., fm.LustreFileSystem]) -> None:
    with pytest.raises(fm.FindingsError, match=r"^S/Lustre: error \[FSX-02\] capacity_gib: 5000"):
        lustre(capacity_gib=5000)


def test_a_cluster_mounts_a_file_system_of_another_stack(stack: cdk.Stack, vpc: ec2.IVpc, lustre: Any) -> None:
    """Rules beside the file system would refer to the cluster's stack, and that one refers to the file system's."""
    consumer = cdk.Stack(cdk.App.of(stack), "Consumer", env=cdk.Environment(account=stack.account, region=stack.region))
    efa = fm.EfaSecurityGroup(consumer, "Efa", vpc=vpc)
    fm.HyperPodSlurmCluster(
        consumer,
        "Cluster",
        vpc=vpc,
        security_groups=[efa],
        instance_groups=[CONTROLLER, GPU],
        file_system=lustre(security_group=fm.LustreSecurityGroup(stack, "LustreGroup", vpc=vpc)),
    )
    opened = assertions.Template.from_stack(consumer).find_resources("AWS::EC2::SecurityGroupIngress")
    rules = [rule["Properties"] for rule in opened.values() if rule["Properties"]["IpProtocol"] == "tcp"]
    assert sorted(rule["FromPort"] for rule in rules) == [988, 1018]
    assert all("Fn::GetStackOutput" in rule["GroupId"] for rule in rules)
    assert consumer.dependencies == [stack]


def test_two_subnets_of_a_vpc_that_is_being_made_are_refused(stack: cdk.Stack, cluster: Any) -> None:
    """Their ids are tokens, yet their number is known."""
    made = ec2.Vpc(stack, "Made", availability_zones=["us-west-2a", "us-west-2b"])
    with pytest.raises(fm.FindingsError, match="X-04"):
        cluster(vpc=made)


def test_scope_and_id_are_taken_by_name(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    assert fm.EfaSecurityGroup(scope=stack, id="Efa", vpc=vpc).node.path == "S/Efa"


def test_a_handle_of_another_resource_is_refused(stack: cdk.Stack, lustre: Any) -> None:
    with pytest.raises(fm.FindingsError, match=r"kms_key: .* is not IKey"):
        lustre(kms_key=s3.Bucket(stack, "Bucket"))


def test_a_token_hides_neither_what_is_wrong_nor_that_it_was_skipped(
    stack: cdk.Stack, cluster: Any, lustre: Any
) -> None:
    plan = cdk.CfnParameter(stack, "Plan").value_as_string
    planned = fm.SlurmInstanceGroup(
        name="gpu",
        role=fm.NodeRole.COMPUTE,
        instance_type="p5.48xlarge",
        count=2,
        capacity="training_plan",
        training_plan_arn=plan,
    )
    with pytest.raises(fm.FindingsError, match="HP-11"):
        cluster(instance_groups=[planned])
    lustre(capacity_gib=cdk.CfnParameter(stack, "Capacity", type="Number").value_as_number)
    found = assertions.Annotations.from_stack(stack).find_warning("/S/Lustre", assertions.Match.any_value())
    (said,) = [one.entry.data for one in found if "fmblocks:Skipped" in str(one.entry.data)]
    assert "FSX-02" in str(said)


def test_a_training_plan_feeds_a_group(stack: cdk.Stack, cluster: Any) -> None:
    planned = dataclasses.replace(GPU, capacity=fm.TrainingPlan(training_plan_arn=PLAN))
    cluster(instance_groups=[CONTROLLER, planned])
    (found,) = assertions.Template.from_stack(stack).find_resources("AWS::SageMaker::Cluster").values()
    given = [group.get("TrainingPlanArn") for group in found["Properties"]["InstanceGroups"]]
    assert given == [None, PLAN]


def test_what_cannot_be_built_cannot_be_suppressed(cdk_context: dict[str, Any]) -> None:
    app = cdk.App(context={**cdk_context, "fmblocks:suppress": ["FMB-02"]})
    stack = cdk.Stack(app, "S", env=cdk.Environment(account="111122223333", region="us-west-2"))
    with pytest.raises(fm.FindingsError, match="FMB-02"):
        fm.ClusterVpc(stack, "Vpc", availability_zones=["1"])


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("fmblocks:suppress", "FSX-02", "'FSX-02' is no list of rules"),
        ("fmblocks:catalog", [{"name": "p9.48xlarge", "gpus": "many"}], "is no list of types"),
        ("fmblocks:catalog", ["p9.48xlarge"], "is no list of types"),
    ],
)
def test_context_of_the_wrong_shape_is_refused(cdk_context: dict[str, Any], key: str, value: object, said: str) -> None:
    stack = cdk.Stack(cdk.App(context={**cdk_context, key: value}), "S")
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2a"])
    with pytest.raises(fm.FindingsError, match=said):
        fm.HyperPodSlurmCluster(
            stack,
            "Cluster",
            vpc=vpc,
            security_groups=[fm.EfaSecurityGroup(stack, "Efa", vpc=vpc)],
            instance_groups=[CONTROLLER, GPU],
        )


@pytest.mark.parametrize(
    ("zones", "said"),
    [(["usw2-az01"], r"\[FMB-01\].*usw2-az01 is neither a zone id"), (["3"], r"\[FMB-02\] availability_zones: ")],
)
def test_zones_that_do_not_exist_are_refused(stack: cdk.Stack, zones: list[str], said: str) -> None:
    with pytest.raises(fm.FindingsError, match=said):
        fm.ClusterVpc(stack, "Vpc", availability_zones=zones)


@pytest.mark.parametrize(("efa", "rule"), [(False, "FSX-26"), (True, "X-05")])
def test_a_file_system_in_another_zone_is_refused(
    stack: cdk.Stack, vpc: ec2.IVpc, lustre: Any, cluster: Any, efa: bool, rule: str
) -> None:
    far = ec2.Subnet.from_subnet_attributes(
        stack, "Far", subnet_id="subnet-0aaaaaaaaaaaaaaaa", availability_zone="us-west-2b", route_table_id="rtb-1"
    )
    fabric = fm.EfaSecurityGroup(stack, "Fabric", vpc=vpc)
    given = {"efa_enabled": True, "efa_security_group": fabric, "capacity_gib": 19200} if efa else {}
    with pytest.raises(fm.FindingsError, match="stands in us-west-2b, the nodes in us-west-2a") as error:
        cluster(file_system=lustre(vpc_subnet=far, **given))
    assert rules_of(error) == {rule}


def test_zones_that_nobody_told_are_not_compared(stack: cdk.Stack, lustre: Any, cluster: Any) -> None:
    unknown = ec2.Subnet.from_subnet_attributes(stack, "Sub", subnet_id="subnet-0aaaaaaaaaaaaaaaa", route_table_id="r")
    system = lustre(vpc_subnet=unknown)
    assert system.availability_zone is None
    assert cluster(file_system=system, subnets=[unknown]).cluster_arn


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda _l, cluster: cluster(instance_groups=[GPU]), "[HP-11] instance_groups: 0 groups"),
        (
            lambda _l, cluster: cluster(instance_groups=[CONTROLLER, dataclasses.replace(GPU, count=-1)]),
            "[HP-02] instance_groups[1].count: -1",
        ),
        (
            lambda _l, cluster: cluster(instance_groups=[CONTROLLER, dataclasses.replace(GPU, capacity="odcr")]),
            "[X-02] instance_groups[1].capacity: odcr",
        ),
        (
            lambda _l, cluster: cluster(instance_groups=[CONTROLLER, dataclasses.replace(GPU, capacity=BLOCK)]),
            "[X-02] instance_groups[1].capacity: capacity_block",
        ),
        (lambda lustre, _c: lustre(metadata_mode="user_provisioned"), "[FSX-11] metadata_iops: is required"),
        (
            lambda lustre, _c: lustre(
                deployment_type="scratch_2", throughput_mbps_per_tib=None, metadata_mode="automatic"
            ),
            "[FSX-11] metadata_mode: ",
        ),
        (lambda lustre, _c: link_to(lustre(), file_system_path="data"), "[DRA-03] file_system_path: data"),
        (
            lambda lustre, _c: link_to(lustre(deployment_type="scratch_1", throughput_mbps_per_tib=None)),
            "[DRA-02] file_system: scratch_1",
        ),
    ],
)
def test_findings_name_the_arguments_of_the_construct(lustre: Any, cluster: Any, make: Any, said: str) -> None:
    with pytest.raises(fm.FindingsError, match=re.escape(said)):
        make(lustre, cluster)


def link_to(system: fm.LustreFileSystem, file_system_path: str = "/data") -> fm.DataRepositoryAssociation:
    bucket = s3.Bucket.from_bucket_name(system, "Bucket", "data")
    return fm.DataRepositoryAssociation(
        system, "Link", file_system=system, file_system_path=file_system_path, bucket=bucket
    )


# Storage, beyond the file system itself.


def find(stack: cdk.Stack, kind: str) -> dict[str, Any]:
    return {key: dict(value) for key, value in assertions.Template.from_stack(stack).find_resources(kind).items()}


def test_logs_and_backups_of_a_file_system(stack: cdk.Stack, lustre: Callable[..., fm.LustreFileSystem]) -> None:
    group = logs.LogGroup.from_log_group_name(stack, "Log", "/aws/fsx/mine")
    lustre(backup_id="backup-0123456789abcdef0", log_level=fm.LustreLogLevel.ERROR_ONLY, log_group=group)
    (found,) = find(stack, "AWS::FSx::FileSystem").values()
    assert found["Properties"]["BackupId"] == "backup-0123456789abcdef0"
    logged = found["Properties"]["LustreConfiguration"]["LogConfiguration"]
    assert logged["Level"] == "ERROR_ONLY"
    assert "log-group:/aws/fsx/mine" in json.dumps(logged["Destination"])


@pytest.mark.parametrize(
    ("rule", "arguments"),
    [
        ("FMB-58", {"backup_id": "fs-0123456789abcdef0"}),
        ("FMB-62", {"log_level": fm.LustreLogLevel.WARN_ONLY, "log_name": "/mine"}),
        ("FMB-62", {"log_name": "/aws/fsx/mine"}),
    ],
)
def test_a_file_system_refuses_logs_and_backups(
    stack: cdk.Stack, lustre: Callable[..., fm.LustreFileSystem], rule: str, arguments: dict[str, Any]
) -> None:
    if name := arguments.pop("log_name", None):
        arguments["log_group"] = logs.LogGroup.from_log_group_name(stack, "Log", name)
    with pytest.raises(fm.FindingsError, match=rule):
        lustre(**arguments)


def test_metrics_are_the_same_for_an_imported_file_system(stack: cdk.Stack) -> None:
    system = fm.LustreFileSystem.from_lustre_file_system_attributes(
        stack, "Theirs", file_system_id="fs-1", dns_name="fs-1.fsx.us-west-2.amazonaws.com", mount_name="abcd"
    )
    metric = system.metric_age_of_oldest_queued_message(fm.DataRepositoryPublisher.AUTO_EXPORT)
    assert metric.dimensions == {"FileSystemId": "fs-1", "Publisher": "AutoExport"}
    assert (metric.metric_name, metric.statistic) == ("AgeOfOldestQueuedMessage", "Maximum")
    assert system.metric_metadata_operations().metric_name == "MetadataOperations"
    assert system.metric_data_read_bytes().metric_name == "DataReadBytes"
    assert system.metric_data_write_bytes().metric_name == "DataWriteBytes"


def exported(stack: cdk.Stack, system: Any, name: str = "Link", **more: Any) -> fm.DataRepositoryAssociation:
    given = {"bucket": more.pop("bucket", None) or fm.DataBucket(stack, f"{name}Bucket"), **more}
    return fm.DataRepositoryAssociation(
        stack, name, file_system=system, file_system_path=f"/{name}", **{"auto_export": [EXPORT.NEW], **given}
    )


EXPORT = fm.DataRepositoryEvent


def warnings_of(stack: cdk.Stack) -> str:
    found = assertions.Annotations.from_stack(stack).find_warning("*", assertions.Match.any_value())
    return "\n".join(str(one.entry.data) for one in found)


def test_exported_deletions_are_warned_about_where_no_versions_are_known(stack: cdk.Stack, lustre: Any) -> None:
    system = lustre()
    events = [EXPORT.NEW, EXPORT.DELETED]
    exported(stack, system, "Kept", auto_export=events)
    exported(stack, system, "Versioned", auto_export=events, bucket=s3.Bucket(stack, "B", versioned=True))
    assert "FMB-59" not in warnings_of(stack)
    assert "deleted removes" not in warnings_of(stack)
    exported(stack, system, "Plain", auto_export=events, bucket=s3.Bucket(stack, "P"))
    assert "deleted removes the object of every removed file" in warnings_of(stack)


def test_imports_stay_in_one_region(stack: cdk.Stack, lustre: Any) -> None:
    there = s3.Bucket.from_bucket_attributes(stack, "There", bucket_name="data", region="us-east-1")
    system = lustre()
    exported(stack, system, "Out", bucket=there)
    with pytest.raises(fm.FindingsError, match="FMB-60"):
        exported(stack, system, "In", bucket=there, auto_import=[EXPORT.NEW])


def test_a_key_of_the_app_lets_the_service_linked_role_in(stack: cdk.Stack, lustre: Any) -> None:
    key = kms.Key(stack, "Key")
    exported(stack, lustre(), bucket=s3.Bucket(stack, "B", encryption_key=key, versioned=True))
    (found,) = find(stack, "AWS::KMS::Key").values()
    (statement,) = (
        one for one in found["Properties"]["KeyPolicy"]["Statement"] if one.get("Sid") == "FsxDataRepositories"
    )
    assert "AWSServiceRoleForFSxS3Access_fs-*" in json.dumps(statement["Condition"])


def test_the_project_key_says_it_once(stack: cdk.Stack, lustre: Any) -> None:
    exported(stack, lustre(), bucket=fm.DataBucket(stack, "B", encryption_key=fm.ProjectKey(stack, "Key")))
    (found,) = find(stack, "AWS::KMS::Key").values()
    sids = [one.get("Sid") for one in found["Properties"]["KeyPolicy"]["Statement"]]
    assert sids.count("FsxDataRepositories") == 1


def test_what_the_owner_of_another_bucket_allows(stack: cdk.Stack) -> None:
    bucket = s3.Bucket(stack, "Theirs")
    bucket.add_to_resource_policy(
        fm.DataRepositoryAssociation.bucket_policy_statement(
            bucket, file_system_account="444455556666", creating_role_arn="arn:aws:iam::444455556666:role/cdk-exec"
        )
    )
    (policy,) = find(stack, "AWS::S3::BucketPolicy").values()
    (statement,) = (
        one for one in policy["Properties"]["PolicyDocument"]["Statement"] if one.get("Sid") == "FsxDataRepositories"
    )
    named = json.dumps(statement["Condition"]["ArnLike"]["aws:PrincipalArn"])
    assert ":iam::444455556666:role/aws-service-role/s3.data-source.lustre.fsx.amazonaws.com/" in named
    assert "arn:aws:iam::444455556666:role/cdk-exec" in named
    assert "s3:PutBucketNotification" in statement["Action"]


def test_a_release_needs_exports_of_one_file_system(stack: cdk.Stack, vpc: ec2.IVpc, lustre: Any) -> None:
    system = lustre()
    link = exported(stack, system)
    week = cdk.Duration.days(7)
    with pytest.raises(fm.FindingsError, match="FMB-61\\] associations: releases files that were exported"):
        fm.DataReleaseSchedule(stack, "None", associations=[], last_access=week)
    other = fm.LustreFileSystem(
        stack, "Other", vpc=vpc, vpc_subnet=vpc.private_subnets[0], capacity_gib=1200, throughput_mbps_per_tib=125
    )
    with pytest.raises(fm.FindingsError, match="stand on 2 file systems: S/Lustre, S/Other"):
        fm.DataReleaseSchedule(stack, "Two", associations=[link, exported(stack, other, "Far")], last_access=week)


def test_reports_of_a_release_go_where_nothing_is_imported(stack: cdk.Stack, lustre: Any) -> None:
    system, there = lustre(), s3.Bucket.from_bucket_name(stack, "There", "data")
    both = exported(stack, system, "A", bucket=there, bucket_prefix="a", auto_import=[EXPORT.NEW])
    only = exported(stack, system, "B", bucket=there, bucket_prefix="b")
    fm.DataReleaseSchedule(
        stack,
        "Release",
        associations=[both, only],
        last_access=cdk.Duration.days(3),
        schedule=scheduler.ScheduleExpression.rate(cdk.Duration.hours(12)),
    )
    (found,) = find(stack, "AWS::Scheduler::Schedule").values()
    assert found["Properties"]["ScheduleExpression"] == "rate(12 hours)"
    text = json.dumps(found["Properties"]["Target"]["Input"])
    assert "s3://data/b/fmblocks-release-reports" in text
    assert found["Properties"]["Target"]["RetryPolicy"] == {"MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 3}


def test_a_topic_lets_the_alarms_of_the_account_publish(stack: cdk.Stack) -> None:
    """A policy of one's own takes the place of that which lets everybody of the account publish."""
    fm.AlertTopic(stack, "Topic", email=["a@example.com"])
    (policy,) = find(stack, "AWS::SNS::TopicPolicy").values()
    statements = policy["Properties"]["PolicyDocument"]["Statement"]
    allowed, ruled = (one for one in statements if one["Effect"] == "Allow")
    assert (ruled["Principal"], ruled["Action"]) == ({"Service": "events.amazonaws.com"}, "sns:Publish")
    assert (allowed["Principal"], allowed["Action"]) == ({"Service": "cloudwatch.amazonaws.com"}, "sns:Publish")
    assert allowed["Condition"]["StringEquals"] == {"aws:SourceAccount": "111122223333"}
    assert ":cloudwatch:us-west-2:111122223333:alarm:*" in json.dumps(allowed["Condition"]["ArnLike"])


def test_clients_of_an_imported_file_system_are_let_in_through_its_group(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    group = fm.LustreSecurityGroup(stack, "Mine", vpc=vpc)
    system = fm.LustreFileSystem.from_lustre_file_system_attributes(
        stack, "Imported", file_system_id="fs-1", dns_name="d", mount_name="m", security_group=group
    )
    system.add_client("Nodes", ec2.SecurityGroup.from_security_group_id(stack, "N", "sg-0123456789abcdef9"))
    found = find(stack, "AWS::EC2::SecurityGroupIngress").values()
    assert sum(one["Properties"]["SourceSecurityGroupId"] == "sg-0123456789abcdef9" for one in found) == 2


def test_alarms_are_those_that_were_asked_for(stack: cdk.Stack, lustre: Any) -> None:
    system = lustre()
    none = fm.LustreAlarms(stack, "None", file_system=system)
    assert (none.free_capacity_alarm, none.export_alarm, none.import_alarm) == (None, None, None)
    topic = fm.AlertTopic(stack, "Topic", email=["a@example.com"])
    some = fm.LustreAlarms(
        stack, "Some", file_system=system, capacity_gib=2400, free_percent=5, export_age=cdk.Duration.hours(2),
        alarm_topic=topic,
    )  # fmt: skip
    assert some.import_alarm is None
    thresholds = {one["Properties"]["Threshold"] for one in find(stack, "AWS::CloudWatch::Alarm").values()}
    assert thresholds == {2400 * 1024**3 * 0.05, 7200}


def home(stack: cdk.Stack, vpc: ec2.IVpc, **changed: Any) -> fm.OpenZfsFileSystem:
    given = {"vpc_subnet": vpc.private_subnets[0], "capacity_gib": 256, "throughput_capacity_mbps": 160}
    return fm.OpenZfsFileSystem(stack, "Home", vpc=vpc, **{**given, **changed})


def test_a_home_file_system(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    made = home(stack, vpc, kms_key=kms.Key(stack, "Key"))
    (found,) = find(stack, "AWS::FSx::FileSystem").values()
    properties = found["Properties"]
    assert (properties["FileSystemType"], properties["StorageType"], properties["StorageCapacity"]) == (
        "OPENZFS",
        "SSD",
        256,
    )
    assert properties["OpenZFSConfiguration"] == {
        "AutomaticBackupRetentionDays": 7,
        "DeploymentType": "SINGLE_AZ_HA_2",
        "DiskIopsConfiguration": {"Mode": "AUTOMATIC"},
        "RootVolumeConfiguration": {
            "DataCompressionType": "ZSTD",
            "NfsExports": [
                {"ClientConfigurations": [{"Clients": "*", "Options": ["rw", "no_root_squash", "crossmnt"]}]}
            ],
        },
        "ThroughputCapacity": 160,
    }
    assert (found["DeletionPolicy"], found["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")
    rules = find(stack, "AWS::EC2::SecurityGroupIngress")
    ports = {
        (one["Properties"]["IpProtocol"], one["Properties"]["FromPort"], one["Properties"]["ToPort"])
        for one in rules.values()
    }
    assert ports == {
        (protocol, first, last)
        for protocol in ("tcp", "udp")
        for first, last in ((111, 111), (2049, 2049), (20001, 20003))
    }
    assert set(rules) <= set(found["DependsOn"])  # FSx looks at them when it makes the file system
    assert find(stack, "AWS::EC2::SecurityGroupEgress") == {}
    assert made.metric_used_storage_capacity().metric_name == "UsedStorageCapacity"
    assert made.metric_storage_capacity().statistic == "Average"
    assert made.connections.default_port is not None


@pytest.mark.parametrize(
    ("rule", "arguments"),
    [
        ("FMB-63", {"throughput_capacity_mbps": 128}),
        ("FMB-63", {"deployment_type": fm.OpenZfsDeploymentType.MULTI_AZ_1}),
        ("FMB-65", {"capacity_gib": 32}),
        ("FMB-66", {"iops": 100}),
        ("FMB-68", {"automatic_backup_retention_days": 100}),
        ("FSX-30", {"weekly_maintenance_start_time": "8:00:00"}),
    ],
)
def test_a_home_file_system_refuses(stack: cdk.Stack, vpc: ec2.IVpc, rule: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(fm.FindingsError) as caught:
        home(stack, vpc, **arguments)
    assert rule in rules_of(caught)


def test_nodes_mount_home_directories(stack: cdk.Stack, vpc: ec2.IVpc, cluster: Any) -> None:
    made = home(stack, vpc)
    cluster(home_file_system=made)
    (found,) = find(stack, "AWS::SageMaker::Cluster").values()
    for group in found["Properties"]["InstanceGroups"]:
        (mount,) = (one["FsxOpenZfsConfig"] for one in group["InstanceStorageConfigs"] if "FsxOpenZfsConfig" in one)
        assert mount["MountPath"] == "/home"
    clients = [
        one["Properties"]["SourceSecurityGroupId"] for one in find(stack, "AWS::EC2::SecurityGroupIngress").values()
    ]
    assert clients.count("sg-0123456789abcdef0") == 6


def test_a_data_bucket_keeps_versions_and_moves_what_is_old(stack: cdk.Stack) -> None:
    fm.DataBucket(
        stack,
        "Data",
        intelligent_tiering_after=cdk.Duration.days(30),
        noncurrent_version_expiration=cdk.Duration.days(3),
    )
    (found,) = find(stack, "AWS::S3::Bucket").values()
    properties = found["Properties"]
    abort, expire, move = properties["LifecycleConfiguration"]["Rules"]
    assert abort["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 7}
    assert expire["NoncurrentVersionExpiration"] == {"NoncurrentDays": 3}
    assert move["Transitions"] == [{"StorageClass": "INTELLIGENT_TIERING", "TransitionInDays": 30}]
    assert properties["VersioningConfiguration"] == {"Status": "Enabled"}
    assert all(properties["PublicAccessBlockConfiguration"].values())
    assert properties["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    assert (found["DeletionPolicy"], found["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")


def test_a_data_bucket_grants_roles_with_its_key(stack: cdk.Stack) -> None:
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
    fm.DataBucket(stack, "Data", encryption_key=fm.ProjectKey(stack, "Key")).grant_read_write(role)
    (found,) = find(stack, "AWS::IAM::Policy").values()
    actions = {action for one in found["Properties"]["PolicyDocument"]["Statement"] for action in one["Action"]}
    assert {"s3:PutObject", "kms:Decrypt"} <= actions
