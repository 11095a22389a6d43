"""Failures that happened to others on EKS, each against the template of a project that asks for the same."""

from __future__ import annotations

import email
import email.message
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from fmblocks.catalog import instance_types
from fmblocks.cluster.add_ons import ADD_ONS, pinned, pinned_kubernetes
from fmblocks.findings import FindingsError
from fmblocks.project import Project
from tests.stacks.conftest import Synthesize, Synthesized, Template, of_type

CR = "cr-0123456789abcdef0"
HEAD = """\
# valid at 2026-12-15
name: demo
account: "111122223333"
region: us-west-2
tags: {CostCenter: "42"}
network: {availability_zones: [usw2-az1, usw2-az2], primary_availability_zone: usw2-az2}
storage:
  lustre:
    deployment_type: persistent_2
    capacity_gib: 1200
    throughput_mbps_per_tib: 125
    data_repository_associations: [{path: /checkpoints, auto_export: [new]}]
access: {admins: ["arn:aws:iam::111122223333:role/Platform"]}
training:
  orchestrator: eks
  kubernetes: KUBERNETES
  node_groups:
"""
Eks = Callable[..., Synthesized]
MANIFEST, CHART = "Custom::AWSCDK-EKS-KubernetesResource", "Custom::AWSCDK-EKS-HelmChart"


@pytest.fixture(scope="module")
def eks(synthesize: Synthesize, tmp_path_factory: pytest.TempPathFactory) -> Eks:
    """A project with one node group, from the lines that a case gives it."""

    def make(kind: str = "p5.48xlarge", *lines: str, kubernetes: str = "{version: '1.35'}", more: str = "") -> Any:
        file = tmp_path_factory.mktemp("case") / "project.yaml"
        group = ["- name: gpu", f"  instance_type: {kind}", "  count: 2", *(f"  {line}" for line in lines)]
        body = "".join(f"    {line}\n" for line in group)
        file.write_text(HEAD.replace("KUBERNETES", kubernetes) + body + more)
        return synthesize(file)

    return make


@pytest.fixture(scope="module")
def p5(eks: Eks) -> Synthesized:
    return eks()


def node_group(found: Synthesized, name: str = "gpu") -> dict[str, Any]:
    groups = of_type(found.training, "AWS::EKS::Nodegroup").values()
    (mine,) = [one for one in groups if one["Properties"]["Labels"]["fmblocks/node-group"] == name]
    return dict(mine["Properties"])


def launch(found: Synthesized, name: str = "gpu") -> dict[str, Any]:
    """The template that the node group really uses (C15: not one beside it)."""
    used = node_group(found, name)["LaunchTemplate"]
    id = used["Id"]["Ref"]
    assert used["Version"] == {"Fn::GetAtt": [id, "LatestVersionNumber"]}
    return dict(found.training["Resources"][id]["Properties"]["LaunchTemplateData"])


def properties(template: Template, resource_type: str) -> list[dict[str, Any]]:
    """The properties of every resource of a type."""
    return [one["Properties"] for _, one in sorted(of_type(template, resource_type).items())]


def objects(template: Template) -> list[dict[str, Any]]:
    """Every Kubernetes object of a template; what only the deployment knows reads <Name>."""
    found = []
    for one in of_type(template, MANIFEST).values():
        text = one["Properties"]["Manifest"]
        if isinstance(text, dict):
            parts = text["Fn::Join"][1]
            text = "".join(part if isinstance(part, str) else f"<{part.get('Ref', 'x')}>" for part in parts)
        found += json.loads(text)
    return found


def _named(part: dict[str, Any]) -> str:
    ((how, what),) = part.items()
    return f"{how} {what if isinstance(what, str) else '.'.join(what)}".replace("Fn::", "")


