"""What HyperPod takes and what it refuses, against the templates of projects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fmblocks.findings import FindingsError
from fmblocks.project import Project
from tests.conftest import CHARTS
from tests.stacks.conftest import Synthesize, Synthesized, of_type

PLAN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/mine"
HEAD = """\
# valid at 2026-12-15
name: demo
account: "111122223333"
region: us-west-2
tags: {Owner: team-a}
network: {availability_zones: [usw2-az1, usw2-az2], primary_availability_zone: usw2-az2}
access: {admins: ["arn:aws:iam::111122223333:role/Admin"]}
"""
LUSTRE = "storage: {lustre: {deployment_type: persistent_2, capacity_gib: 1200, throughput_mbps_per_tib: 125}}\n"
CONTROLLER = "{name: controller, role: controller, instance_type: ml.m5.4xlarge, count: 1}"
WORKER = "{name: worker-a, instance_type: ml.p5.48xlarge, count: 2}"
EKS, SLURM = "hyperpod-eks", "hyperpod-slurm"
Make = Callable[..., Synthesized]


def text_of(orchestrator: str, groups: tuple[str, ...], training: str = "", rest: str = "") -> str:
    listed = "".join(f"    - {group}\n" for group in groups)
    head = HEAD if orchestrator == EKS else HEAD[: HEAD.index("access:")]
    return f"{head}{rest}training:\n  orchestrator: {orchestrator}\n{training}  node_groups:\n{listed}"


@pytest.fixture(scope="module")
def hyperpod(synthesize: Synthesize, tmp_path_factory: pytest.TempPathFactory) -> Make:
    """A project of an orchestrator, from the groups that a case gives it."""

    def make(orchestrator: str, *groups: str, training: str = "", rest: str = "") -> Synthesized:
        folder = tmp_path_factory.mktemp("case")
        (folder / "scripts").mkdir()
        (folder / "scripts/main.sh").write_text("true\n")
        file = folder / "project.yaml"
        file.write_text(text_of(orchestrator, groups, training, rest))
        return synthesize(file)

    return make


def refusal(tmp_path: Path, orchestrator: str, *groups: str, **more: str) -> str:
    file = tmp_path / "project.yaml"
    file.write_text(text_of(orchestrator, groups, more.get("training", ""), more.get("rest", "")))
    with pytest.raises(FindingsError) as caught:
        Project.load(file, charts=CHARTS)
    return str(caught.value)


def cluster(found: Synthesized) -> dict[str, Any]:
    (one,) = of_type(found.training, "AWS::SageMaker::Cluster").values()
    return dict(one)


def groups_of(found: Synthesized) -> dict[str, dict[str, Any]]:
    return {one["InstanceGroupName"]: one for one in cluster(found)["Properties"]["InstanceGroups"]}


def waited_for(template: dict[str, Any], id: str) -> set[str]:
    """Everything that a resource waits for, said by DependsOn or by what it refers to."""
    resources, todo = template["Resources"], [id]
    found: set[str] = set()
    while todo:
        for other in set(_named(resources[todo.pop()])) & set(resources) - found:
            found.add(other)
            todo.append(other)
    return found


def _named(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "Ref":
                yield item
            elif key == "Fn::GetAtt":
                yield item[0] if isinstance(item, list) else item.split(".")[0]
            elif key == "DependsOn":
                yield from [item] if isinstance(item, str) else item
            else:
                yield from _named(item)
    elif isinstance(value, list):
        for item in value:
            yield from _named(item)


SCRIPTS = "  lifecycle_scripts: {path: scripts, on_init_complete: main.sh}\n"


@pytest.fixture(scope="module")
def with_scripts(hyperpod: Make) -> Synthesized:
    return hyperpod(SLURM, CONTROLLER, WORKER, training=SCRIPTS, rest=LUSTRE)


def test_nodes_read_the_bucket_of_their_scripts(with_scripts: Synthesized) -> None:
    """C75."""
    (bucket,) = [
        one["Properties"]["BucketName"]
        for one in of_type(with_scripts.foundation, "AWS::S3::Bucket").values()
        if "BucketName" in one["Properties"]
    ]
    assert bucket["Fn::Join"][1][0].startswith("sagemaker-demo-")
    said = {
        (action, json.dumps(statement["Resource"])[-6:])
        for id, one in of_type(with_scripts.training, "AWS::IAM::Policy").items()
        if id.startswith("ClusterExecutionRole")
        for statement in one["Properties"]["PolicyDocument"]["Statement"]
        for action in [statement["Action"]]
        if isinstance(action, str) and action.startswith("s3:")
    }
    assert {action for action, _ in said} == {"s3:GetObject", "s3:ListBucket"}
    assert ("s3:GetObject", '/*"]]}') in said


def test_scripts_are_there_before_the_cluster(with_scripts: Synthesized, tmp_path: Path) -> None:
    """C76."""
    (id,) = of_type(with_scripts.training, "AWS::SageMaker::Cluster")
    (bundle,) = of_type(with_scripts.training, "Custom::LifecycleBundle")
    assert bundle in waited_for(with_scripts.training, id)
    prefix = with_scripts.training["Resources"][bundle]["Properties"]["Prefix"]
    for group in groups_of(with_scripts).values():
        assert json.dumps(group["LifeCycleConfig"]["SourceS3Uri"]).endswith(f'/{prefix}/"]]}}')
        assert "OnCreate" not in group["LifeCycleConfig"]
    (tmp_path / "scripts").mkdir()
    missing = SCRIPTS.replace("main.sh", "other.sh")
    said = refusal(tmp_path, SLURM, CONTROLLER, WORKER, training=missing)
    assert "[HP-08] training.lifecycle_scripts.on_init_complete" in said
    assert "scripts/other.sh is not a file" in said


def test_slurm_knows_the_groups_by_their_names_and_lustre_by_its_own(with_scripts: Synthesized) -> None:
    """C78: names stand once, in the cluster itself, and what Lustre is called is known once it is there."""
    worker = groups_of(with_scripts)["worker-a"]
    assert worker["SlurmConfig"] == {"NodeType": "Compute", "PartitionNames": ["worker-a"]}
    (lustre,) = [one["FsxLustreConfig"] for one in worker["InstanceStorageConfigs"] if "FsxLustreConfig" in one]
    for key, name in (("DnsName", "dns-name"), ("MountName", "mount-name")):
        parameter = with_scripts.training["Parameters"][lustre[key]["Ref"]]
        assert parameter["Default"] == f"/fmblocks/demo/lustre/{name}"
    (published,) = [
        one["Properties"]["Value"]
        for one in of_type(with_scripts.foundation, "AWS::SSM::Parameter").values()
        if one["Properties"]["Name"] == "/fmblocks/demo/lustre/mount-name"
    ]
    assert published["Fn::GetAtt"][1] == "LustreMountName"


def test_nodes_stand_in_private_subnets(with_scripts: Synthesized, tmp_path: Path) -> None:
    """C79."""
    (subnet,) = cluster(with_scripts)["Properties"]["VpcConfig"]["Subnets"]
    assert with_scripts.training["Parameters"][subnet["Ref"]]["Default"] == "/fmblocks/demo/subnet/usw2-az2"
    (id,) = [
        one["Properties"]["Value"]["Ref"]
        for one in of_type(with_scripts.foundation, "AWS::SSM::Parameter").values()
        if one["Properties"]["Name"] == "/fmblocks/demo/subnet/usw2-az2"
    ]
    tables = [
        one["Properties"]["RouteTableId"]["Ref"]
        for one in of_type(with_scripts.foundation, "AWS::EC2::SubnetRouteTableAssociation").values()
        if one["Properties"]["SubnetId"] == {"Ref": id}
    ]
    routes = [
        one["Properties"]
        for one in of_type(with_scripts.foundation, "AWS::EC2::Route").values()
        if one["Properties"]["RouteTableId"]["Ref"] in tables
    ]
    assert routes
    assert all("NatGatewayId" in route and "GatewayId" not in route for route in routes)
    said = refusal(tmp_path, SLURM, CONTROLLER, WORKER.replace("count", "subnet: public, count"))
    assert "subnet: cannot be used here" in said
    assert "private subnets" in said


def test_a_plan_is_for_the_group_that_names_it(hyperpod: Make) -> None:
    """C80."""
    planned = WORKER.replace("count", f'capacity: {{mode: training_plan, training_plan_arn: "{PLAN}"}}, count')
    for orchestrator, others in ((SLURM, (CONTROLLER,)), (EKS, ("{name: cpu, instance_type: m5.4xlarge, count: 1}",))):
        found = groups_of(hyperpod(orchestrator, *others, planned))
        assert {name: group.get("TrainingPlanArn") for name, group in found.items() if name == "worker-a"} == {
            "worker-a": PLAN
        }
        assert [name for name, group in found.items() if "TrainingPlanArn" in group] == ["worker-a"]


def test_a_group_stands_in_its_zone(hyperpod: Make, tmp_path: Path) -> None:
    """C81."""
    moved = "{name: moved, instance_type: p5.48xlarge, count: 2, availability_zone: usw2-az1}"
    for orchestrator, others in ((EKS, ()), (SLURM, (CONTROLLER,))):
        found = hyperpod(orchestrator, *others, WORKER, moved)
        override = groups_of(found)["moved"]["OverrideVpcConfig"]
        (subnet,) = override["Subnets"]
        assert found.training["Parameters"][subnet["Ref"]]["Default"] == "/fmblocks/demo/subnet/usw2-az1"
        assert override["SecurityGroupIds"] == cluster(found)["Properties"]["VpcConfig"]["SecurityGroupIds"]
        assert "OverrideVpcConfig" not in groups_of(found)["worker-a"]
        (role,) = [id for id in of_type(found.training, "AWS::IAM::Policy") if "ExecutionRoleDefaultPolicy" in id]
        may = json.dumps(found.training["Resources"][role])
        assert subnet["Ref"] in may, "the nodes' role makes interfaces there too"
    assert "[FMB-98]" in refusal(tmp_path, EKS, moved.replace("usw2-az1", "usw2-az3"))


@pytest.fixture(scope="module")
def kubernetes(hyperpod: Make) -> Synthesized:
    return hyperpod(
        EKS,
        "{name: gpu, instance_type: p6-b200.48xlarge, count: 2}",
        training="  kubernetes: {hyperpod_add_ons: [task_governance, training_operator]}\n",
        rest=LUSTRE
        + "teams: [{name: red, quotas: [{instance_type: p6-b200.48xlarge, count: 2}]}]\n"
        + "priorities: [{name: urgent, weight: 90}]\n",
    )


def test_hyperpod_takes_the_authentication_of_the_control_plane(kubernetes: Synthesized) -> None:
    """C82."""
    (control_plane,) = of_type(kubernetes.training, "AWS::EKS::Cluster").values()
    assert control_plane["Properties"]["AccessConfig"]["AuthenticationMode"] == "API"


def test_nothing_waits_for_what_waits_for_it(kubernetes: Synthesized) -> None:
    """The order in which HyperPod's own guides have it, and none of the known deadlocks."""
    template = kubernetes.training
    (id,) = of_type(template, "AWS::SageMaker::Cluster")
    (chart,) = of_type(template, "Custom::AWSCDK-EKS-HelmChart")
    before = waited_for(template, id)
    assert chart in before
    assert template["Resources"][chart]["Properties"].get("Wait") in (None, False), "its agents run on HyperPod's nodes"
    add_ons = {one["Properties"]["AddonName"]: key for key, one in of_type(template, "AWS::EKS::Addon").items()}
    assert {"vpc-cni", "eks-pod-identity-agent"} <= {name for name, key in add_ons.items() if key in before}
    assert of_type(template, "AWS::EKS::Nodegroup").keys() <= before, "DNS and webhooks have nodes of their own"
    (ready,) = of_type(template, "Custom::HyperPodReady")
    assert id in waited_for(template, ready)
    for name in ("amazon-sagemaker-hyperpod-taskgovernance", "amazon-sagemaker-hyperpod-training-operator"):
        assert ready in waited_for(template, add_ons[name])
    (webhook,) = of_type(template, "Custom::AWSCDK-EKS-KubernetesObjectValue")
    assert add_ons["amazon-sagemaker-hyperpod-taskgovernance"] in waited_for(template, webhook)
    for kind in ("AWS::SageMaker::ComputeQuota", "AWS::SageMaker::ClusterSchedulerConfig"):
        (governed,) = of_type(template, kind)
        assert webhook in waited_for(template, governed)


