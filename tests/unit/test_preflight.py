"""What only the account knows: botocore's Stubber answers, and checks what is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber

from fmblocks.cluster import preflight as of_cluster
from fmblocks.cluster.add_ons import ADD_ONS, INFERENCE_OPERATOR, hyperpod_pinned, pinned
from fmblocks.cluster.settings import Training
from fmblocks.network import preflight as of_network
from fmblocks.network.settings import Endpoints, ExistingSubnet, ExistingVpc, Network
from fmblocks.preflight import Account, Outcome, Question, Result, answers
from fmblocks.serving import preflight as of_serving
from fmblocks.serving.settings import Endpoint
from fmblocks.storage import preflight as of_storage
from fmblocks.storage.settings import DataRepositoryAssociation, ExistingLustre, Lustre

# Settings are written as a project file writes them: as text.
# mypy: disable-error-code="arg-type"

VPC, GROUP, OTHER = "vpc-0123456789abcdef0", "sg-0123456789abcdef0", "sg-0123456789abcdef1"
FS = "fs-0123456789abcdef0"


class Stubs:
    """A stubber for each service."""

    def __init__(self) -> None:
        self.clients: Any = {
            name.replace("-", "_"): boto3.client(
                name, region_name="us-west-2", aws_access_key_id="1", aws_secret_access_key="2"
            )
            for name in ("ec2", "eks", "fsx", "iam", "s3", "sagemaker", "service-quotas", "ssm")
        }
        self.stubs = {name: Stubber(client) for name, client in self.clients.items()}
        self.account = Account(**self.clients)

    def answer(self, service: str, operation: str, answer: dict[str, Any], asked: dict[str, Any]) -> None:
        self.stubs[service].add_response(operation, answer, asked)

    def refuse(self, service: str, operation: str, code: str, status: int = 400) -> None:
        self.stubs[service].add_client_error(operation, code, "words", http_status_code=status)


@pytest.fixture
def aws() -> Iterator[Stubs]:
    made = Stubs()
    for stub in made.stubs.values():
        stub.activate()
    yield made
    for stub in made.stubs.values():
        stub.assert_no_pending_responses()


def told(questions: Iterator[Question]) -> list[tuple[str, str, str]]:
    return [(one.outcome, one.rule, f"{one.path}: {one.message}") for one in answers(questions)]


def zone(name: str, id: str, kind: str = "availability-zone", opted: str = "opt-in-not-required") -> dict[str, str]:
    return {"ZoneName": name, "ZoneId": id, "ZoneType": kind, "OptInStatus": opted}


ZONES = [
    zone("us-west-2a", "usw2-az2"),
    zone("us-west-2b", "usw2-az1"),
    zone("us-west-2-lax-1a", "usw2-lax1-az1", "local-zone", "opted-in"),
    zone("us-west-2e", "usw2-az5", opted="not-opted-in"),
]


def zones(aws: Stubs) -> None:
    aws.answer("ec2", "describe_availability_zones", {"AvailabilityZones": ZONES}, {"AllAvailabilityZones": True})


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("usw2-az1", "us-west-2a"), [("pass", "zones are there")]),
        (("us-west-2-lax-1a",), [("fail", "us-west-2-lax-1a is of ZoneType local-zone")]),
        (("usw2-az9",), [("fail", "usw2-az9 is no zone of this account")]),
        (("usw2-az5",), [("fail", "the account has not opted in to usw2-az5")]),
    ],
)
def test_zones(aws: Stubs, names: tuple[str, ...], said: list[tuple[str, str]]) -> None:
    zones(aws)
    network = Network(availability_zones=names, primary_availability_zone=names[0])
    found = told(of_network.questions(network, "us-west-2", aws.account))
    assert [(outcome, rule) for outcome, rule, _ in found] == [(outcome, "FMB-70") for outcome, _ in said]
    assert all(text in message for (_, text), (_, _, message) in zip(said, found, strict=True))


def test_numbered_zones_need_no_question(aws: Stubs) -> None:
    assert told(of_network.questions(Network(availability_zones="2"), "us-west-2", aws.account)) == []


@pytest.mark.parametrize(
    ("service", "zone", "outcome", "text"),
    [
        ("ssm", "usw2-az2", "pass", "services have endpoints in their zones"),
        ("ssm", "usw2-az1", "fail", "ssm has no interface endpoint in us-west-2b, only in us-west-2a"),
        ("eks-auth", "usw2-az2", "fail", "eks-auth has no interface endpoint in us-west-2"),
    ],
)
def test_endpoints(aws: Stubs, service: str, zone: str, outcome: str, text: str) -> None:
    zones(aws)
    zones(aws)
    details = [{"ServiceName": "com.amazonaws.us-west-2.ssm", "AvailabilityZones": ["us-west-2a"]}]
    asked = {"Filters": [{"Name": "service-type", "Values": ["Interface"]}]}
    aws.answer("ec2", "describe_vpc_endpoint_services", {"ServiceDetails": details}, asked)
    network = Network(availability_zones=(zone,), endpoints=Endpoints(services=(service,)))
    found = told(of_network.questions(network, "us-west-2", aws.account))[1]
    assert (found[0], found[1]) == (outcome, "FMB-71")
    assert text in found[2]


EXISTING_VPC = ExistingVpc(
    id=VPC,
    cidr="10.0.0.0/16",
    private_subnets=(
        ExistingSubnet(
            id="subnet-0123456789abcdef0",
            availability_zone="usw2-az2",
            cidr="10.0.0.0/20",
            route_table_id="rtb-0123456789abcdef0",
        ),
    ),
    efa_security_group_id=GROUP,
)
SUBNET = {
    "SubnetId": "subnet-0123456789abcdef0",
    "VpcId": VPC,
    "AvailabilityZone": "us-west-2a",
    "AvailabilityZoneId": "usw2-az2",
    "CidrBlock": "10.0.0.0/20",
}
SELF = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": GROUP}]}


def existing(
    aws: Stubs, vpcs: list[Any], subnets: list[Any] | None, group: dict[str, Any]
) -> list[tuple[str, str, str]]:
    zones(aws)
    aws.answer("ec2", "describe_vpcs", {"Vpcs": vpcs}, {"Filters": [{"Name": "vpc-id", "Values": [VPC]}]})
    if subnets is not None:
        aws.answer("ec2", "describe_subnets", {"Subnets": subnets}, {"Filters": [{"Name": "subnet-id", "Values": ANY}]})
    aws.answer("ec2", "describe_security_groups", {"SecurityGroups": [group]}, {"Filters": ANY})
    return told(of_network.questions(Network(vpc=EXISTING_VPC), "us-west-2", aws.account))[1:]


WHOLE = {"GroupId": GROUP, "VpcId": VPC, "IpPermissions": [SELF], "IpPermissionsEgress": [SELF]}
THERE = {"VpcId": VPC, "CidrBlock": "10.0.0.0/16"}


def test_an_existing_vpc_as_it_is(aws: Stubs) -> None:
    found = existing(aws, [THERE], [SUBNET], WHOLE)
    assert [(outcome, rule) for outcome, rule, _ in found] == [("pass", "FMB-72"), ("pass", "EFA-10")]


@pytest.mark.parametrize(
    ("vpcs", "subnets", "group", "texts"),
    [
        ([], None, WHOLE, [f"network.vpc.id: {VPC} is not there"]),
        ([{**THERE, "CidrBlock": "10.1.0.0/16"}], [SUBNET], WHOLE, ["has 10.1.0.0/16, not 10.0.0.0/16"]),
        ([THERE], [], WHOLE, ["private_subnets[0].id: subnet-0123456789abcdef0 is not there"]),
        ([THERE], [{**SUBNET, "VpcId": "vpc-0123456789abcdef9"}], WHOLE, ["is in vpc-0123456789abcdef9, not in"]),
        (
            [THERE],
            [{**SUBNET, "AvailabilityZone": "us-west-2b", "AvailabilityZoneId": "usw2-az1"}],
            WHOLE,
            ["usw2-az1"],
        ),
        ([THERE], [{**SUBNET, "CidrBlock": "10.0.0.0/24"}], WHOLE, ["has 10.0.0.0/24, not 10.0.0.0/20"]),
        ([THERE], [SUBNET], {**WHOLE, "IpPermissionsEgress": []}, ["has no outbound rule for all traffic of itself"]),
        ([THERE], [SUBNET], {**WHOLE, "VpcId": "vpc-0123456789abcdef9"}, [f"{GROUP} is no group of {VPC}"]),
        (
            [THERE],
            [SUBNET],
            {**WHOLE, "IpPermissionsEgress": [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]},
            ["has no outbound rule"],
        ),
    ],
)
def test_an_existing_vpc_that_is_another(
    aws: Stubs, vpcs: list[Any], subnets: list[Any] | None, group: dict[str, Any], texts: list[str]
) -> None:
    failed = [message for outcome, _, message in existing(aws, vpcs, subnets, group) if outcome == "fail"]
    assert len(failed) == len(texts)
    assert all(text in message for text, message in zip(texts, failed, strict=True))


def storage(aws: Stubs, lustre: Lustre, **given: Any) -> list[tuple[str, str, str]]:
    values = {"vpc_id": None, "node_group_id": None, "node_cidr": None, **given}
    asked = of_storage.questions(lustre, foundation="x", region="us-west-2", account=aws.account, **values)
    return told(asked)


@pytest.mark.parametrize(("wanted", "outcome"), [(4800, "pass"), (7200, "pass"), (2400, "fail")])
def test_storage_does_not_shrink(aws: Stubs, wanted: int, outcome: str) -> None:
    parameter = {"Name": "/fmblocks/x/lustre/file-system-id", "Value": FS}
    aws.answer("ssm", "get_parameters", {"Parameters": [parameter]}, {"Names": [parameter["Name"]]})
    system = {"FileSystemId": FS, "StorageCapacity": 4800}
    aws.answer("fsx", "describe_file_systems", {"FileSystems": [system]}, {"FileSystemIds": [FS]})
    (found,) = storage(aws, Lustre(capacity_gib=wanted, throughput_mbps_per_tib=125))
    assert found[:2] == (outcome, "FMB-51")
    if outcome == "fail":
        assert "storage.lustre.capacity_gib: fs-0123456789abcdef0 has 4800 GiB, and storage can only grow" in found[2]


def test_what_is_not_deployed_cannot_shrink(aws: Stubs) -> None:
    aws.answer("ssm", "get_parameters", {"Parameters": []}, {"Names": ANY})
    assert [one[0] for one in storage(aws, Lustre(capacity_gib=2400))] == ["pass"]


def serving(aws: Stubs, *stored: str) -> list[tuple[str, str, str]]:
    endpoints = [
        Endpoint.model_validate(
            {"name": f"chat-{at}", "server": "vllm", "image": "a/b:v1", "accelerators_per_replica": 1, "model": model}
        )
        for at, model in enumerate([{"path": "/m"}, *({"store": one} for one in stored)])
    ]
    return told(of_serving.questions(endpoints, foundation="x", account=aws.account))


def test_weights_that_were_pushed(aws: Stubs) -> None:
    parameter = {"Name": "/fmblocks/x/bucket/models/name", "Value": "models"}
    aws.answer("ssm", "get_parameters", {"Parameters": [parameter]}, {"Names": [parameter["Name"]]})
    aws.answer("s3", "head_object", {}, {"Bucket": "models", "Key": "llama/v1/fmblocks-model.json"})
    aws.answer("ssm", "get_parameters", {"Parameters": [parameter]}, {"Names": [parameter["Name"]]})
    aws.refuse("s3", "head_object", "404", 404)
    whole, gone = serving(aws, "llama/v1", "llama/v9")
    assert whole[:2] == ("pass", "FMB-143")
    assert gone == (
        "fail",
        "FMB-143",
        "inference.endpoints[2].model.store: s3://models/llama/v9/ has no fmblocks-model.json: its replicas would not "
        "start",
    )


def test_weights_before_there_is_a_store(aws: Stubs) -> None:
    aws.answer("ssm", "get_parameters", {"Parameters": []}, {"Names": ANY})
    (found,) = serving(aws, "llama/v1")
    assert found[0] == "warn"
    assert "model.store: llama/v1 is nowhere yet: the model store is not deployed" in found[2]


def test_weights_that_nobody_may_look_at(aws: Stubs) -> None:
    parameter = {"Name": "/fmblocks/x/bucket/models/name", "Value": "models"}
    aws.answer("ssm", "get_parameters", {"Parameters": [parameter]}, {"Names": ANY})
    aws.refuse("s3", "head_object", "403", 403)
    (found,) = serving(aws, "llama/v1")
    assert found[0] == "unknown"


LUSTRE = Lustre(
    existing=ExistingLustre(
        file_system_id=FS,
        dns_name=f"{FS}.fsx.us-west-2.amazonaws.com",
        mount_name="abcd1234",
        security_group_id=OTHER,
        availability_zone="usw2-az2",
    )
)
SYSTEM = {
    "FileSystemId": FS,
    "Lifecycle": "AVAILABLE",
    "VpcId": VPC,
    "NetworkInterfaceIds": ["eni-0123456789abcdef0"],
    "LustreConfiguration": {"MountName": "abcd1234"},
}


def tcp(first: int, last: int, **source: Any) -> dict[str, Any]:
    return {"IpProtocol": "tcp", "FromPort": first, "ToPort": last, **source}


def mounted(aws: Stubs, system: dict[str, Any], rules: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    aws.answer("fsx", "describe_file_systems", {"FileSystems": [system]}, {"FileSystemIds": [FS]})
    interfaces = [{"Groups": [{"GroupId": OTHER}]}]
    asked = {"NetworkInterfaceIds": ["eni-0123456789abcdef0"]}
    aws.answer("ec2", "describe_network_interfaces", {"NetworkInterfaces": interfaces}, asked)
    groups = [{"GroupId": OTHER, "IpPermissions": rules}]
    aws.answer("ec2", "describe_security_groups", {"SecurityGroups": groups}, {"GroupIds": [OTHER]})
    return storage(aws, LUSTRE, vpc_id=VPC, node_group_id=GROUP, node_cidr="10.0.0.0/20")


FROM = {"UserIdGroupPairs": [{"GroupId": GROUP}]}


@pytest.mark.parametrize(
    "rules",
    [
        [tcp(988, 988, **FROM), tcp(1018, 1023, **FROM)],
        [tcp(988, 1023, **FROM)],
        [{"IpProtocol": "-1", **FROM}],
        [tcp(0, 65535, IpRanges=[{"CidrIp": "10.0.0.0/16"}])],
    ],
)
def test_an_existing_file_system_that_lets_the_nodes_in(aws: Stubs, rules: list[dict[str, Any]]) -> None:
    assert [(one[0], one[1]) for one in mounted(aws, SYSTEM, rules)] == [("pass", "FMB-73")]


@pytest.mark.parametrize(
    ("rules", "ports"),
    [
        ([tcp(988, 988, **FROM)], "TCP 1018-1023"),
        ([], "TCP 988 and 1018-1023"),
        ([tcp(988, 1023, UserIdGroupPairs=[{"GroupId": OTHER}])], "TCP 988 and 1018-1023"),
        ([tcp(988, 1023, IpRanges=[{"CidrIp": "10.0.0.0/24"}])], "TCP 988 and 1018-1023"),
        ([{**tcp(988, 1023, **FROM), "IpProtocol": "udp"}], "TCP 988 and 1018-1023"),
    ],
)
def test_an_existing_file_system_that_lets_nobody_in(aws: Stubs, rules: list[dict[str, Any]], ports: str) -> None:
    (found,) = mounted(aws, SYSTEM, rules)
    assert found[0] == "fail"
    assert f"the groups of {FS}, {OTHER}, do not let {GROUP} in on {ports}" in found[2]


def test_an_existing_file_system_elsewhere(aws: Stubs) -> None:
    system = {
        **SYSTEM,
        "VpcId": "vpc-0123456789abcdef9",
        "Lifecycle": "MISCONFIGURED",
        "LustreConfiguration": {"MountName": "zzzz"},
    }
    texts = [one[2] for one in mounted(aws, system, [tcp(988, 1023, **FROM)])]
    assert any(f"is in vpc-0123456789abcdef9, not in {VPC}" in text for text in texts)
    assert any("is MISCONFIGURED" in text for text in texts)
    assert any("is mounted as zzzz, not abcd1234" in text for text in texts)


def test_an_existing_file_system_that_is_not_there(aws: Stubs) -> None:
    aws.refuse("fsx", "describe_file_systems", "FileSystemNotFound")
    (found,) = storage(aws, LUSTRE, vpc_id=VPC, node_group_id=GROUP)
    assert (found[0], "is not there" in found[2]) == ("fail", True)


def test_a_group_of_the_project_is_let_in_by_the_project(aws: Stubs) -> None:
    aws.answer("fsx", "describe_file_systems", {"FileSystems": [SYSTEM]}, {"FileSystemIds": [FS]})
    assert [one[0] for one in storage(aws, LUSTRE, vpc_id=VPC)] == ["pass"]


def linked(**link: Any) -> Lustre:
    made = DataRepositoryAssociation(**{"path": "/data", "bucket": "data", **link})
    return LUSTRE.model_copy(update={"existing": None, "data_repository_associations": (made,)})


def bucket(aws: Stubs, payer: str = "BucketOwner", location: str | None = "us-west-2", head: str = "") -> None:
    aws.answer("ssm", "get_parameters", {"Parameters": []}, {"Names": ANY})
    if head:
        aws.refuse("s3", "head_bucket", head, int(head))
    else:
        aws.answer("s3", "head_bucket", {}, {"Bucket": "data"})
        aws.answer("s3", "get_bucket_request_payment", {"Payer": payer}, {"Bucket": "data"})
    answer = {"LocationConstraint": location} if location else {}
    aws.answer("s3", "get_bucket_location", answer, {"Bucket": "data"})


def outcomes(found: list[tuple[str, str, str]]) -> dict[str, str]:
    return {rule: outcome for outcome, rule, _ in found}


def test_a_bucket_that_can_be_linked(aws: Stubs) -> None:
    bucket(aws)
    assert outcomes(storage(aws, linked(auto_import=["new"]))) == {"FMB-51": "pass", "FMB-74": "pass", "DRA-05": "pass"}


@pytest.mark.parametrize(("head", "text"), [("404", "data is missing (404)"), ("403", "data is denied (403)")])
def test_a_bucket_that_cannot_be_reached(aws: Stubs, head: str, text: str) -> None:
    bucket(aws, head=head)
    found = storage(aws, linked(auto_import=["new"]))
    assert outcomes(found)["FMB-74"] == "fail"
    assert any(text in message for _, _, message in found)


def test_a_bucket_whose_readers_pay(aws: Stubs) -> None:
    bucket(aws, payer="Requester")
    found = storage(aws, linked())
    assert outcomes(found)["FMB-74"] == "fail"
    assert any("data is requester pays" in message for _, _, message in found)


@pytest.mark.parametrize(
    ("location", "there", "events", "outcome"),
    [
        (None, "us-east-1", ["new"], "fail"),
        ("EU", "eu-west-1", ["new"], "fail"),
        ("us-east-2", "us-east-2", [], "warn"),
    ],
)
def test_a_bucket_of_another_region(
    aws: Stubs, location: str | None, there: str, events: list[str], outcome: str
) -> None:
    bucket(aws, location=location)
    found = storage(aws, linked(auto_import=events))
    assert outcomes(found)["DRA-05"] == outcome
    assert any(f"data is in {there}, and the file system in us-west-2" in message for _, _, message in found)


@pytest.mark.parametrize(("status", "outcome"), [("Enabled", "pass"), ("Suspended", "warn"), (None, "warn")])
def test_exported_deletions_ask_for_versions(aws: Stubs, status: str | None, outcome: str) -> None:
    bucket(aws)
    aws.answer("s3", "get_bucket_versioning", {"Status": status} if status else {}, {"Bucket": "data"})
    assert outcomes(storage(aws, linked(auto_export=["deleted"])))["FMB-59"] == outcome


def test_a_denied_call_is_unknown_and_the_others_are_asked(aws: Stubs) -> None:
    aws.refuse("ssm", "get_parameters", "AccessDeniedException")
    aws.answer("s3", "head_bucket", {}, {"Bucket": "data"})
    aws.answer("s3", "get_bucket_request_payment", {"Payer": "BucketOwner"}, {"Bucket": "data"})
    aws.refuse("s3", "get_bucket_location", "AccessDenied", 403)
    found = storage(aws, linked())
    assert outcomes(found) == {"FMB-51": "unknown", "FMB-74": "pass", "DRA-05": "unknown"}
    assert "GetParameters was not answered: AccessDeniedException: words" in found[0][2]


def test_a_result_reads_like_a_finding() -> None:
    text = str(Result("FMB-74", Outcome.FAIL, "storage.lustre", "data is missing", "make it"))
    assert text == "fail [FMB-74] storage.lustre: data is missing; make it"


def training(**keys: Any) -> Training:
    group = {"name": "gpu", "instance_type": "p5.48xlarge", "count": "2"}
    return Training.model_validate({"orchestrator": "eks", "node_groups": [group], **keys})


def offer(aws: Stubs, versions: dict[str, str], kubernetes: str = "1.35") -> None:
    listed = [{"addonName": name, "addonVersions": [{"addonVersion": one}]} for name, one in versions.items()]
    aws.answer("eks", "describe_addon_versions", {"addons": listed}, {"kubernetesVersion": kubernetes})


def roles(aws: Stubs, *names: str, missing: str | None = None) -> None:
    role = {"Path": "/", "RoleId": "AROA0123456789012345", "Arn": "arn:aws:iam::111122223333:role/x", "CreateDate": 0}
    for name in names:
        if name == missing:
            aws.stubs["iam"].add_client_error("get_role", "NoSuchEntity", expected_params={"RoleName": name})
        else:
            aws.answer("iam", "get_role", {"Role": {**role, "RoleName": name}}, {"RoleName": name})


EKS_ROLES = ("AWSServiceRoleForAmazonEKS", "AWSServiceRoleForAmazonEKSNodegroup", "AWSServiceRoleForAutoScaling")


def test_add_ons_that_are_offered(aws: Stubs) -> None:
    offer(aws, dict(pinned("1.35")))
    roles(aws, *EKS_ROLES)
    assert [one[:2] for one in told(of_cluster.questions("training", training(), "usw2-az2", aws.account))] == [
        ("pass", "FMB-85"),
        ("pass", "FMB-93"),
    ]


def test_an_add_on_that_the_region_lacks(aws: Stubs) -> None:
    offer(aws, {**pinned("1.35"), "cert-manager": "v1.21.0-eksbuild.3"})
    roles(aws, *EKS_ROLES)
    first, _ = told(of_cluster.questions("training", training(), "usw2-az2", aws.account))
    assert first == (
        "fail",
        "FMB-85",
        "training.kubernetes.add_ons: cert-manager v1.21.0-eksbuild.2 is not offered for Kubernetes 1.35 here, but "
        "v1.21.0-eksbuild.3",
    )
    # What the project names is what is asked for.
    offer(aws, {**pinned("1.35"), "cert-manager": "v1.21.0-eksbuild.3"})
    roles(aws, *EKS_ROLES)
    named = {"add_ons": [{"name": "cert-manager", "version": "v1.21.0-eksbuild.3"}]}
    assert told(of_cluster.questions("training", training(kubernetes=named), "usw2-az2", aws.account))[0][0] == "pass"
    assert len(ADD_ONS) == len(pinned("1.35"))


def test_the_inference_operator_is_asked_for_where_endpoints_need_it(aws: Stubs) -> None:
    offer(aws, dict(pinned("1.35")))
    roles(aws, *EKS_ROLES)
    first, _ = told(of_cluster.questions("inference", training(), "usw2-az2", aws.account, [INFERENCE_OPERATOR]))
    version = hyperpod_pinned()[INFERENCE_OPERATOR]
    assert first[:2] == ("fail", "FMB-85")
    assert first[2].startswith(f"inference.kubernetes.add_ons: {INFERENCE_OPERATOR} {version} is not offered")


def test_a_version_that_the_region_lacks(aws: Stubs) -> None:
    offer(aws, {}, "1.40")
    roles(aws, *EKS_ROLES)
    first, _ = told(of_cluster.questions("training", training(kubernetes={"version": "1.40"}), "usw2-az2", aws.account))
    assert first[2] == "training.kubernetes.version: EKS offers no add-on for Kubernetes 1.40 here"


def test_a_role_that_a_new_account_lacks(aws: Stubs) -> None:
    """C96."""
    spot = {"name": "gpu", "instance_type": "p5.48xlarge", "count": "2", "capacity": "spot"}
    roles(aws, "AWSServiceRoleForAutoScaling", "AWSServiceRoleForEC2Spot", missing="AWSServiceRoleForEC2Spot")
    (found,) = answers(
        of_cluster.questions("training", training(orchestrator="ec2", node_groups=[spot]), "usw2-az2", aws.account)
    )
    assert (found.outcome, found.rule) == (Outcome.WARN, "FMB-93")
    assert "AWSServiceRoleForEC2Spot is not there yet" in found.message
    assert found.hint == "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"


def test_pcs_asks_for_a_role_of_its_own(aws: Stubs) -> None:
    roles(aws, "AWSServiceRoleForPCS", missing="AWSServiceRoleForPCS")
    (found,) = answers(of_cluster.questions("training", training(orchestrator="pcs"), "usw2-az2", aws.account))
    assert (found.outcome, found.rule) == (Outcome.WARN, "FMB-93")
    assert found.hint == "aws iam create-service-linked-role --aws-service-name pcs.amazonaws.com"


def test_a_denied_call_is_unknown(aws: Stubs) -> None:
    aws.refuse("eks", "describe_addon_versions", "AccessDeniedException", 403)
    roles(aws, *EKS_ROLES)
    assert [one[0] for one in told(of_cluster.questions("training", training(), "usw2-az2", aws.account))] == [
        "unknown",
        "pass",
    ]


HYPERPOD = {"name": "gpu", "instance_type": "p5.48xlarge", "count": "4"}
PLAN_ARN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/mine"


def on_hyperpod(**group: Any) -> Training:
    controller = {"name": "controller", "role": "controller", "instance_type": "m7i.xlarge", "count": "1"}
    return training(orchestrator="hyperpod-slurm", node_groups=[controller, {**HYPERPOD, **group}])


def quota(aws: Stubs, **values: float) -> None:
    listed = [{"QuotaName": f"ml.{name} for cluster usage", "Value": value} for name, value in values.items()]
    asked = {"ServiceCode": "sagemaker"}
    aws.answer("service_quotas", "list_service_quotas", {"Quotas": listed[:1], "NextToken": "next"}, asked)
    aws.answer("service_quotas", "list_service_quotas", {"Quotas": listed[1:]}, {**asked, "NextToken": "next"})


def test_quotas_of_hyperpod_are_not_ec2s(aws: Stubs) -> None:
    """C84."""
    quota(aws, **{"m7i.xlarge": 1, "p5.48xlarge": 0})
    (found,) = answers(of_cluster.questions("training", on_hyperpod(), "usw2-az2", aws.account))
    assert (found.outcome, found.rule) == (Outcome.FAIL, "HP-24")
    assert found.message == "ml.p5.48xlarge for cluster usage: have 0, need 4"
    quota(aws, **{"m7i.xlarge": 1, "p5.48xlarge": 4})
    (found,) = answers(of_cluster.questions("training", on_hyperpod(), "usw2-az2", aws.account))
    assert found.outcome is Outcome.PASS
    quota(aws, **{"p5.48xlarge": 4})
    (found,) = answers(of_cluster.questions("training", on_hyperpod(), "usw2-az2", aws.account))
    assert (found.outcome, found.message[:13]) == (Outcome.UNKNOWN, "ml.m7i.xlarge")


def plan(aws: Stubs, **changes: Any) -> list[tuple[str, str, str]]:
    capacity = {
        "ReservedCapacityArn": PLAN_ARN.replace("training-plan", "reserved-capacity"),
        "InstanceType": "ml.p5.48xlarge",
        "TotalInstanceCount": 4,
        "Status": "Active",
        "AvailabilityZone": "us-west-2b",
        "AvailabilityZoneId": "usw2-az2",
    }
    told_of = {"InstanceType", "AvailabilityZone", "AvailabilityZoneId"}
    answer = {
        "TrainingPlanArn": PLAN_ARN,
        "TrainingPlanName": "mine",
        "Status": "Active",
        "TotalInstanceCount": 4,
        "TargetResources": ["hyperpod-cluster"],
        "ReservedCapacitySummaries": [{**capacity, **{k: v for k, v in changes.items() if k in told_of}}],
        **{key: value for key, value in changes.items() if key not in told_of},
    }
    quota(aws, **{"m7i.xlarge": 1, "p5.48xlarge": 4})
    aws.answer("sagemaker", "describe_training_plan", answer, {"TrainingPlanName": "mine"})
    given = on_hyperpod(capacity={"mode": "training_plan", "training_plan_arn": PLAN_ARN})
    return told(of_cluster.questions("training", given, "usw2-az2", aws.account))[1:]


@pytest.mark.parametrize(
    ("changes", "rule", "text"),
    [
        ({"TargetResources": ["training-job"]}, "TP-06", "the plan is for training-job"),
        ({"Status": "Expired"}, "TP-06", "the plan is Expired"),
        (
            {"InstanceType": "ml.p5e.48xlarge"},
            "TP-02",
            "the plan holds ml.p5e.48xlarge, and the group asks for ml.p5.48xlarge",
        ),
        ({"TotalInstanceCount": 3}, "TP-02", "the plan holds 3 instances, and the group asks for 4"),
        (
            {"AvailabilityZone": "us-west-2c", "AvailabilityZoneId": "usw2-az3"},
            "TP-07",
            "the plan stands in us-west-2c, usw2-az3, and the group in usw2-az2",
        ),
    ],
)
def test_a_plan_that_does_not_serve_the_group(aws: Stubs, changes: dict[str, Any], rule: str, text: str) -> None:
    """C80."""
    ((outcome, found, said),) = plan(aws, **changes)
    assert (outcome, found) == ("fail", rule)
    assert said == f"training.node_groups[1].capacity.training_plan_arn: {text}"


def test_a_plan_that_serves(aws: Stubs) -> None:
    assert [one[:2] for one in plan(aws)] == [("pass", "TP-06")]
    assert [one[:2] for one in plan(aws, Status="Scheduled")] == [("pass", "TP-06")]


def test_add_ons_of_hyperpod_are_asked_for_too(aws: Stubs) -> None:
    offer(aws, dict(pinned("1.35")))
    roles(aws, *EKS_ROLES)
    quota(aws, **{"p5.48xlarge": 4})
    given = {"hyperpod_add_ons": ["task_governance"]}
    asked = training(orchestrator="hyperpod-eks", kubernetes=given, node_groups=[HYPERPOD])
    found = told(of_cluster.questions("training", asked, "usw2-az2", aws.account))
    assert found[0][2].startswith(
        "training.kubernetes.add_ons: amazon-sagemaker-hyperpod-taskgovernance v1.6.0-eksbuild.1 is not offered"
    )


def test_nodes_of_a_plan_may_need_the_quota_too(aws: Stubs) -> None:
    """AWS's texts disagree (rule TP-08), so it is told and nothing fails."""
    quota(aws, **{"m7i.xlarge": 1, "p5.48xlarge": 3})
    aws.refuse("sagemaker", "describe_training_plan", "AccessDeniedException", 403)
    given = on_hyperpod(capacity={"mode": "training_plan", "training_plan_arn": PLAN_ARN})
    first, second = told(of_cluster.questions("training", given, "usw2-az2", aws.account))
    assert first[:2] == ("warn", "TP-08")
    assert "ml.p5.48xlarge for cluster usage: have 3, and the plan's nodes are 4" in first[2]
    assert second[0] == "unknown"
