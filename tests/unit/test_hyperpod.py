"""The constructs of HyperPod in somebody else's app, with what is there already."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

import fmblocks as fm
from tests.conftest import CHARTS

ADMIN = "arn:aws:iam::111122223333:role/Admin"
CHART = CHARTS / "charts/hyperpod"


@pytest.fixture
def imported(stack: cdk.Stack, vpc: ec2.Vpc) -> eks.ICluster:
    """A cluster that was there before."""
    return eks.Cluster.from_cluster_attributes(
        stack,
        "Imported",
        cluster_name="mine",
        vpc=vpc,
        kubectl_provider=eks.KubectlProvider.from_kubectl_provider_attributes(
            stack,
            "Provider",
            service_token="arn:aws:lambda:us-west-2:111122223333:function:kubectl",
            role=iam.Role.from_role_arn(stack, "KubectlRole", ADMIN, mutable=False),
        ),
    )


GPU = fm.EksInstanceGroup(name="gpu", instance_type="ml.p5.48xlarge", count=2)
Make = Callable[..., fm.HyperPodEksCluster]


@pytest.fixture
def make(stack: cdk.Stack, vpc: ec2.Vpc, fabric: fm.EfaSecurityGroup, imported: eks.ICluster) -> Make:
    def once(id: str = "HyperPod", **changed: Any) -> fm.HyperPodEksCluster:
        usual = {
            "eks_cluster": imported,
            "vpc": vpc,
            "subnets": [vpc.private_subnets[0]],
            "security_groups": [fabric],
            "instance_groups": [GPU],
        }
        return fm.HyperPodEksCluster(stack, id, **{**usual, **changed})

    return once


def of(stack: cdk.Stack, kind: str) -> dict[str, Any]:
    return dict(assertions.Template.from_stack(stack).find_resources(kind))


def cluster_of(stack: cdk.Stack) -> dict[str, Any]:
    (one,) = of(stack, "AWS::SageMaker::Cluster").values()
    return dict(one["Properties"])


def rules_of(error: pytest.ExceptionInfo[fm.FindingsError]) -> set[str]:
    return {finding.rule for finding in error.value.findings}


def test_a_control_plane_that_was_there(stack: cdk.Stack, make: Make) -> None:
    found = make()
    assert found.controller_role is found.execution_role
    assert "mine" in json.dumps(cluster_of(stack)["Orchestrator"])
    assert cluster_of(stack)["NodeProvisioningMode"] == "Continuous"
    (group,) = cluster_of(stack)["InstanceGroups"]
    assert group["KubernetesConfig"]["Labels"] == {
        "fmblocks/accelerator": "nvidia",
        "fmblocks/efa": "true",
        "fmblocks/node-group": "gpu",
        "fmblocks/role": "compute",
    }
    assert "Taints" not in group["KubernetesConfig"], "deep health checks exclude them"


def test_keys_roles_labels_and_interfaces_of_your_own(stack: cdk.Stack, make: Make) -> None:
    key = kms.Key.from_key_arn(stack, "K", "arn:aws:kms:us-west-2:111122223333:key/abc")
    role = iam.Role.from_role_arn(stack, "R", "arn:aws:iam::111122223333:role/Nodes")
    group = fm.EksInstanceGroup(
        name="gpu",
        instance_type=ec2.InstanceType("p5.48xlarge"),
        count=2,
        labels={"team": "red", "fmblocks/node-group": "mine"},
        interface_type="efa-only",  # type: ignore[arg-type]
        image_release_version="1.2.3",
        deep_health_checks=["instance_stress"],  # type: ignore[list-item]
        patching=fm.NodePatching(
            schedule="cron(30 3 ? * SUN *)",
            batch_count=2,
            wait=cdk.Duration.minutes(5),
            rollback_alarms=[cloudwatch.Alarm.from_alarm_arn(stack, "A", "arn:aws:cloudwatch:us-west-2:1:alarm:bad")],
        ),
    )
    make(instance_groups=[group], volume_kms_key=key, execution_role=role)
    (found,) = cluster_of(stack)["InstanceGroups"]
    assert found["KubernetesConfig"]["Labels"]["team"] == "red"
    assert found["KubernetesConfig"]["Labels"]["fmblocks/node-group"] == "mine"
    assert found["NetworkInterface"] == {"InterfaceType": "efa-only"}
    assert found["OnStartDeepHealthChecks"] == ["InstanceStress"]
    assert found["ImageReleaseVersion"] == "1.2.3"
    assert found["ExecutionRole"] == "arn:aws:iam::111122223333:role/Nodes"
    data, root = (one["EbsVolumeConfig"] for one in found["InstanceStorageConfigs"])
    assert "VolumeSizeInGB" not in root
    assert data["VolumeKmsKeyId"] == root["VolumeKmsKeyId"] == "arn:aws:kms:us-west-2:111122223333:key/abc"
    how = found["ScheduledUpdateConfig"]["DeploymentConfig"]
    assert how["WaitIntervalInSeconds"] == 300
    assert how["RollingUpdatePolicy"]["MaximumBatchSize"] == {"Type": "INSTANCE_COUNT", "Value": 2}
    assert how["AutoRollbackConfiguration"] == [{"AlarmName": "bad"}]


def test_karpenter_has_a_role_and_pools(stack: cdk.Stack, make: Make, imported: eks.ICluster) -> None:
    empty = fm.EksInstanceGroup(name="cpu", instance_type="m7i.xlarge", count=0)
    found = make(instance_groups=[GPU, empty], karpenter=True)
    pool = fm.HyperPodNodePool(
        stack,
        "Pool",
        cluster=found,
        eks_cluster=imported,
        group_name="cpu",
        instance_type="m7i.xlarge",
        max_count=3,
    )
    assert pool.node.try_find_child("Manifest") is not None
    told = cluster_of(stack)
    assert told["AutoScaling"] == {"AutoScalerType": "Karpenter", "Mode": "Enable"}
    assert "ClusterRole" in told
    (manifest,) = of(stack, "Custom::AWSCDK-EKS-KubernetesResource").values()
    _, nodes = json.loads(manifest["Properties"]["Manifest"])
    assert nodes["spec"]["limits"] == {"cpu": "12"}
    with pytest.raises(fm.FindingsError, match="has no Karpenter; make it with karpenter=True"):
        fm.HyperPodNodePool(
            stack,
            "Other",
            cluster=make("Second"),
            eks_cluster=imported,
            group_name="gpu",
            instance_type="p5.48xlarge",
            max_count=1,
        )


def test_restricted_groups_and_tiered_storage(stack: cdk.Stack, vpc: ec2.Vpc, make: Make) -> None:
    restricted = fm.RestrictedInstanceGroup(
        name="nova",
        instance_type="p5.48xlarge",
        count=4,
        lustre_capacity_gib=12000,
        lustre_throughput_mbps_per_tib=250,
        subnet=vpc.private_subnets[0],
    )
    make(restricted_instance_groups=[restricted], tiered_storage=fm.TieredStorage())
    (found,) = cluster_of(stack)["RestrictedInstanceGroups"]
    lustre = {"PerUnitStorageThroughput": 250, "SizeInGiB": 12000}
    assert found["EnvironmentConfig"] == {"FSxLustreConfig": lustre}
    assert found["InstanceType"] == "ml.p5.48xlarge"
    assert len(found["OverrideVpcConfig"]["Subnets"]) == 1
    assert cluster_of(stack)["TieredStorageConfig"] == {"Mode": "Enable"}


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("FMB-115", {"lustre_capacity_gib": 1199}),
        ("FMB-115", {"lustre_throughput_mbps_per_tib": 1001}),
        ("HP-02", {"name": "gpu"}),
        ("HP-02", {"count": -1}),
        ("FMB-09", {"instance_type": "nonsense.xlarge"}),
    ],
)
def test_restricted_groups_are_checked_as_the_others(make: Make, rule: str, change: dict[str, Any]) -> None:
    told = {"name": "nova", "instance_type": "p5.48xlarge", "count": 1, "lustre_capacity_gib": 1200}
    group = fm.RestrictedInstanceGroup(**{**told, "lustre_throughput_mbps_per_tib": 125, **change})
    with pytest.raises(fm.FindingsError) as error:
        make(restricted_instance_groups=[group])
    assert rule in rules_of(error)


def test_restricted_groups_may_stand_alone(stack: cdk.Stack, vpc: ec2.Vpc, make: Make) -> None:
    bucket = s3.Bucket(stack, "Recipes")
    alone = fm.RestrictedInstanceGroup(
        name="nova",
        instance_type="p5.48xlarge",
        count=1,
        lustre_capacity_gib=1200,
        lustre_throughput_mbps_per_tib=125,
        subnet=vpc.private_subnets[1],
        buckets=[bucket],
    )
    make(instance_groups=[], restricted_instance_groups=[alone])
    assert "InstanceGroups" not in cluster_of(stack)
    (policy,) = of(stack, "AWS::IAM::Policy").values()
    text = json.dumps(policy["Properties"])
    assert "s3:PutObject" in text
    assert stack.resolve(vpc.private_subnets[1].subnet_id)["Ref"] in text, "nodes make interfaces there"


def test_karpenter_needs_what_hyperpods_needs(make: Make) -> None:
    with pytest.raises(fm.FindingsError) as error:
        make(karpenter=True, node_provisioning=fm.NodeProvisioning.STANDARD)
    assert rules_of(error) == {"FMB-99"}


def test_a_group_in_another_subnet_may_have_efa_there(stack: cdk.Stack, vpc: ec2.Vpc, make: Make) -> None:
    """X-04 is about what HyperPod would spread; a group with a subnet of its own it does not."""
    first, second = vpc.private_subnets
    moved = fm.EksInstanceGroup(name="moved", instance_type="p5.48xlarge", count=2, subnet=second)
    make(instance_groups=[GPU, moved])
    with pytest.raises(fm.FindingsError) as error:
        make("Spread", subnets=[first, second])
    assert rules_of(error) == {"X-04"}


@pytest.mark.parametrize(
    ("rule", "group"),
    [
        ("HP-03", {"instance_type": "trn1.2xlarge"}),
        ("HP-16", {"instance_type": "m7i.xlarge", "deep_health_checks": [fm.DeepHealthCheck.INSTANCE_STRESS]}),
        ("FMB-96", {"patching": fm.NodePatching()}),
        ("HP-05", {"min_count": 3}),
        ("X-02", {"capacity": fm.CapacityMode.ODCR}),
    ],
)
def test_what_a_group_refuses(make: Make, rule: str, group: dict[str, Any]) -> None:
    told = {"name": "gpu", "instance_type": "p5.48xlarge", "count": 2, **group}
    with pytest.raises(fm.FindingsError) as error:
        make(instance_groups=[fm.EksInstanceGroup(**told)])
    assert rule in rules_of(error)


def test_public_subnets_are_refused(vpc: ec2.Vpc, make: Make) -> None:
    with pytest.raises(fm.FindingsError) as error:
        make(subnets=[vpc.public_subnets[0]])
    assert rules_of(error) == {"NET-05"}


def test_the_chart_by_itself(stack: cdk.Stack, imported: eks.ICluster) -> None:
    found = fm.HyperPodDependencies(
        stack, "Chart", cluster=imported, path=CHART, types=["p5.48xlarge"], values={"global": {"region": "x"}}
    )
    assert found.values["global"] == {"region": "x"}
    with pytest.raises(fm.FindingsError, match="FMB-23"):
        fm.HyperPodDependencies(stack, "None", cluster=imported, path="nowhere", types=["p5.48xlarge"])
    with pytest.raises(fm.FindingsError, match="FMB-100"):
        fm.HyperPodDependencies(stack, "Wrong", cluster=imported, path=CHART, types=["p5.48xlarge"], values={"x": 1})
    with pytest.raises(fm.FindingsError, match="FMB-09"):
        fm.HyperPodDependencies(stack, "Type", cluster=imported, path=CHART, types=["p99.large"])


def test_teams_on_a_cluster_that_was_made_elsewhere(stack: cdk.Stack, imported: eks.ICluster) -> None:
    arn = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"
    cluster = fm.HyperPodEksCluster.from_cluster_arn(stack, "Theirs", arn)
    quota = fm.ComputeQuota(
        stack,
        "Quota",
        cluster=cluster,
        team_name="red",
        quotas=[fm.QuotaOfType(instance_type="ml.p5.48xlarge", count=1)],
    )
    assert (quota.namespace, quota.queue_name) == ("hyperpod-ns-red", "hyperpod-ns-red-localqueue")
    fm.SchedulerPolicy(stack, "Policy", cluster=cluster, policy_name="mine", priorities={"high": 90})
    team = fm.TeamAccess(stack, "Team", cluster=imported, team_name="red", namespace=quota.namespace, after=quota)
    fm.TeamMembers(stack, "Members", cluster=imported, members={ADMIN: ["red", "blue"]})
    theirs = fm.HyperPodAddOns(
        stack,
        "AddOns",
        eks_cluster=imported,
        hyperpod_cluster=cluster,
        add_ons=[fm.HyperPodAddOn.TASK_GOVERNANCE],
    )
    quota.node.add_dependency(theirs.governed)
    fm.HyperPodAccess(stack, "Access", cluster=cluster)
    cdk.Tags.of(stack).add("Owner", "me")
    (entry,) = of(stack, "AWS::EKS::AccessEntry").values()
    assert entry["Properties"]["KubernetesGroups"] == [team.group_name, "fmblocks:team:blue"]
    found = next(iter(of(stack, "AWS::SageMaker::ComputeQuota").values()))
    assert found["Properties"]["ClusterArn"] == arn
    assert found["Properties"]["Tags"] == [{"Key": "Owner", "Value": "me"}]
    with pytest.raises(fm.FindingsError, match="FMB-103"):
        fm.ComputeQuota(
            stack, "Bad", cluster=cluster, team_name="red", quotas=[fm.QuotaOfType(instance_type="p5.48xlarge")]
        )
    unknown = cdk.CfnParameter(stack, "Number", type="Number").value_as_number
    later = fm.QuotaOfType(instance_type="p5.48xlarge", count=unknown)  # type: ignore[arg-type]
    fm.ComputeQuota(stack, "Later", cluster=cluster, team_name="blue", quotas=[later])
    with pytest.raises(fm.FindingsError, match="HP-01"):
        fm.SchedulerPolicy(stack, "Named", cluster=cluster, policy_name="bad name!")
    with pytest.raises(fm.FindingsError, match="FMB-106"):
        fm.SchedulerPolicy(stack, "Worse", cluster=cluster, policy_name="mine", priorities={"high": 900})


def test_observability_needs_a_workspace(stack: cdk.Stack, make: Make, imported: eks.ICluster) -> None:
    with pytest.raises(fm.FindingsError, match="workspace: is required with observability"):
        fm.HyperPodAddOns(
            stack,
            "AddOns",
            eks_cluster=imported,
            hyperpod_cluster=make(),
            add_ons=[fm.HyperPodAddOn.OBSERVABILITY],
        )


def slurm(stack: cdk.Stack, vpc: ec2.Vpc, fabric: Any, **more: Any) -> fm.HyperPodSlurmCluster:
    groups = [
        fm.SlurmInstanceGroup(name="controller", role=fm.NodeRole.CONTROLLER, instance_type="m7i.xlarge", count=1),
        fm.SlurmInstanceGroup(name="gpu", role=fm.NodeRole.COMPUTE, instance_type="p5.48xlarge", count=2),
    ]
    return fm.HyperPodSlurmCluster(
        stack,
        "Slurm",
        subnets=[vpc.private_subnets[0]],
        security_groups=[fabric],
        instance_groups=groups,
        **more,
    )


def test_on_kubernetes_only_administrators_log_in_to_nodes(
    stack: cdk.Stack, imported: eks.ICluster, make: Make
) -> None:
    fm.HyperPodAccess(stack, "Access", cluster=make(), eks_cluster=imported)
    policies = {id: json.dumps(one["Properties"]) for id, one in of(stack, "AWS::IAM::ManagedPolicy").items()}
    (users,) = (text for id, text in policies.items() if id.startswith("AccessUsers"))
    (admins,) = (text for id, text in policies.items() if id.startswith("AccessAdmins"))
    assert "ssm:StartSession" in admins
    assert "ssm:" not in users
    for text in (users, admins):
        assert "sagemaker:ListClusterNodes" in text
        assert "eks:DescribeCluster" in text


def test_the_secret_of_the_database_is_the_controllers(stack: cdk.Stack, vpc: ec2.Vpc, fabric: Any) -> None:
    key = kms.Key(stack, "Key")
    database = fm.AccountingDatabase(
        stack, "Db", vpc=vpc, vpc_subnets=vpc.private_subnets, kms_key=key, clients={"Nodes": fabric}
    )
    made = slurm(stack, vpc, fabric, accounting_database=database, node_provisioning=fm.NodeProvisioning.CONTINUOUS)
    assert len(made.roles) == 2
    readers = [
        id
        for id, one in of(stack, "AWS::IAM::Policy").items()
        if "secretsmanager:GetSecretValue" in json.dumps(one["Properties"])
    ]
    assert [id.startswith("SlurmControllerRole") for id in readers] == [True]
    roles = {one["InstanceGroupName"]: json.dumps(one["ExecutionRole"]) for one in cluster_of(stack)["InstanceGroups"]}
    assert "ControllerRole" in roles["controller"]
    assert "ExecutionRole" in roles["gpu"]
    (cluster,) = of(stack, "AWS::RDS::DBCluster").values()
    assert cluster["DeletionPolicy"] == "RetainExceptOnCreate"
    assert cluster["Properties"]["StorageEncrypted"] is True


def test_the_database_lets_its_clusters_in(stack: cdk.Stack, vpc: ec2.Vpc, fabric: Any) -> None:
    database = fm.AccountingDatabase(
        stack, "Db", vpc=vpc, vpc_subnets=vpc.private_subnets, kms_key=kms.Key(stack, "Key")
    )
    slurm(stack, vpc, fabric, accounting_database=database, node_provisioning=fm.NodeProvisioning.CONTINUOUS)
    # EC2 refuses a rule that is there.
    database.add_client("Again", fabric)
    doors = [one["Properties"] for one in of(stack, "AWS::EC2::SecurityGroupIngress").values()]
    (door,) = (one for one in doors if one.get("FromPort") == 3306)
    assert door["SourceSecurityGroupId"] == stack.resolve(fabric.security_group_id)
    assert door["GroupId"] == stack.resolve(database.security_group.security_group_id)


def test_a_database_that_was_there(stack: cdk.Stack, vpc: ec2.Vpc, fabric: Any) -> None:
    secret = "arn:aws:secretsmanager:us-west-2:111122223333:secret:slurm-AbCdEf"
    database = fm.AccountingDatabase.from_accounting_database_attributes(
        stack, "Db", endpoint="db.example.com", secret_arn=secret
    )
    slurm(stack, vpc, fabric, accounting_database=database, node_provisioning=fm.NodeProvisioning.CONTINUOUS)
    assert cluster_of(stack)["Orchestrator"]["Slurm"] == {
        "AccountingDatabase": {"Endpoint": "db.example.com", "Port": 3306, "SecretArn": secret}
    }


def test_what_a_database_refuses(stack: cdk.Stack, vpc: ec2.Vpc, fabric: Any) -> None:
    key = kms.Key(stack, "Key")
    with pytest.raises(fm.FindingsError) as error:
        fm.AccountingDatabase(stack, "One", vpc=vpc, vpc_subnets=[vpc.private_subnets[0]], kms_key=key)
    assert rules_of(error) == {"FMB-110"}
    with pytest.raises(fm.FindingsError) as error:
        fm.AccountingDatabase(stack, "Open", vpc=vpc, vpc_subnets=vpc.public_subnets, kms_key=key)
    assert rules_of(error) == {"NET-05"}
    database = fm.AccountingDatabase.from_accounting_database_attributes(
        stack, "There", endpoint="x", secret_arn="arn:aws:secretsmanager:us-west-2:111122223333:secret:slurm-AbCdEf"
    )
    with pytest.raises(fm.FindingsError) as error:
        slurm(stack, vpc, fabric, accounting_database=database)
    assert rules_of(error) == {"FMB-109"}