def node_config(data: dict[str, Any]) -> dict[str, Any]:
    """What nodeadm reads of the user data."""
    text = data["UserData"]["Fn::Base64"]
    if isinstance(text, dict):
        parts = text["Fn::Join"][1]
        text = "".join(part if isinstance(part, str) else _named(part) for part in parts)
    parsed = email.message_from_string(text)
    (part,) = [one for one in parsed.walk() if one.get_content_type() == "application/node.eks.aws"]
    assert isinstance(part, email.message.Message)
    loaded: dict[str, Any] = yaml.safe_load(str(part.get_payload()))
    return loaded


def test_the_group_with_rules_to_itself_is_on_every_interface(p5: Synthesized) -> None:
    """C01, C13: that of the fabric, and the cluster's own, which EKS does not add to interfaces."""
    (fabric,) = [id for id, one in p5.training["Parameters"].items() if "efa-security-group-id" in one["Default"]]
    (cluster,) = of_type(p5.training, "AWS::EKS::Cluster")
    for interface in launch(p5)["NetworkInterfaces"]:
        assert interface["Groups"] == [{"Ref": fabric}, {"Fn::GetAtt": [cluster, "ClusterSecurityGroupId"]}]


def test_places_are_told_and_unique(p5: Synthesized, eks: Eks) -> None:
    """C04, C06, C11, C17."""
    for found, cards in ((p5, 32), (eks("p5en.48xlarge"), 16)):
        interfaces = launch(found)["NetworkInterfaces"]
        places = [(one["NetworkCardIndex"], one["DeviceIndex"]) for one in interfaces]
        assert len(set(places)) == len(places)
        assert {device for _, device in places} <= {0, 1}
        assert {card for card, _ in places} == set(range(cards))
        assert all(one["DeleteOnTermination"] is True for one in interfaces)
        assert all("AssociatePublicIpAddress" not in one for one in interfaces)
        assert sum(one["InterfaceType"] == "efa-only" for one in interfaces) == cards


def test_a_type_stands_in_one_place(p5: Synthesized, eks: Eks) -> None:
    """C88."""
    block = f"{{mode: capacity_block, capacity_reservation_id: {CR}, availability_zone: usw2-az2, launch: now}}"
    for found in (p5, eks("p5.48xlarge", f"capacity: {block}")):
        assert launch(found)["InstanceType"] == "p5.48xlarge"
        assert "InstanceTypes" not in node_group(found)


def test_the_template_holds_nothing_that_eks_refuses(p5: Synthesized, eks: Eks) -> None:
    """C12, C89, and a market that the node group buys itself."""
    for data in (launch(p5), launch(eks("p5.48xlarge", "capacity: spot"))):
        refused = {
            "IamInstanceProfile", "InstanceInitiatedShutdownBehavior", "HibernationOptions", "SecurityGroupIds",
            "SecurityGroups", "InstanceMarketOptions", "ImageId",
        }  # fmt: skip
        assert not refused & set(data)
        assert all("SubnetId" not in one for one in data["NetworkInterfaces"])
    assert node_group(eks("p5.48xlarge", "capacity: spot"))["CapacityType"] == "SPOT"


def test_pods_reach_instance_metadata(p5: Synthesized) -> None:
    """C90."""
    for name in ("gpu", "system"):
        assert launch(p5, name)["MetadataOptions"] == {
            "HttpEndpoint": "enabled",
            "HttpPutResponseHopLimit": 2,
            "HttpTokens": "required",
        }


def test_a_single_zone_is_refused(tmp_path: Path) -> None:
    """C92: EKS needs two, the nodes stay in one."""
    text = HEAD.replace("[usw2-az1, usw2-az2], primary_availability_zone: usw2-az2", "[usw2-az2]")
    file = tmp_path / "project.yaml"
    group = "    - {name: gpu, instance_type: p5.48xlarge, count: 2}\n"
    file.write_text(text.replace("KUBERNETES", "{version: '1.35'}") + group)
    with pytest.raises(FindingsError, match=r"network\.availability_zones: 1 zones: eks needs two"):
        Project.load(file)
    text = file.read_text().replace("orchestrator: eks\n  kubernetes: {version: '1.35'}", "orchestrator: ec2")
    file.write_text("".join(line for line in text.splitlines(keepends=True) if "admins" not in line))
    Project.load(file)