def test_pod_identity_stands_beside_the_add_on(kubernetes: Synthesized) -> None:
    """One version of the training operator refuses it inline."""
    for one in of_type(kubernetes.training, "AWS::EKS::Addon").values():
        assert "PodIdentityAssociations" not in one["Properties"]
    bound = {
        (one["Properties"]["Namespace"], one["Properties"]["ServiceAccount"]): id
        for id, one in of_type(kubernetes.training, "AWS::EKS::PodIdentityAssociation").items()
    }
    association = bound["aws-hyperpod", "hp-training-operator-controller-manager"]
    (add_on,) = [
        id
        for id, one in of_type(kubernetes.training, "AWS::EKS::Addon").items()
        if one["Properties"]["AddonName"].endswith("training-operator")
    ]
    assert association in waited_for(kubernetes.training, add_on)
    assert {"Key": "SageMaker", "Value": "true"} in cluster(kubernetes)["Properties"]["Tags"]


def test_the_chart_follows_from_the_groups(hyperpod: Make, kubernetes: Synthesized) -> None:
    """C18, for HyperPod: no list of types; and the chart's own plugins are off beside ours."""

    def values(found: Synthesized) -> dict[str, Any]:
        (chart,) = of_type(found.training, "Custom::AWSCDK-EKS-HelmChart").values()
        return dict(json.loads(chart["Properties"]["Values"]))

    accelerated = values(kubernetes)
    assert accelerated["health-monitoring-agent"] == {"enabled": True, "region": "us-west-2"}
    assert accelerated["nvidia-device-plugin"] == {"devicePlugin": {"enabled": False}}
    assert accelerated["trainingOperators"] == {"enabled": False}, "the add-on runs jobs"
    assert accelerated["gpu-operator"] == {"enabled": False}, "a part whose switch is nowhere set would be on"
    plain = values(hyperpod(EKS, "{name: cpu, instance_type: m5.4xlarge, count: 1}"))
    assert plain["health-monitoring-agent"] == {"enabled": False}
    assert plain["trainingOperators"] == {"enabled": True}
    labels = groups_of(kubernetes)["gpu"]["KubernetesConfig"]["Labels"]
    assert labels["fmblocks/accelerator"] == "nvidia"
    plugins = [
        text
        for one in of_type(kubernetes.training, "Custom::AWSCDK-EKS-KubernetesResource").values()
        if "DaemonSet" in (text := json.dumps(one["Properties"]["Manifest"]))
    ]
    assert [name for name in ("nvidia-device-plugin", "aws-efa-k8s-device-plugin") if name in "".join(plugins)] == [
        "nvidia-device-plugin",
        "aws-efa-k8s-device-plugin",
    ]
    for text in plugins:
        assert "sagemaker.amazonaws.com/node-health-status" in text, "deep health checks need the devices"


