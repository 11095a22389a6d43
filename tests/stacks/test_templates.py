"""Properties of the templates, over every example and form."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from fmblocks.network.settings import CLOSED_NETWORK_SERVICES
from tests.stacks.conftest import FORMS, Synthesize, Synthesized, Template, lustre_of, of_type

KEPT = {
    "AWS::APS::Workspace",
    "AWS::EC2::SecurityGroup",
    "AWS::EC2::SecurityGroupEgress",
    "AWS::EC2::SecurityGroupIngress",
    "AWS::EC2::VPC",
    "AWS::FSx::FileSystem",
    "AWS::KMS::Key",
    "AWS::S3::Bucket",
    "AWS::S3::BucketPolicy",
}


def walk(node: object) -> Iterator[tuple[str, Any]]:
    """Every key and value below a node."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield key, value
            yield from walk(value)
    elif isinstance(node, list):
        for item in node:
            yield from walk(item)


def statements(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every IAM statement of roles and policies."""
    for resource_type in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::Role"):
        for id, found in of_type(template, resource_type).items():
            inline = [policy["PolicyDocument"] for policy in found["Properties"].get("Policies", [])]
            for document in [*inline, *filter(None, [found["Properties"].get("PolicyDocument")])]:
                for statement in document["Statement"]:
                    yield id, statement


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_nothing_was_looked_up(synthesized: Synthesized) -> None:
    assert "missing" not in json.loads((synthesized.folder / "manifest.json").read_text())
    text = json.dumps(synthesized.templates)
    assert "dummy" not in text
    assert "vpc-12345" not in text


def test_nothing_is_exported_or_imported(synthesized: Synthesized) -> None:
    for template in synthesized.templates.values():
        assert "Fn::ImportValue" not in json.dumps(template)
        assert all("Export" not in output for output in template.get("Outputs", {}).values())


def test_what_stacks_read_earlier_ones_publish(synthesized: Synthesized) -> None:
    published: set[str] = set()
    for name in ("FoundationStack", "CapacityStack", "TrainingStack", "InferenceStack"):
        template = synthesized.templates.get(name, {"Resources": {}})
        read = {
            parameter["Default"]
            for parameter in template.get("Parameters", {}).values()
            if parameter["Type"] == "AWS::SSM::Parameter::Value<String>"
            and parameter["Default"].startswith("/fmblocks/")
        }
        assert read or name not in ("TrainingStack", "InferenceStack") or not template["Resources"]
        assert read <= published, name
        published |= {one["Properties"].get("Name", "") for one in of_type(template, "AWS::SSM::Parameter").values()}
    for parameter in of_type(synthesized.foundation, "AWS::SSM::Parameter").values():
        assert parameter["Properties"]["Type"] == "String"
        assert not isinstance(parameter["Properties"]["Value"], list)


def test_every_bucket_is_published_with_its_key(synthesized: Synthesized) -> None:
    names = {
        parameter["Properties"]["Name"].split("/", 3)[3]: parameter["Properties"]["Value"]
        for parameter in of_type(synthesized.foundation, "AWS::SSM::Parameter").values()
    }
    buckets = of_type(synthesized.foundation, "AWS::S3::Bucket")
    with_key = [id for id, bucket in buckets.items() if "KMSMasterKeyID" in json.dumps(bucket)]
    for id in with_key:
        (name,) = [name for name, value in names.items() if value == {"Ref": id}]
        assert name.endswith("/name")
        assert names[name.removesuffix("/name") + "/key-arn"]["Fn::GetAtt"][0].startswith("Key")


def test_only_unique_names_are_given(synthesized: Synthesized) -> None:
    """A name blocks replacement and a second deployment; these are unique by construction."""
    given = set()
    for template in synthesized.templates.values():
        for resource in template["Resources"].values():
            name = PHYSICAL_NAMES.get(resource["Type"])
            if name and name in resource["Properties"]:
                given.add((resource["Type"], json.dumps(resource["Properties"][name])))
    kinds = {kind for kind, _ in given}
    # HyperPod's inference operator passes its role on, and AWS's policy lets it by the beginning of the name.
    for name in [name for kind, name in given if kind == "AWS::IAM::Role"]:
        assert "SageMakerHyperPodInferenceRole-" in name
        assert "AWS::StackId" in name
    assert kinds - {"AWS::Logs::LogGroup", "AWS::IAM::Role"} == {"AWS::SSM::Parameter", "AWS::S3::Bucket"}
    # FSx wants the beginning of the name; the project's name is as unique as its SSM parameters.
    # Functions of CDK's have groups of their own name, which CloudFormation chose.
    groups = [name for kind, name in given if kind == "AWS::Logs::LogGroup"]
    assert all('"/aws/fsx/' in name or re.search(r'"/aws/lambda/", \{"Ref":', name) for name in groups)
    buckets = [name for kind, name in given if kind == "AWS::S3::Bucket"]
    assert all("sagemaker-" in bucket or "hyperpod-tls-" in bucket for bucket in buckets)
    assert all("AWS::StackId" in bucket for bucket in buckets)


PHYSICAL_NAMES = {
    "AWS::S3::Bucket": "BucketName",
    "AWS::SSM::Parameter": "Name",
    "AWS::IAM::Role": "RoleName",
    "AWS::Lambda::Function": "FunctionName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::SageMaker::Cluster": "ClusterName",
    "AWS::EC2::SecurityGroup": "GroupName",
    "AWS::KMS::Alias": "AliasName",
}


KEPT_OF_DATABASES = {
    "AWS::RDS::DBCluster",
    "AWS::RDS::DBClusterParameterGroup",
    "AWS::RDS::DBInstance",
    "AWS::RDS::DBSubnetGroup",
    "AWS::SecretsManager::Secret",
    "AWS::SecretsManager::SecretTargetAttachment",
}


def test_the_kept_set(synthesized: Synthesized) -> None:
    """Kept: data, the key, and the network that data stands on; everything else goes with its stack."""
    kept = {
        id: resource
        for template in synthesized.templates.values()
        for id, resource in template["Resources"].items()
        if resource.get("DeletionPolicy", "Delete") != "Delete"
    }
    subnets = {id: found for id, found in kept.items() if found["Type"] == "AWS::EC2::Subnet"}
    database = bool(of_type(synthesized.foundation, "AWS::RDS::DBCluster"))
    types = KEPT | KEPT_OF_DATABASES if database else KEPT
    if not of_type(synthesized.foundation, "AWS::FSx::FileSystem"):
        types = types - {"AWS::FSx::FileSystem"}
        # The subnet waits for one that may come; nobody says so in the template.
        assert {found["Type"] for id, found in kept.items() if id not in subnets} == types
        return
    assert {found["Type"] for id, found in kept.items() if id not in subnets} == types
    lustre = lustre_of(synthesized.foundation)
    (primary,) = lustre["Properties"]["SubnetIds"]
    stood_on = [primary]
    for group in of_type(synthesized.foundation, "AWS::RDS::DBSubnetGroup").values():
        stood_on = group["Properties"]["SubnetIds"]
    assert primary in stood_on
    assert {one["Ref"] for one in stood_on} == set(subnets)  # private ones, under something that is kept
    for id, found in kept.items():
        logs = id.startswith("Logs")
        assert found["DeletionPolicy"] == ("Retain" if logs else "RetainExceptOnCreate")
        assert found["UpdateReplacePolicy"] == "Retain"
    for id, resource in synthesized.foundation["Resources"].items():
        # No kept interface carries the group of the endpoints: it goes with them.
        if resource["Type"] in KEPT and not id.startswith("NetworkEndpoints"):
            assert resource.get("DeletionPolicy") not in (None, "Delete"), resource["Type"]


def test_what_lustre_carries_is_kept_and_waited_for(synthesized: Synthesized) -> None:
    if not of_type(synthesized.foundation, "AWS::FSx::FileSystem"):
        return
    lustre = lustre_of(synthesized.foundation)
    groups = [group["Fn::GetAtt"][0] for group in lustre["Properties"]["SecurityGroupIds"]]
    rules = {
        id: rule
        for kind in ("Ingress", "Egress")
        for id, rule in of_type(synthesized.foundation, f"AWS::EC2::SecurityGroup{kind}").items()
        if rule["Properties"]["GroupId"]["Fn::GetAtt"][0] in groups
    }
    assert rules
    assert set(rules) | set(groups) <= set(lustre["DependsOn"])


def test_lustre_lets_nodes_and_itself_in(synthesized: Synthesized) -> None:
    if not of_type(synthesized.foundation, "AWS::FSx::FileSystem"):
        return
    lustre = lustre_of(synthesized.foundation)
    own = lustre["Properties"]["SecurityGroupIds"][0]
    (efa,) = [
        {"Fn::GetAtt": [id, "GroupId"]}
        for id in of_type(synthesized.foundation, "AWS::EC2::SecurityGroup")
        if id.startswith("EfaGroup")
    ]
    opened = {
        (json.dumps(found["SourceSecurityGroupId"]), found["FromPort"], found["ToPort"])
        for rule in of_type(synthesized.foundation, "AWS::EC2::SecurityGroupIngress").values()
        if (found := rule["Properties"])["GroupId"] == own
    }
    assert opened == {(json.dumps(peer), *ports) for peer in (own, efa) for ports in ((988, 988), (1018, 1023))}


def test_the_efa_group_is_open_to_itself_both_ways(synthesized: Synthesized) -> None:
    for kind, peer in (("Ingress", "SourceSecurityGroupId"), ("Egress", "DestinationSecurityGroupId")):
        (rule,) = [
            rule["Properties"]
            for id, rule in of_type(synthesized.foundation, f"AWS::EC2::SecurityGroup{kind}").items()
            if id.startswith("EfaGroup")
        ]
        assert rule["IpProtocol"] == "-1"
        assert rule["GroupId"] == rule[peer]
        assert "CidrIp" not in rule


def test_every_private_route_table_has_the_s3_endpoint_and_a_nat(synthesized: Synthesized) -> None:
    private = {id for id in of_type(synthesized.foundation, "AWS::EC2::RouteTable") if "PrivateRouteTable" in id}
    endpoints = [one["Properties"] for one in of_type(synthesized.foundation, "AWS::EC2::VPCEndpoint").values()]
    (gateway,) = (one for one in endpoints if one["VpcEndpointType"] == "Gateway")
    assert {table["Ref"] for table in gateway["RouteTableIds"]} == private
    if len(endpoints) > len(CLOSED_NETWORK_SERVICES):
        return  # a closed network
    routed = {
        route["Properties"]["RouteTableId"]["Ref"]
        for route in of_type(synthesized.foundation, "AWS::EC2::Route").values()
        if "NatGatewayId" in route["Properties"]
    }
    assert routed == private


# CDK's kubectl function reads a chart that is an asset with CDK's own grant.
CDKS_OWN = {
    ("KubernetesClusterKubectlProviderHandlerServiceRoleDefaultPolicy3DCCB1AA", action)
    for action in ("s3:GetBucket*", "s3:GetObject*", "s3:List*")
}


def test_nothing_names_a_policy_wildcard_action(synthesized: Synthesized) -> None:
    for template in synthesized.templates.values():
        for id, statement in statements(template):
            for action in as_list(statement["Action"]):
                assert "*" not in action or (id, action) in CDKS_OWN, id


# Where each action was read: SageMaker AI guide *IAM role for SageMaker HyperPod* (nodes), rule HP-15 (fsx), *Customer
# managed key encryption* (volumes); Managed Prometheus guide *IAM permissions*; VPC guide *Publish flow logs to
# CloudWatch Logs*; Service Authorization Reference for the two handlers and FSx; CDK's provider framework for lambda:….
TAKES_NO_RESOURCE = {
    # KEDA's: SageMaker AI guide, *Setting up your HyperPod clusters for model deployment*; the same reference.
    # Karpenter's: karpenter.sh, *CloudFormation reference*; whether they take one: Service Authorization Reference.
    "cloudwatch:GetMetricData",
    "cloudwatch:GetMetricStatistics",
    "cloudwatch:ListMetrics",
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeImages",
    "ec2:DescribeInstances",
    "ec2:DescribeInstanceStatus",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeLaunchTemplates",
    "ec2:DescribePlacementGroups",
    "ec2:DescribeSpotPriceHistory",
    "iam:ListInstanceProfiles",
    "pricing:GetProducts",
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroupRules",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
    "fsx:DescribeFileSystems",
    # SageMaker AI guide, *IAM role for SageMaker HyperPod*, EKS.
    "cloudwatch:DescribeAlarms",
    "ec2:DescribeTags",
    "ecr:GetAuthorizationToken",
}
ACTIONS = TAKES_NO_RESOURCE | {
    # Karpenter's again, by the tags of the cluster.
    "ec2:CreateFleet",
    "ec2:CreateLaunchTemplate",
    "ec2:DeleteLaunchTemplate",
    "ec2:RunInstances",
    "ec2:TerminateInstances",
    "iam:AddRoleToInstanceProfile",
    "iam:CreateInstanceProfile",
    "iam:DeleteInstanceProfile",
    "iam:GetInstanceProfile",
    "iam:RemoveRoleFromInstanceProfile",
    "iam:TagInstanceProfile",
    "sqs:DeleteMessage",
    "sqs:GetQueueUrl",
    "sqs:ReceiveMessage",
    "ssm:GetParameter",
    # CDK's kubectl function, and the schedule of a Capacity Block: Service Authorization Reference, Amazon EKS.
    "eks:DescribeCluster",
    "eks:UpdateNodegroupConfig",
    # EKS User Guide, *Mountpoint for Amazon S3 CSI driver*.
    "s3:AbortMultipartUpload",
    "aps:RemoteWrite",
    "ec2:CreateNetworkInterface",
    "ec2:CreateNetworkInterfacePermission",
    "ec2:CreateTags",
    "ec2:DeleteNetworkInterface",
    "ec2:DeleteNetworkInterfacePermission",
    "ec2:DetachNetworkInterface",
    "ec2:RevokeSecurityGroupEgress",
    "ec2:RevokeSecurityGroupIngress",
    "fsx:CreateDataRepositoryTask",
    "iam:PassRole",
    "kms:CreateGrant",
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:GenerateDataKey",
    "lambda:GetFunction",
    "lambda:InvokeFunction",
    "states:StartExecution",  # CDK's provider framework, where it waits
    "logs:CreateLogStream",
    "logs:DescribeLogStreams",
    "logs:PutLogEvents",
    # The same page, nodes of EKS and its Karpenter; AttachClusterNodeNetworkInterface: SageMaker API reference.
    "ec2:AssignPrivateIpAddresses",
    "ec2:AttachNetworkInterface",
    "ec2:ModifyNetworkInterfaceAttribute",
    "ec2:UnassignPrivateIpAddresses",
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:GetDownloadUrlForLayer",
    "eks-auth:AssumeRoleForPodIdentity",
    "sagemaker:AttachClusterNodeNetworkInterface",
    "sagemaker:BatchAddClusterNodes",
    "sagemaker:BatchDeleteClusterNodes",
    "sagemaker:ListClusterNodes",
    # People: *IAM users for cluster admin*; API reference; Systems Manager guide, *Sample IAM policies*.
    "sagemaker:BatchRebootClusterNodes",
    "sagemaker:BatchReplaceClusterNodes",
    "sagemaker:DescribeCluster",
    "sagemaker:DescribeClusterNode",
    "sagemaker:UpdateClusterSoftware",
    "ssm:ResumeSession",
    "ssm:StartSession",
    "ssm:TerminateSession",
    "cloudformation:DescribeStacks",
    # CDK's grant on a secret.
    "secretsmanager:DescribeSecret",
    "secretsmanager:GetSecretValue",
    # SageMaker AI guide, *Setting up the SageMaker HyperPod observability add-on*.
    "logs:CreateLogGroup",
    "logs:DescribeLogGroups",
    "logs:FilterLogEvents",
    "logs:GetLogEvents",
    "s3:DeleteObject",
    "s3:GetObject",
    "s3:ListBucket",
    "s3:PutObject",
    # A bucket is emptied before it goes: S3 API reference, ListObjectVersions, DeleteObjects.
    "s3:DeleteObjectVersion",
    "s3:ListBucketVersions",
    # Managed Prometheus guide, AmazonPrometheusQueryAccess.
    "aps:GetLabels",
    "aps:GetMetricMetadata",
    "aps:GetSeries",
    "aps:QueryMetrics",
    # The same page: certificates of one's own, *Configure custom certificates*.
    "acm:DescribeCertificate",
    "acm:GetCertificate",
    "route53:ChangeResourceRecordSets",
    "route53:GetHostedZone",
    "route53:ListResourceRecordSets",
}


def test_every_action_is_known_and_scoped(synthesized: Synthesized) -> None:
    for template in synthesized.templates.values():
        for id, statement in statements(template):
            if id.startswith("ServingOperatorLoadBalancerRole"):
                continue  # tests/stacks/test_inference_cases.py compares it with its project's
            actions = set(as_list(statement["Action"]))
            actions -= {action for action in actions if (id, action) in CDKS_OWN}
            assert actions <= ACTIONS, (id, actions - ACTIONS)
            if "*" in as_list(statement.get("Resource", [])):
                assert actions <= TAKES_NO_RESOURCE, (id, actions)


def test_every_use_of_the_key_is_allowed(synthesized: Synthesized) -> None:
    """Walks each key a resource names to what lets the resource use it: a statement of the key, or an identity."""
    (key_id,) = of_type(synthesized.foundation, "AWS::KMS::Key")
    statements_of_key = synthesized.foundation["Resources"][key_id]["Properties"]["KeyPolicy"]["Statement"]
    # CDK's secrets add statements of theirs, without a name, behind that of the account.
    by_sid = {statement.get("Sid", "Account"): statement for statement in reversed(statements_of_key)}
    # Lets IAM policies of the account use the key: the deploying role's for file systems, people's for objects.
    assert by_sid["Account"]["Action"] == "kms:*"
    assert ":root" in json.dumps(by_sid["Account"]["Principal"])

    def logs_may() -> bool:
        found = by_sid["CloudWatchLogs"]
        context = found["Condition"]["ArnLike"]["kms:EncryptionContext:aws:logs:arn"]
        return "logs." in json.dumps(found["Principal"]["Service"]) and ":log-group:*" in json.dumps(context)

    def linked_role_may() -> bool:
        found = by_sid["FsxDataRepositories"]
        pattern = json.dumps(found["Condition"]["ArnLike"]["aws:PrincipalArn"])
        needed = {"kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"}
        return "AWSServiceRoleForFSxS3Access_fs-*" in pattern and needed <= set(found["Action"])

    def alarms_may() -> bool:
        found = by_sid["CloudWatchAlarms"]
        needed = {"kms:GenerateDataKey*", "kms:Decrypt"}
        return found["Principal"] == {"Service": "cloudwatch.amazonaws.com"} and needed == set(found["Action"])

    def nodes_may() -> bool:
        actions = {
            action
            for template in (synthesized.training, synthesized.inference)
            for id, statement in statements(template)
            if id.startswith(("ClusterExecutionRole", "KubernetesHyperPodExecutionRole"))
            for action in as_list(statement["Action"])
        }
        return {"kms:CreateGrant", "kms:DescribeKey"} <= actions

    users = {
        "AWS::FSx::FileSystem": lambda: "Account" in by_sid,
        "AWS::RDS::DBCluster": lambda: "Account" in by_sid,
        "AWS::SecretsManager::Secret": lambda: "Account" in by_sid,
        "AWS::Logs::LogGroup": logs_may,
        "AWS::S3::Bucket": linked_role_may,
        "AWS::SNS::Topic": alarms_may,
        "AWS::SageMaker::Cluster": nodes_may,
    }
    names = ("KmsKeyId", "KMSMasterKeyID", "KmsKeyArn", "VolumeKmsKeyId", "KmsMasterKeyId")
    used = {}
    for template in synthesized.templates.values():
        for resource in template["Resources"].values():
            for name, value in walk(resource.get("Properties", {})):
                if name in names:
                    used[resource["Type"]] = json.dumps(value)
    for kind, value in used.items():
        assert users[kind](), kind
        assert key_id in value or "keyarn" in value, (kind, value)  # the key itself, or the published one
    assert {"AWS::Logs::LogGroup", "AWS::S3::Bucket"} <= set(used)


def test_volumes_are_walked_too(synthesize: Synthesize, form: Callable[[str], Path]) -> None:
    found = synthesize(form(FORMS["continuous provisioning"])).training
    assert "VolumeKmsKeyId" in json.dumps(of_type(found, "AWS::SageMaker::Cluster"))


def test_readers_of_an_encrypted_bucket_may_decrypt(large: Synthesized) -> None:
    """The nodes and the unpacking function: without the key their bucket permissions are worth nothing."""
    for role in ("ClusterExecutionRole", "LifecycleScriptsUnpackServiceRole"):
        mine = [statement for id, statement in statements(large.training) if id.startswith(role)]
        assert any("s3:ListBucket" in as_list(statement["Action"]) for statement in mine)
        assert any("kms:Decrypt" in as_list(statement["Action"]) for statement in mine)


def test_tags_are_on_everything_that_takes_them(large: Synthesized) -> None:
    for template in large.templates.values():
        for id, resource in template["Resources"].items():
            kind = resource["Type"]
            if kind.startswith(("Custom::", "AWS::CDK::")):
                continue
            schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-west-2", kind).schema
            place = (schema.get("tagging") or {}).get("tagProperty", "/properties/Tags").rsplit("/", 1)[1]
            if place not in schema["properties"] or kind in NOT_TAGGED_BY_CDK:
                continue
            tags = resource["Properties"].get(place, [])
            listed = {tag["Key"]: tag["Value"] for tag in tags} if isinstance(tags, list) else tags
            assert listed.get("team") == "research", (id, kind)
            assert listed.get("cost-center") == "4711", (id, kind)
            assert listed.get("fmblocks:project") == "llm-pretrain", (id, kind)


# Tags of stand-alone rules and endpoints' policies do not exist in the L1 as a taggable resource.
NOT_TAGGED_BY_CDK = {"AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress"}


def test_zone_changes_touch_no_other_subnet(synthesize: Synthesize, form: Callable[[str], Path]) -> None:
    def subnets(zones: str) -> dict[str, Any]:
        text = f"region: us-west-2\nnetwork: {{availability_zones: [{zones}], primary_availability_zone: usw2-az2}}\n"
        return of_type(synthesize(form(text)).foundation, "AWS::EC2::Subnet")

    two, three, reordered = (
        subnets("usw2-az2, usw2-az4"),
        subnets("usw2-az1, usw2-az2, usw2-az4"),
        subnets("usw2-az4, usw2-az1, usw2-az2"),
    )
    assert len(two) == 4
    assert len(three) == 6
    assert {id: three[id] for id in two} == two
    assert reordered == three


def test_paths_that_look_alike_are_two(synthesize: Synthesize, form: Callable[[str], Path]) -> None:
    links = ", ".join(f"{{path: {path}, auto_export: [new]}}" for path in ("/lifecycle", "/a/b", "/a.b", "/bucket"))
    text = form("network: {availability_zones: 1}\n").read_text()
    file = form("network: {availability_zones: 1}\n").with_name("alike.yaml")
    file.write_text(
        text.replace(
            "throughput_mbps_per_tib: 125", f"throughput_mbps_per_tib: 125, data_repository_associations: [{links}]"
        )
    )
    found = synthesize(file).foundation
    assert len(of_type(found, "AWS::FSx::DataRepositoryAssociation")) == 4
    names = [one["Properties"]["Name"] for one in of_type(found, "AWS::SSM::Parameter").values()]
    assert len(set(names)) == len(names)
    assert "/fmblocks/my-project/link/a/b/bucket/name" in names


def test_nat_gateways_stay_where_they_are(synthesize: Synthesize, form: Callable[[str], Path]) -> None:
    def gateways(zones: str, number: int) -> dict[str, Any]:
        network = f"{{availability_zones: [{zones}], primary_availability_zone: usw2-az2, nat_gateways: {number}}}"
        return of_type(synthesize(form(f"region: us-west-2\nnetwork: {network}\n")).foundation, "AWS::EC2::NatGateway")

    two, three = gateways("usw2-az2, usw2-az3", 2), gateways("usw2-az1, usw2-az2, usw2-az3", 3)
    assert len(two) == 2
    assert {id: three[id] for id in two} == two
    assert gateways("usw2-az1, usw2-az2", 1) == gateways("usw2-az2", 1)


def test_a_closed_network_has_endpoints_and_no_way_out(synthesize: Synthesize, form: Callable[[str], Path]) -> None:
    text = "region: us-west-2\nnetwork: {availability_zones: [usw2-az1, usw2-az2], primary_availability_zone: usw2-az2"
    closed, opened = (synthesize(form(f"{text}{more}}}\n")).foundation for more in (", nat_gateways: 0", ""))
    for kind in ("InternetGateway", "VPCGatewayAttachment", "NatGateway", "EIP", "Route"):
        assert of_type(closed, f"AWS::EC2::{kind}") == {}
    subnets = of_type(closed, "AWS::EC2::Subnet")
    assert {one["Properties"]["CidrBlock"] for one in subnets.values()} == {"10.20.0.0/17", "10.20.128.0/20"}
    assert subnets.items() <= of_type(opened, "AWS::EC2::Subnet").items()
    endpoints = of_type(closed, "AWS::EC2::VPCEndpoint").values()
    (gateway,) = (one["Properties"] for one in endpoints if one["Properties"]["VpcEndpointType"] == "Gateway")
    assert len(gateway["RouteTableIds"]) == 2
    interfaces = [one["Properties"] for one in endpoints if one["Properties"]["VpcEndpointType"] == "Interface"]
    names = {one["ServiceName"].removeprefix("com.amazonaws.us-west-2.") for one in interfaces}
    assert names == set(CLOSED_NETWORK_SERVICES)
    (primary,) = (id for id, one in subnets.items() if one["Properties"]["CidrBlock"] == "10.20.0.0/17")
    for one in interfaces:
        assert one["SubnetIds"] == [{"Ref": primary}]
        assert one["PrivateDnsEnabled"] is True
        (group,) = one["SecurityGroupIds"]
        rules = closed["Resources"][group["Fn::GetAtt"][0]]["Properties"]["SecurityGroupIngress"]
        assert [(rule["CidrIp"], rule["FromPort"], rule["ToPort"]) for rule in rules] == [("10.20.0.0/16", 443, 443)]
    assert of_type(opened, "AWS::EC2::VPCEndpoint").keys() == {
        id for id, one in of_type(closed, "AWS::EC2::VPCEndpoint").items() if one["Properties"] == gateway
    }


def test_groups_of_a_closed_network_reach_what_they_need(synthesize: Synthesize, form: Callable[[str], Path]) -> None:
    closed = synthesize(form("network: {availability_zones: 1, nat_gateways: 0}\n")).foundation
    groups = of_type(closed, "AWS::EC2::SecurityGroup")
    (efa,) = (one for id, one in groups.items() if id.startswith("EfaGroup"))
    outbound = [
        (rule["CidrIp"], rule["IpProtocol"], rule.get("FromPort")) for rule in efa["Properties"]["SecurityGroupEgress"]
    ]
    assert outbound == [("10.20.0.0/16", "-1", None), ("0.0.0.0/0", "tcp", 443)]
    (lustre,) = (one for id, one in groups.items() if id.startswith("LustreGroup"))
    assert [rule["CidrIp"] for rule in lustre["Properties"]["SecurityGroupEgress"]] == ["255.255.255.255/32"]
    out = of_type(closed, "AWS::EC2::SecurityGroupEgress")
    assert sorted(
        (one["Properties"]["IpProtocol"], one["Properties"].get("FromPort"), one["Properties"].get("ToPort"))
        for one in out.values()
    ) == [("-1", None, None), *[("tcp", 988, 988)] * 2, *[("tcp", 1018, 1023)] * 2]
    # A kept file system keeps all of them, and waits for all of them.
    system = lustre_of(closed)
    for id, one in out.items():
        assert one["DeletionPolicy"] == "RetainExceptOnCreate"
        assert id in system["DependsOn"] or one["Properties"]["IpProtocol"] == "-1"


def test_endpoints_stand_where_they_are_wanted(synthesize: Synthesize, form: Callable[[str], Path]) -> None:
    network = "{availability_zones: 2, endpoints: {services: [ecr.api], availability_zones: 2}}"
    found = of_type(synthesize(form(f"network: {network}\n")).foundation, "AWS::EC2::VPCEndpoint").values()
    (interface,) = (one["Properties"] for one in found if one["Properties"]["VpcEndpointType"] == "Interface")
    assert len(interface["SubnetIds"]) == 2


EXISTING = """\
name: my-project
region: us-west-2
network:
  vpc:
    id: vpc-0123456789abcdef0
    cidr: 10.0.0.0/16
    private_subnets:
      - id: subnet-0123456789abcdef0
        availability_zone: usw2-az1
        cidr: 10.0.0.0/20
        route_table_id: rtb-0123456789abcdef0
      - id: subnet-0123456789abcdef1
        availability_zone: usw2-az2
        cidr: 10.0.16.0/20
        route_table_id: rtb-0123456789abcdef1
    GROUP
  primary_availability_zone: usw2-az2
storage:
  lustre:
    existing:
      file_system_id: fs-0123456789abcdef0
      dns_name: fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com
      mount_name: abcd1234
      security_group_id: sg-0123456789abcdef1
      availability_zone: usw2-az2
    data_repository_associations: [{path: /checkpoints, auto_export: [new]}]
training:
  node_groups:
    - {name: controller, role: controller, instance_type: m7i.xlarge, count: 1}
    - {name: gpu, instance_type: g6.2xlarge, count: 2}
"""


def test_exported_files_are_released_by_schedule(large: Synthesized) -> None:
    (schedule,) = of_type(large.foundation, "AWS::Scheduler::Schedule").values()
    properties = schedule["Properties"]
    assert (properties["ScheduleExpression"], properties["ScheduleExpressionTimezone"]) == (
        "cron(0 3 * * ? *)",
        "Etc/UTC",
    )
    target = properties["Target"]
    assert "scheduler:::aws-sdk:fsx:createDataRepositoryTask" in json.dumps(target["Arn"])
    parts = target["Input"]["Fn::Join"][1]
    known = {
        part["Ref"]: "fs-0123456789abcdef0" if "Bucket" not in part["Ref"] else "bucket"
        for part in parts
        if isinstance(part, dict)
    }
    assert sorted(known.values()) == ["bucket", "fs-0123456789abcdef0"]
    text = "".join(part if isinstance(part, str) else known[part["Ref"]] for part in parts)
    asked = json.loads(text)
    assert asked == {
        "FileSystemId": "fs-0123456789abcdef0",
        "Type": "RELEASE_DATA_FROM_FILESYSTEM",
        "Paths": ["checkpoints"],
        "ReleaseConfiguration": {"DurationSinceLastAccess": {"Unit": "DAYS", "Value": 14}},
        "Report": {
            "Enabled": True,
            "Format": "REPORT_CSV_20191124",
            "Scope": "FAILED_FILES_ONLY",
            "Path": "s3://bucket/fmblocks-release-reports",
        },
        "ClientRequestToken": "<aws.scheduler.execution-id>",
    }
    # As the operation takes it, with the token that Scheduler writes.
    service = botocore.session.Session().get_service_model("fsx")
    given = {**asked, "ClientRequestToken": "d32c5kddcf5bb8c3"}
    shape = service.operation_model("CreateDataRepositoryTask").input_shape
    assert shape is not None
    assert not ParamValidator().validate(given, shape).has_errors()
    (group,) = of_type(large.foundation, "AWS::Scheduler::ScheduleGroup")
    role = large.foundation["Resources"][target["RoleArn"]["Fn::GetAtt"][0]]["Properties"]
    (trusted,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trusted["Condition"]["StringEquals"]["aws:SourceArn"] == {"Fn::GetAtt": [group, "Arn"]}


def test_events_of_hyperpod_reach_the_topic(large: Synthesized) -> None:
    """Rule → topic of the foundation → its policy → the key's."""
    (cluster,) = of_type(large.training, "AWS::SageMaker::Cluster")
    (topic,) = [id for id, one in large.training["Parameters"].items() if "alerts/topic-arn" in one["Default"]]
    rules = [one["Properties"] for one in of_type(large.training, "AWS::Events::Rule").values()]
    told = {one["EventPattern"]["detail-type"][0]: one["EventPattern"] for one in rules}
    assert set(told) == {"SageMaker HyperPod Cluster Node Health Event", "SageMaker HyperPod Cluster Event"}
    assert told["SageMaker HyperPod Cluster Event"]["detail"] == {"EventDetails": {"EventLevel": ["Error"]}}
    for one in rules:
        assert one["EventPattern"]["source"] == ["aws.sagemaker"]
        assert one["EventPattern"]["resources"] == [{"Fn::GetAtt": [cluster, "ClusterArn"]}]
        assert [target["Arn"] for target in one["Targets"]] == [{"Ref": topic}]
    (policy,) = of_type(large.foundation, "AWS::SNS::TopicPolicy").values()
    allowed = {
        one["Principal"]["Service"]
        for one in policy["Properties"]["PolicyDocument"]["Statement"]
        if one["Effect"] == "Allow"
    }
    assert allowed == {"cloudwatch.amazonaws.com", "events.amazonaws.com"}


def test_alarms_of_storage_reach_the_topic(large: Synthesized) -> None:
    (topic,) = of_type(large.foundation, "AWS::SNS::Topic")
    alarms = {id: one["Properties"] for id, one in of_type(large.foundation, "AWS::CloudWatch::Alarm").items()}
    assert all(one["AlarmActions"] == [{"Ref": topic}] for one in alarms.values())
    (full,) = (alarms.pop(id) for id in list(alarms) if id.startswith("HomeFull"))
    assert (full["MetricName"], full["Threshold"]) == ("UsedStorageCapacity", 512 * 1024**3 * 0.8)
    assert {one["MetricName"] for one in alarms.values()} == {
        "FreeDataStorageCapacity", "AgeOfOldestQueuedMessage", "TargetErrorCount", "InvocationDroppedCount",
    }  # fmt: skip
    (free,) = (one for one in alarms.values() if one["MetricName"] == "FreeDataStorageCapacity")
    assert (free["Statistic"], free["Period"], free["ComparisonOperator"]) == ("Sum", 60, "LessThanThreshold")
    assert free["Threshold"] == 19200 * 1024**3 * 0.15
    waiting = {
        next(one["Value"] for one in alarm["Dimensions"] if one["Name"] == "Publisher"): alarm["Threshold"]
        for alarm in alarms.values()
        if alarm["MetricName"] == "AgeOfOldestQueuedMessage"
    }
    assert waiting == {"AutoExport": 3600, "AutoImport": 86400}
    (subscription,) = of_type(large.foundation, "AWS::SNS::Subscription").values()
    assert subscription["Properties"]["Endpoint"] == "oncall@example.com"
    assert large.foundation["Resources"][topic]["Properties"]["KmsMasterKeyId"]


def test_imports_and_exports_that_fail_are_logged(large: Synthesized) -> None:
    lustre = lustre_of(large.foundation)
    logged = lustre["Properties"]["LustreConfiguration"]["LogConfiguration"]
    assert logged["Level"] == "WARN_ERROR"
    names = [one["Properties"].get("LogGroupName") for one in of_type(large.foundation, "AWS::Logs::LogGroup").values()]
    assert "/aws/fsx/llm-pretrain" in names
    parts = logged["Destination"]["Fn::Join"][1]
    (group,) = (part["Ref"] for part in parts if isinstance(part, dict) and part["Ref"].startswith("LustreLog"))
    assert "".join(part for part in parts if isinstance(part, str)).endswith(":logs:us-west-2:111122223333:log-group:")
    assert group in large.foundation["Resources"]


def test_into_an_existing_vpc_with_its_file_system(synthesize: Synthesize, tmp_path: Path) -> None:
    file = tmp_path / "existing.yaml"
    file.write_text(EXISTING.replace("    GROUP\n", ""))
    found = synthesize(file).foundation
    text = json.dumps(found)
    assert "12345" not in text.replace("0123456789abcdef", "")  # CDK's dummies of look-ups
    for kind in ("VPC", "Subnet", "RouteTable", "VPCEndpoint", "InternetGateway", "FlowLog"):
        assert of_type(found, f"AWS::EC2::{kind}") == {}
    assert of_type(found, "AWS::FSx::FileSystem") == {}
    published = {
        one["Properties"]["Name"].removeprefix("/fmblocks/my-project/"): one["Properties"]["Value"]
        for one in of_type(found, "AWS::SSM::Parameter").values()
    }
    assert published["vpc-id"] == "vpc-0123456789abcdef0"
    assert published["vpc-cidr"] == "10.0.0.0/16"
    assert published["subnet/usw2-az2"] == "subnet-0123456789abcdef1"
    assert published["route-table/usw2-az1"] == "rtb-0123456789abcdef0"
    assert published["lustre/file-system-id"] == "fs-0123456789abcdef0"
    assert published["lustre/mount-name"] == "abcd1234"
    assert "zone-name/usw2-az1" not in published  # only the account knows
    (link,) = of_type(found, "AWS::FSx::DataRepositoryAssociation").values()
    assert link["Properties"]["FileSystemId"] == "fs-0123456789abcdef0"
    # The group that is made is open to itself, and let in by that of the file system.
    (group,) = of_type(found, "AWS::EC2::SecurityGroup").values()
    assert group["Properties"]["VpcId"] == "vpc-0123456789abcdef0"
    rules = [one["Properties"] for one in of_type(found, "AWS::EC2::SecurityGroupIngress").values()]
    let_in = [one for one in rules if one["GroupId"] == "sg-0123456789abcdef1"]
    ports = {(one["IpProtocol"], one["FromPort"], one["ToPort"]) for one in let_in}
    assert ports == {("tcp", 988, 988), ("tcp", 1018, 1023)}


def test_an_existing_group_of_the_fabric_is_left_alone(synthesize: Synthesize, tmp_path: Path) -> None:
    file = tmp_path / "existing.yaml"
    file.write_text(EXISTING.replace("GROUP", "efa_security_group_id: sg-0123456789abcdef2"))
    found = synthesize(file)
    for kind in ("SecurityGroup", "SecurityGroupIngress", "SecurityGroupEgress"):
        assert of_type(found.foundation, f"AWS::EC2::{kind}") == {}
    values = [one["Properties"]["Value"] for one in of_type(found.foundation, "AWS::SSM::Parameter").values()]
    assert "sg-0123456789abcdef2" in values


def test_addresses_of_the_default_split(large: Synthesized) -> None:
    subnets = of_type(large.foundation, "AWS::EC2::Subnet").values()
    assert {(found["Properties"]["AvailabilityZoneId"], found["Properties"]["CidrBlock"]) for found in subnets} == {
        ("usw2-az1", "10.20.128.0/20"),
        ("usw2-az1", "10.20.240.0/24"),
        ("usw2-az2", "10.20.0.0/17"),
        ("usw2-az2", "10.20.241.0/24"),
    }


def test_zone_names_go_where_names_belong(synthesize: Synthesize, form: Callable[[str], Path]) -> None:
    named = synthesize(form("region: us-west-2\nnetwork: {availability_zones: [us-west-2a], cidr: 10.0.0.0/20}\n"))
    for subnet in of_type(named.foundation, "AWS::EC2::Subnet").values():
        assert subnet["Properties"]["AvailabilityZone"] == "us-west-2a"
        assert "AvailabilityZoneId" not in subnet["Properties"]


def test_the_reference_cluster(large: Synthesized) -> None:
    (cluster,) = of_type(large.training, "AWS::SageMaker::Cluster").values()
    properties = cluster["Properties"]
    assert properties["NodeRecovery"] == "Automatic"
    assert properties["NodeProvisioningMode"] == "Continuous"
    # No strategy, which continuous provisioning refuses, and no name: HyperPod's own holds the cluster's id.
    assert set(properties["Orchestrator"]) == {"Slurm"}
    assert set(properties["Orchestrator"]["Slurm"]) == {"AccountingDatabase"}
    assert set(properties["Orchestrator"]["Slurm"]["AccountingDatabase"]) == {"Endpoint", "Port", "SecretArn"}
    assert [group["InstanceGroupName"] for group in properties["InstanceGroups"]] == ["controller", "gpu", "login"]
    by_name = {group["InstanceGroupName"]: group for group in properties["InstanceGroups"]}
    assert by_name["gpu"]["InstanceType"] == "ml.p5en.48xlarge"
    assert by_name["gpu"]["InstanceCount"] == 16
    assert by_name["gpu"]["SlurmConfig"] == {"NodeType": "Compute", "PartitionNames": ["gpu"]}
    assert by_name["controller"]["SlurmConfig"] == {"NodeType": "Controller"}
    assert [name for name, group in by_name.items() if "TrainingPlanArn" in group] == ["gpu"]
    for group in by_name.values():
        ebs, root, lustre, home = group["InstanceStorageConfigs"]
        assert home["FsxOpenZfsConfig"]["MountPath"] == "/home"
        assert ebs["EbsVolumeConfig"]["VolumeSizeInGB"] == 500
        assert root["EbsVolumeConfig"]["RootVolume"] is True
        assert ebs["EbsVolumeConfig"]["VolumeKmsKeyId"] == root["EbsVolumeConfig"]["VolumeKmsKeyId"]
        assert lustre["FsxLustreConfig"]["MountPath"] == "/fsx"
        role = group["SlurmConfig"]["NodeType"].lower()
        assert group["LifeCycleConfig"]["OnInitComplete"] == f"{role}.sh"
        assert ("ControllerRole" in json.dumps(group["ExecutionRole"])) == (role == "controller")
    bundle = next(id for id, found in large.training["Resources"].items() if found["Type"] == "Custom::LifecycleBundle")
    assert bundle in cluster["DependsOn"]
    prefix = large.training["Resources"][bundle]["Properties"]["Prefix"]
    assert re.fullmatch("[0-9a-f]{64}", prefix)
    assert f"/{prefix}/" in json.dumps(by_name["gpu"]["LifeCycleConfig"]["SourceS3Uri"])


def test_without_scripts_a_group_has_no_lifecycle(synthesize: Synthesize, root: Path) -> None:
    trial = synthesize(root / "projects" / "trial-g6.yaml").training
    assert "LifeCycleConfig" not in json.dumps(trial)
    assert not of_type(trial, "AWS::Lambda::Function")


def test_the_reference_file_system(large: Synthesized) -> None:
    lustre = lustre_of(large.foundation)
    assert lustre["Properties"]["FileSystemTypeVersion"] == "2.15"
    assert lustre["Properties"]["LustreConfiguration"] == {
        "AutomaticBackupRetentionDays": 0,
        "DataCompressionType": "NONE",
        "DeploymentType": "PERSISTENT_2",
        "EfaEnabled": True,
        "LogConfiguration": lustre["Properties"]["LustreConfiguration"]["LogConfiguration"],
        "MetadataConfiguration": {"Iops": 12000, "Mode": "USER_PROVISIONED"},
        "PerUnitStorageThroughput": 500,
    }
    links = of_type(large.foundation, "AWS::FSx::DataRepositoryAssociation")
    by_path = {found["Properties"]["FileSystemPath"]: (id, found) for id, found in links.items()}
    (first, exports), (_second, imports) = by_path["/checkpoints"], by_path["/datasets"]
    assert exports["Properties"]["S3"] == {"AutoExportPolicy": {"Events": ["NEW", "CHANGED"]}}
    assert imports["Properties"]["S3"] == {"AutoImportPolicy": {"Events": ["NEW", "CHANGED", "DELETED"]}}
    assert imports["Properties"]["DataRepositoryPath"] == "s3://llm-pretrain-datasets/v1/"
    assert imports["Properties"]["BatchImportMetaDataOnCreate"] is True
    assert first in imports["DependsOn"]  # one request at a time


def test_templates_are_within_the_limits_of_cloudformation(synthesized: Synthesized) -> None:
    for name, template in synthesized.templates.items():
        assert len(template["Resources"]) <= 500
        assert len(template.get("Parameters", {})) <= 200
        assert (synthesized.folder / f"{name}.template.json").stat().st_size < 1_000_000


@pytest.mark.parametrize("stack", ["FoundationStack", "TrainingStack"])
def test_termination_protection(large: Synthesized, stack: str) -> None:
    manifest = json.loads((large.folder / "manifest.json").read_text())
    found = manifest["artifacts"][stack]["properties"].get("terminationProtection", False)
    assert found is (stack == "FoundationStack")
    assert manifest["artifacts"][stack]["properties"]["stackName"] == f"llm-pretrain-{stack}"


def test_no_security_group_rule_stands_twice(synthesized: Synthesized) -> None:
    """NET-07: EC2 refuses the second one, now and then only."""
    for template in synthesized.templates.values():
        rules = [
            json.dumps(
                {key: value for key, value in rule["Properties"].items() if key != "Description"}, sort_keys=True
            )
            for kind in ("Ingress", "Egress")
            for rule in of_type(template, f"AWS::EC2::SecurityGroup{kind}").values()
        ]
        assert len(rules) == len(set(rules))


def test_templates_stay_far_below_what_cloudformation_takes(synthesized: Synthesized) -> None:
    """CFN-01; CDK itself stops at 500 resources."""
    for name, template in synthesized.templates.items():
        limits = {"Resources": 500, "Parameters": 200, "Outputs": 200, "Mappings": 200}
        assert all(len(template.get(part, {})) < most / 2 for part, most in limits.items())
        assert (synthesized.folder / f"{name}.template.json").stat().st_size < 1_000_000 / 2


def test_a_slash_at_the_end_changes_nothing(synthesize: Synthesize, tmp_path: Path) -> None:
    """A link whose spelling changes would be replaced, and what it had to export with it."""

    def foundation(path: str, prefix: str) -> Template:
        file = tmp_path / f"{len(list(tmp_path.iterdir()))}.yaml"
        file.write_text(
            "name: my-project\nregion: us-west-2\nnetwork: {availability_zones: [usw2-az2]}\nstorage:\n  lustre:\n"
            "    deployment_type: persistent_2\n    capacity_gib: 1200\n    throughput_mbps_per_tib: 125\n"
            "    data_repository_associations:\n"
            f"      - {{path: {path}, bucket: my-data, prefix: {prefix}, auto_export: [new]}}\n"
        )
        return synthesize(file).foundation

    assert foundation("/data", "raw") == foundation("/data/", "raw/") == foundation("/data", "/raw/")


def test_a_budget_counts_what_carries_the_projects_tag(large: Synthesized) -> None:
    """With another filter it would count nothing, or the whole account."""
    (budget,) = [one["Properties"] for one in of_type(large.training, "AWS::Budgets::Budget").values()]
    (cluster,) = [one["Properties"] for one in of_type(large.training, "AWS::SageMaker::Cluster").values()]
    (value,) = [tag["Value"] for tag in cluster["Tags"] if tag["Key"] == "fmblocks:project"]
    assert budget["Budget"]["CostFilters"] == {"TagKeyValue": [f"user:fmblocks:project${value}"]}
    assert budget["Budget"]["BudgetLimit"] == {"Amount": 1500000, "Unit": "USD"}
    told = [
        (one["Notification"]["NotificationType"], one["Notification"]["Threshold"])
        for one in budget["NotificationsWithSubscribers"]
    ]
    assert told == [("ACTUAL", 80), ("ACTUAL", 100), ("FORECASTED", 100)]
    addresses = {person["Address"] for one in budget["NotificationsWithSubscribers"] for person in one["Subscribers"]}
    assert addresses == {"finance@example.com"}


def test_one_budget_for_a_project(synthesized: Synthesized) -> None:
    found = [id for template in synthesized.templates.values() for id in of_type(template, "AWS::Budgets::Budget")]
    assert len(found) <= 1