def test_an_image_of_your_own_joins(eks: Eks) -> None:
    """C93: EKS tells it nothing, and takes neither type nor version of an image beside it."""
    found = eks("p5.48xlarge", "image: ami-0123456789abcdef0")
    data, group = launch(found), node_group(found)
    assert data["ImageId"] == "ami-0123456789abcdef0"
    assert not {"AmiType", "ReleaseVersion", "Version"} & set(group)
    (id,) = of_type(found.training, "AWS::EKS::Cluster")
    config = node_config(data)
    assert config["apiVersion"] == "node.eks.aws/v1alpha1"
    assert config["spec"]["cluster"] == {
        "name": f"Ref {id}",
        "apiServerEndpoint": f"GetAtt {id}.Endpoint",
        "certificateAuthority": f"GetAtt {id}.CertificateAuthorityData",
        "cidr": found.training["Resources"][id]["Properties"]["KubernetesNetworkConfig"]["ServiceIpv4Cidr"],
    }
    # That of EKS gets its part from EKS: only the instance store is told.
    assert node_config(launch(eks()))["spec"] == {"instance": {"localStorage": {"strategy": "RAID0"}}}
    assert "bootstrap" not in json.dumps(launch(eks()))


def test_the_root_volume_holds_images(p5: Synthesized, eks: Eks) -> None:
    """C94."""
    for found, size in ((p5, 500), (eks("p5.48xlarge", "ebs_volume_gib: 700"), 700)):
        (volume,) = launch(found)["BlockDeviceMappings"]
        assert volume["DeviceName"] == "/dev/xvda"
        assert volume["Ebs"] == {
            "DeleteOnTermination": True,
            "Encrypted": True,
            "VolumeSize": size,
            "VolumeType": "gp3",
        }
        assert "DiskSize" not in node_group(found)


@pytest.mark.parametrize(
    ("kind", "image", "label"),
    [
        ("p6-b200.48xlarge", "AL2023_x86_64_NVIDIA", "nvidia"),
        ("p6e-gb200.36xlarge", "AL2023_ARM_64_NVIDIA", "nvidia"),
        ("trn2.48xlarge", "AL2023_x86_64_NEURON", "neuron"),
        ("m7i.xlarge", "AL2023_x86_64_STANDARD", None),
    ],
)
def test_image_labels_and_taint_follow_the_type(eks: Eks, kind: str, image: str, label: str | None) -> None:
    group = node_group(eks(kind))
    assert group["AmiType"] == image
    assert group["Labels"].get("fmblocks/accelerator") == label
    assert (group["Labels"].get("fmblocks/efa") == "true") is bool(instance_types()[kind].max_efa_interfaces)
    keys = {"nvidia": ["nvidia.com/gpu"], "neuron": ["aws.amazon.com/neuron"]}.get(label or "", [])
    assert [one["Key"] for one in group.get("Taints", [])] == keys


@pytest.mark.parametrize("kind", ["p6-b200.48xlarge", "trn2.48xlarge", "p4d.24xlarge"])
def test_device_plugins_land_on_the_nodes(eks: Eks, kind: str) -> None:
    """C18, C19: by labels that the group really carries, tolerating the taint that it really has."""
    found = eks(kind)
    group = node_group(found)
    sets = {
        one["metadata"]["name"]: one["spec"]["template"]["spec"]
        for one in objects(found.training)
        if one["kind"] == "DaemonSet"
    }
    vendor = {"nvidia": "nvidia-device-plugin", "neuron": "neuron-device-plugin"}[
        group["Labels"]["fmblocks/accelerator"]
    ]
    assert set(sets) == {vendor, "aws-efa-k8s-device-plugin"}
    for spec in sets.values():
        (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
            "nodeSelectorTerms"
        ]
        for one in term["matchExpressions"]:
            assert group["Labels"][one["key"]] in one["values"]
        tolerated = {one["key"] for one in spec["tolerations"]}
        assert {one["Key"] for one in group["Taints"]} <= tolerated
        (container,) = spec["containers"]
        assert ":latest" not in container["image"]
        assert container["image"].rsplit(":", 1)[1]
    tag = sets["aws-efa-k8s-device-plugin"]["containers"][0]["image"].rsplit(":v", 1)[1]
    assert tuple(map(int, tag.split("."))) >= (0, 5, 6)