def test_values_that_the_chart_does_not_have_are_refused(tmp_path: Path) -> None:
    wrong = """  kubernetes: {dependency_chart: {values: '{"trainingOperators": {"enable": true}}'}}\n"""
    said = refusal(tmp_path, EKS, WORKER, training=wrong)
    assert "[FMB-100] training.kubernetes.dependency_chart.values: trainingOperators.enable is no value" in said


@pytest.mark.parametrize(
    ("name", "text"),
    [("my_project", "takes 3 to 25"), ("a" * 64, "takes 3 to 25"), ("demo-", "takes 3 to 25")],
)
def test_names_that_hyperpod_refuses(tmp_path: Path, name: str, text: str) -> None:
    """C83."""
    file = tmp_path / "project.yaml"
    file.write_text(text_of(SLURM, (CONTROLLER, WORKER)).replace("name: demo", f"name: {name}"))
    with pytest.raises(FindingsError, match=text):
        Project.load(file)
    assert text in refusal(tmp_path, SLURM, CONTROLLER, WORKER.replace("worker-a", name))


@pytest.mark.parametrize(
    ("groups", "text"),
    [
        ((WORKER,), "0 groups have role controller (none): Slurm takes exactly one"),
        ((CONTROLLER, CONTROLLER.replace("name: controller", "name: other"), WORKER), "2 groups have role controller"),
        ((CONTROLLER.replace("count: 1", "count: 2"), WORKER), "2 controllers in controller"),
    ],
)
def test_slurm_has_one_controller(tmp_path: Path, groups: tuple[str, ...], text: str) -> None:
    """C85."""
    said = refusal(tmp_path, SLURM, *groups)
    assert "[HP-11] training.node_groups" in said
    assert text in said