def test_without_efa_there_is_no_plugin_for_it(eks: Eks) -> None:
    found = eks("p5.48xlarge", "efa: none")
    assert "fmblocks/efa" not in node_group(found)["Labels"]
    assert len(launch(found)["NetworkInterfaces"]) == 1


def test_one_subnet_for_a_fabric(p5: Synthesized) -> None:
    """C23: that of the primary zone; the control plane stands in two."""
    (subnet,) = node_group(p5)["Subnets"]
    assert p5.training["Parameters"][subnet["Ref"]]["Default"].endswith("/subnet/usw2-az2")
    (cluster,) = of_type(p5.training, "AWS::EKS::Cluster").values()
    assert len(cluster["Properties"]["ResourcesVpcConfig"]["SubnetIds"]) == 2


def test_placement_follows_what_was_bought(p5: Synthesized, eks: Eks) -> None:
    """C22, C24."""
    assert launch(p5)["Placement"]["GroupName"]
    assert len(of_type(p5.training, "AWS::EC2::PlacementGroup")) == 1
    mine = eks("p5.48xlarge", "placement: {mode: cluster, group_name: my-existing-pg}")
    assert launch(mine)["Placement"] == {"GroupName": "my-existing-pg"}
    assert not of_type(mine.training, "AWS::EC2::PlacementGroup")
    reserved = eks("p5.48xlarge", f"capacity: {{mode: odcr, capacity_reservation_id: {CR}}}")
    assert "Placement" not in launch(reserved)
    assert not of_type(reserved.training, "AWS::EC2::PlacementGroup")


def test_a_reservation_is_named_once_and_updated_without_a_spare(eks: Eks) -> None:
    """C29, C44."""
    found = eks("p5.48xlarge", f"capacity: {{mode: odcr, capacity_reservation_id: {CR}}}")
    assert json.dumps(found.training).count(CR) == 1
    assert launch(found)["CapacityReservationSpecification"] == {
        "CapacityReservationTarget": {"CapacityReservationId": CR}
    }
    group = node_group(found)
    assert (group["CapacityType"], group["UpdateConfig"]) == (
        "ON_DEMAND",
        {"MaxUnavailable": 1, "UpdateStrategy": "MINIMAL"},
    )
    assert "capacity-reservation/" not in json.dumps(found.training)
    assert "UpdateStrategy" not in node_group(eks())["UpdateConfig"]