def test_everything_has_the_projects_tags(kubernetes: Synthesized) -> None:
    """C131."""
    wanted = {"Key": "Owner", "Value": "team-a"}
    for kind in (
        "AWS::SageMaker::Cluster",
        "AWS::SageMaker::ComputeQuota",
        "AWS::SageMaker::ClusterSchedulerConfig",
        "AWS::EKS::Cluster",
    ):
        for one in of_type(kubernetes.training, kind).values():
            found = one["Properties"]["Tags"]
            assert found.get("Owner") == "team-a" if isinstance(found, dict) else wanted in found, kind


def test_members_of_a_team_get_in_and_see_their_own(
    synthesize: Synthesize, tmp_path_factory: pytest.TempPathFactory
) -> None:
    who = "arn:aws:iam::111122223333:role/Ana"
    text = text_of(
        EKS,
        (WORKER,),
        "  kubernetes: {hyperpod_add_ons: [task_governance]}\n",
        "teams: [{name: red, quotas: [{instance_type: p5.48xlarge, accelerators: 9}], sharing: dont_lend}]\n",
    )
    users = f'access: {{users: [{{name: ana, account: red, principal_arn: "{who}"}}], admins:'
    file = tmp_path_factory.mktemp("teams") / "project.yaml"
    file.write_text(text.replace("access: {admins:", users))
    found = synthesize(file)
    (entry,) = [
        one["Properties"]
        for one in of_type(found.training, "AWS::EKS::AccessEntry").values()
        if one["Properties"]["PrincipalArn"] == who
    ]
    assert (entry["KubernetesGroups"], entry.get("AccessPolicies")) == (["fmblocks:team:red"], None)
    (quota,) = of_type(found.training, "AWS::SageMaker::ComputeQuota").values()
    assert quota["Properties"]["ComputeQuotaConfig"] == {
        "ComputeQuotaResources": [{"InstanceType": "ml.p5.48xlarge", "Accelerators": 9}],
        "PreemptTeamTasks": "LowerPriority",
        "ResourceSharingConfig": {"Strategy": "DontLend"},
    }
    objects = [
        one
        for listed in of_type(found.training, "Custom::AWSCDK-EKS-KubernetesResource").values()
        if isinstance(listed["Properties"]["Manifest"], str)
        for one in json.loads(listed["Properties"]["Manifest"])
    ]
    (role,) = [one for one in objects if one["kind"] == "Role"]
    assert role["metadata"]["namespace"] == "hyperpod-ns-red"
    for rule in role["rules"]:
        assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"]
    (bound,) = [one for one in objects if one["kind"] == "RoleBinding"]
    assert [subject["name"] for subject in bound["subjects"]] == entry["KubernetesGroups"]
    profiles = [one["metadata"]["namespace"] for one in objects if one["metadata"]["name"] == "launch-profile-worker-a"]
    assert sorted(profiles) == ["default", "hyperpod-ns-red"]


def test_the_collector_writes_to_the_workspace_alone(hyperpod: Make) -> None:
    """C97, for HyperPod's add-on."""
    found = hyperpod(EKS, WORKER, training="  kubernetes: {hyperpod_add_ons: [observability]}\n").training
    (add_on,) = [
        one["Properties"]
        for one in of_type(found, "AWS::EKS::Addon").values()
        if one["Properties"]["AddonName"].endswith("observability")
    ]
    told = json.dumps(add_on["ConfigurationValues"])
    assert "aps-workspaces.us-west-2." in told
    assert "/workspaces/" in told
    writes = [
        (id, statement)
        for id, one in of_type(found, "AWS::IAM::Policy").items()
        for statement in one["Properties"]["PolicyDocument"]["Statement"]
        if statement["Action"] == "aps:RemoteWrite"
    ]
    ((id, statement),) = [one for one in writes if "observability" in one[0]]
    assert "metricsworkspacearn" in json.dumps(statement["Resource"]), id


def test_people_reach_nodes_and_no_instance_of_the_account(with_scripts: Synthesized) -> None:
    policies = of_type(with_scripts.training, "AWS::IAM::ManagedPolicy")
    assert len(policies) == 2
    for one in policies.values():
        (statement,) = [
            each for each in one["Properties"]["PolicyDocument"]["Statement"] if each["Action"] == "ssm:StartSession"
        ]
        assert "Resource" not in statement
        assert [json.dumps(part).split(":")[2] for part in statement["NotResource"]] == ["ec2", "ecs", "ssm"]
    groups = of_type(with_scripts.foundation, "AWS::EC2::SecurityGroup")
    opened = of_type(with_scripts.foundation, "AWS::EC2::SecurityGroupIngress").values()
    assert not [one for one in opened if one["Properties"].get("FromPort") == 22]
    assert all("SecurityGroupIngress" not in one["Properties"] for one in groups.values())