def test_a_block_is_empty_until_it_begins_and_before_it_ends(eks: Eks) -> None:
    """C28, C38, C39: EventBridge Scheduler changes the size; no clock in the template, no rule of Auto Scaling."""
    block = f"mode: capacity_block, capacity_reservation_id: {CR}, availability_zone: usw2-az2"
    times = "start: 2027-01-11T11:30:00Z, end: 2027-01-18T11:30:00Z"
    found = eks("p5.48xlarge", f"capacity: {{{block}, {times}, launch: scheduled}}")
    data, group = launch(found), node_group(found)
    assert data["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
    assert data["CapacityReservationSpecification"] == {"CapacityReservationTarget": {"CapacityReservationId": CR}}
    assert group["CapacityType"] == "CAPACITY_BLOCK"
    assert group["ScalingConfig"] == {"DesiredSize": 0, "MaxSize": 2, "MinSize": 0}
    assert group["UpdateConfig"]["UpdateStrategy"] == "MINIMAL"
    schedules = {
        one["Properties"]["ScheduleExpression"]: one["Properties"]
        for one in of_type(found.training, "AWS::Scheduler::Schedule").values()
    }
    assert set(schedules) == {"at(2027-01-11T11:30:00)", "at(2027-01-18T10:45:00)"}
    sizes = {}
    (cluster,) = of_type(found.training, "AWS::EKS::Cluster")
    (mine,) = [id for id, one in of_type(found.training, "AWS::EKS::Nodegroup").items() if "gpu" in id]
    for when, one in schedules.items():
        assert "scheduler:::aws-sdk:eks:updateNodegroupConfig" in json.dumps(one["Target"]["Arn"])
        parts = one["Target"]["Input"]["Fn::Join"][1]
        named = {json.dumps(part) for part in parts if isinstance(part, dict)}
        assert named == {json.dumps({"Ref": cluster}), json.dumps({"Fn::GetAtt": [mine, "NodegroupName"]})}
        asked = json.loads("".join(part if isinstance(part, str) else "x" for part in parts))
        assert set(asked) == {"ClusterName", "NodegroupName", "ScalingConfig"}
        sizes[when] = asked["ScalingConfig"]["DesiredSize"]
    assert sizes == {"at(2027-01-11T11:30:00)": 2, "at(2027-01-18T10:45:00)": 0}
    allowed = [
        statement
        for one in of_type(found.training, "AWS::IAM::Policy").values()
        for statement in one["Properties"]["PolicyDocument"]["Statement"]
        if statement["Action"] == "eks:UpdateNodegroupConfig"
    ]
    assert [one["Resource"] for one in allowed] == [{"Fn::GetAtt": [mine, "Arn"]}]
    now = eks("p5.48xlarge", f"capacity: {{{block}, {times}, launch: now}}")
    assert node_group(now)["ScalingConfig"] == {"DesiredSize": 2, "MaxSize": 2, "MinSize": 0}
    assert len(of_type(now.training, "AWS::Scheduler::Schedule")) == 1


def test_tags_reach_what_is_billed(p5: Synthesized) -> None:
    """C127, C131."""
    told = {
        one["ResourceType"]: {tag["Key"]: tag["Value"] for tag in one["Tags"]}
        for one in launch(p5)["TagSpecifications"]
    }
    assert set(told) >= {"instance", "volume", "network-interface"}
    for tags in (*told.values(), node_group(p5)["Tags"]):
        assert (tags["CostCenter"], tags["fmblocks:project"]) == ("42", "demo")
    (cluster,) = of_type(p5.training, "AWS::EKS::Cluster").values()
    assert {"Key": "CostCenter", "Value": "42"} in cluster["Properties"]["Tags"]


def test_the_cluster_lets_in_whom_it_should(p5: Synthesized, eks: Eks) -> None:
    (cluster,) = of_type(p5.training, "AWS::EKS::Cluster").values()
    told = cluster["Properties"]
    assert told["AccessConfig"] == {"AuthenticationMode": "API", "BootstrapClusterCreatorAdminPermissions": False}
    assert told["BootstrapSelfManagedAddons"] is False
    assert told["ResourcesVpcConfig"]["EndpointPublicAccess"] is False
    assert told["ResourcesVpcConfig"]["EndpointPrivateAccess"] is True
    assert {one["Type"] for one in told["Logging"]["ClusterLogging"]["EnabledTypes"]} == {
        "api", "audit", "authenticator", "controllerManager", "scheduler",
    }  # fmt: skip
    assert told["EncryptionConfig"][0]["Resources"] == ["secrets"]
    entries = properties(p5.training, "AWS::EKS::AccessEntry")
    admins = [one for one in entries if one["PrincipalArn"] == "arn:aws:iam::111122223333:role/Platform"]
    assert "AmazonEKSClusterAdminPolicy" in json.dumps(admins)
    public = eks(kubernetes="{endpoint: public_and_private, public_access_cidrs: [203.0.113.0/24]}")
    (cluster,) = of_type(public.training, "AWS::EKS::Cluster").values()
    assert cluster["Properties"]["ResourcesVpcConfig"]["PublicAccessCidrs"] == ["203.0.113.0/24"]


@pytest.mark.parametrize("version", pinned_kubernetes())
def test_add_ons_are_pinned_and_their_roles_apart(eks: Eks, version: str) -> None:
    found = eks(kubernetes=f"{{version: '{version}'}}")
    made = {one["Properties"]["AddonName"]: one for one in of_type(found.training, "AWS::EKS::Addon").values()}
    assert set(made) == set(ADD_ONS)
    for name, one in made.items():
        assert one["Properties"]["AddonVersion"] == pinned(version)[name]
        assert "PodIdentityAssociations" not in one["Properties"]
        assert "ServiceAccountRoleArn" not in one["Properties"]
    accounts = {
        one["Properties"]["ServiceAccount"]
        for one in of_type(found.training, "AWS::EKS::PodIdentityAssociation").values()
    }
    assert accounts == {"aws-node", "fsx-csi-controller-sa", "s3-csi-driver-sa"}
    settings = json.loads(made["vpc-cni"]["Properties"]["ConfigurationValues"])
    assert settings["env"]["MINIMUM_IP_TARGET"] == "16"
    # The network before the nodes, the nodes before what runs on them.
    groups = of_type(found.training, "AWS::EKS::Nodegroup")
    (system,) = [id for id in groups if "System" in id]
    ids = {one["Properties"]["AddonName"]: id for id, one in of_type(found.training, "AWS::EKS::Addon").items()}
    assert {ids["vpc-cni"], ids["kube-proxy"], ids["eks-pod-identity-agent"]} <= set(groups[system]["DependsOn"])
    assert system in made["coredns"]["DependsOn"]
    (gpu,) = [one for id, one in groups.items() if id != system]
    assert set(ids.values()) <= set(gpu["DependsOn"])


def test_further_add_ons_and_other_versions(eks: Eks) -> None:
    text = (
        "{add_ons: [{name: coredns, version: v1.14.6-eksbuild.4}, {name: aws-ebs-csi-driver, "
        "version: v1.50.0-eksbuild.1, role_arn: 'arn:aws:iam::111122223333:role/ebs', "
        'service_account: ebs-csi-controller-sa, configuration_values: \'{"node": {"enableMetrics": true}}\'}]}'
    )
    found = eks(kubernetes=text)
    made = {
        one["Properties"]["AddonName"]: one["Properties"] for one in of_type(found.training, "AWS::EKS::Addon").values()
    }
    assert made["coredns"]["AddonVersion"] == "v1.14.6-eksbuild.4"
    assert "nodeSelector" in made["coredns"]["ConfigurationValues"]
    assert json.loads(made["aws-ebs-csi-driver"]["ConfigurationValues"]) == {"node": {"enableMetrics": True}}
    roles = [
        one["Properties"]["RoleArn"] for one in of_type(found.training, "AWS::EKS::PodIdentityAssociation").values()
    ]
    assert "arn:aws:iam::111122223333:role/ebs" in roles


def test_lustre_lets_the_cluster_group_in(p5: Synthesized) -> None:
    """C58: pods mount through nodes that carry it; the rules go with the cluster."""
    (group,) = [id for id, one in p5.training["Parameters"].items() if "lustre/security-group-id" in one["Default"]]
    (cluster,) = of_type(p5.training, "AWS::EKS::Cluster")
    rules = properties(p5.training, "AWS::EC2::SecurityGroupIngress")
    assert {(one["IpProtocol"], one["FromPort"], one["ToPort"]) for one in rules} == {
        ("tcp", 988, 988),
        ("tcp", 1018, 1023),
    }
    for one in rules:
        assert one["GroupId"] == {"Ref": group}
        assert one["SourceSecurityGroupId"] == {"Fn::GetAtt": [cluster, "ClusterSecurityGroupId"]}
    by_kind = {one["kind"]: one for one in objects(p5.training)}
    volume, claim = by_kind["PersistentVolume"], by_kind["PersistentVolumeClaim"]
    assert volume["spec"]["csi"]["driver"] == "fsx.csi.aws.com"
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
    assert volume["spec"]["claimRef"]["name"] == claim["metadata"]["name"] == "fsx"


def test_charts_are_pinned_and_come_from_a_mirror_where_one_is_named(eks: Eks) -> None:
    told = "{kueue: true, kube_ray: true, chart_registry: 'oci://r/charts', image_registry: r}"
    for text, place in (("{kueue: true, kube_ray: true}", None), (told, "oci://r/charts/")):
        charts = properties(eks(kubernetes=text).training, CHART)
        assert {one["Chart"] for one in charts} == {"kueue", "kuberay-operator"}
        for one in charts:
            assert one["Version"][0].isdigit()
            assert "ChartAssetURL" not in one
            assert place is None or one["Repository"] == f"{place}{one['Chart']}"
    images = [
        one["spec"]["template"]["spec"]["containers"][0]["image"]
        for one in objects(eks(kubernetes=told).training)
        if one["kind"] == "DaemonSet" and "nvidia" in one["metadata"]["name"]
    ]
    assert images == ["r/nvidia/k8s-device-plugin:v0.20.1"]


def test_a_queue_hands_out_what_the_nodes_have(eks: Eks) -> None:
    found = objects(eks("p5.48xlarge", kubernetes="{kueue: true}").training)
    (queue,) = [one for one in found if one["kind"] == "ClusterQueue"]
    (group,) = queue["spec"]["resourceGroups"]
    (flavor,) = group["flavors"]
    quotas = {one["name"]: one["nominalQuota"] for one in flavor["resources"]}
    assert quotas == {"cpu": "384", "memory": "4096Gi", "nvidia.com/gpu": "16", "vpc.amazonaws.com/efa": "64"}
    assert list(quotas) == group["coveredResources"]
    (kind,) = [one for one in found if one["kind"] == "ResourceFlavor"]
    assert kind["spec"]["nodeLabels"] == {"fmblocks/node-group": "gpu"}


@pytest.mark.parametrize(
    ("capacity", "type", "terms"),
    [
        ("on_demand", "on-demand", None),
        ("spot", "spot", None),
        (f"{{mode: odcr, capacity_reservation_id: {CR}}}", "reserved", [{"id": CR}]),
        (f"{{mode: capacity_block, capacity_reservation_id: {CR}}}", "reserved", [{"id": CR}]),
    ],
)
def test_karpenter_knows_what_was_bought(eks: Eks, capacity: str, type: str, terms: object) -> None:
    found = eks("p5.48xlarge", "provisioned_by: karpenter", f"capacity: {capacity}")
    by_kind = {one["kind"]: one for one in objects(found.training)}
    spec = by_kind["EC2NodeClass"]["spec"]
    assert spec.get("capacityReservationSelectorTerms") == terms
    assert sum(one["interfaceType"] == "efa-only" for one in spec["networkInterfaces"]) == 32
    assert "latest" not in json.dumps(spec["amiSelectorTerms"])
    pool = by_kind["NodePool"]["spec"]
    wanted = {one["key"]: one["values"] for one in pool["template"]["spec"]["requirements"]}
    assert wanted == {"karpenter.sh/capacity-type": [type], "node.kubernetes.io/instance-type": ["p5.48xlarge"]}
    assert pool["limits"] == {"nvidia.com/gpu": "16"}
    assert pool["template"]["metadata"]["labels"]["fmblocks/efa"] == "true"
    charts = {one["Properties"]["Chart"]: one["Properties"] for one in of_type(found.training, CHART).values()}
    assert set(charts) == {"karpenter", "karpenter-crd"}
    assert tuple(map(int, charts["karpenter"]["Version"].split("."))) >= (1, 6)
    # Helm never changes the kinds inside of a chart again.
    assert charts["karpenter"]["SkipCrds"] is True
    assert charts["karpenter-crd"]["Version"] == charts["karpenter"]["Version"]
    assert spec["tags"]["fmblocks:project"]
    budgets = pool["disruption"]["budgets"]
    assert {"nodes": "0", "reasons": ["Drifted"]} in budgets
    assert len(spec["securityGroupSelectorTerms"]) == 2
    assert [id for id in of_type(found.training, "AWS::EKS::Nodegroup") if "gpu" in id] == []


def test_an_add_on_of_another_minor_needs_its_kubectl(eks: Eks) -> None:
    with pytest.raises(FindingsError, match=r"1\.31 is not installed; pip install aws-cdk\.lambda-layer-kubectl-v31"):
        eks(kubernetes="{version: '1.31'}")


def test_every_core_object_is_what_kubernetes_takes(synthesized: Synthesized) -> None:
    """Strictly: an unknown field fails. Kinds that charts bring are checked in tests/local."""
    brought = ("kueue.x-k8s.io", "karpenter.")
    for one in objects(synthesized.training):
        if not one["apiVersion"].startswith(brought):
            kubernetes_validate.validate(one, "1.35", strict=True)


def test_metrics_are_written_with_a_role_and_a_signature(eks: Eks) -> None:
    """C97."""
    found = eks(more="observability: {collector: agents, scrape_interval: 15s}\n")
    (workspace,) = [id for id, one in found.training["Parameters"].items() if "metrics/workspace-arn" in one["Default"]]
    allowed = [
        (one["Roles"], statement)
        for one in properties(found.training, "AWS::IAM::Policy")
        for statement in one["PolicyDocument"]["Statement"]
        if statement["Action"] == "aps:RemoteWrite"
    ]
    (((role,), statement),) = allowed
    assert statement["Resource"] == {"Ref": workspace}
    (bound,) = [
        one
        for one in properties(found.training, "AWS::EKS::PodIdentityAssociation")
        if one["RoleArn"] == {"Fn::GetAtt": [role["Ref"], "Arn"]}
    ]
    listed = objects(found.training)
    (deployment,) = [one for one in listed if one["kind"] == "Deployment"]
    assert deployment["metadata"]["namespace"] == bound["Namespace"]
    assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == bound["ServiceAccount"]
    (config,) = [yaml.safe_load(one["data"]["config.yaml"]) for one in listed if "config.yaml" in one.get("data", {})]
    assert config["extensions"]["sigv4auth"] == {"region": "us-west-2", "service": "aps"}
    exporter = config["exporters"]["prometheusremotewrite"]
    assert exporter["auth"] == {"authenticator": "sigv4auth"}
    assert exporter["endpoint"].endswith("api/v1/remote_write")
    assert config["receivers"]["prometheus"]["config"]["global"] == {"scrape_interval": "15s", "scrape_timeout": "10s"}
    (job,) = config["receivers"]["prometheus"]["config"]["scrape_configs"]
    kept = {one["source_labels"][0]: one["regex"] for one in job["relabel_configs"] if one.get("action") == "keep"}
    (gpus,) = [one for one in listed if one["metadata"]["name"] == "dcgm-exporter"]
    pod = gpus["spec"]["template"]
    # What is scraped is what the exporter really carries.
    assert kept == {
        "__meta_kubernetes_pod_label_fmblocks_metrics": pod["metadata"]["labels"]["fmblocks/metrics"],
        "__meta_kubernetes_pod_container_port_name": pod["spec"]["containers"][0]["ports"][0]["name"],
    }