def test_nodes_are_patched_as_the_group_says(hyperpod: Make, tmp_path: Path) -> None:
    weekly = WORKER.replace(
        "count",
        'patching: {schedule: "cron(30 3 ? * SUN *)", batch_percentage: 10, wait_seconds: 300, '
        "rollback_alarms: [bad-nodes]}, count",
    )
    found = hyperpod(SLURM, CONTROLLER, weekly)
    assert groups_of(found)["worker-a"]["ScheduledUpdateConfig"] == {
        "ScheduleExpression": "cron(30 3 ? * SUN *)",
        "DeploymentConfig": {
            "AutoRollbackConfiguration": [{"AlarmName": "bad-nodes"}],
            "RollingUpdatePolicy": {"MaximumBatchSize": {"Type": "CAPACITY_PERCENTAGE", "Value": 10}},
            "WaitIntervalInSeconds": 300,
        },
    }
    idle = WORKER.replace("count", "patching: when_all_idle, count")
    assert groups_of(hyperpod(EKS, idle))["worker-a"]["AutoPatchConfig"] == {"PatchingStrategy": "WhenAllIdle"}
    assert "[FMB-96]" in refusal(tmp_path, SLURM, CONTROLLER, idle)


def test_addresses_are_counted_zone_by_zone(tmp_path: Path) -> None:
    many = "{name: many, instance_type: p5.48xlarge, count: 60, availability_zone: usw2-az1}"
    said = refusal(tmp_path, EKS, WORKER, many)
    assert "4860 addresses (many 4860) do not fit the 4091 of the private subnet in usw2-az1" in said


def test_lustre_with_efa_is_in_the_zone_of_the_group(tmp_path: Path) -> None:
    fast = LUSTRE.replace("deployment_type", "efa_enabled: true, metadata: {mode: automatic}, deployment_type")
    fast = fast.replace("capacity_gib: 1200", "capacity_gib: 38400")
    moved = WORKER.replace("count", "availability_zone: usw2-az1, count")
    said = refusal(tmp_path, SLURM, CONTROLLER, moved, rest=fast)
    assert "[X-05] training.node_groups[1].availability_zone" in said
