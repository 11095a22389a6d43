"""The private names of ministack that the extension hangs on, and what it must be able to deploy."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import pytest

from fmblocks.catalog import instance_types
from fmblocks.local.environment import find_python
from fmblocks.project import Project
from fmblocks_stacks.assembly import build
from tests.conftest import CHARTS

SERVER = """
import json, os
os.environ.setdefault("GATEWAY_PORT", "1")
from fmblocks.local.server import ec2_types, engine, kubernetes_types, schema_types, services
"""


@pytest.fixture(scope="module")
def in_server(root: Path) -> Callable[[str], Any]:
    """Runs code in the server's environment; what it prints is JSON."""

    def run(code: str) -> Any:
        done = subprocess.run(
            [str(find_python(print)), "-c", SERVER + code],
            env={**os.environ, "PYTHONPATH": str(root / "constructs")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_every_type_of_the_examples_has_a_handler(
    in_server: Callable[[str], Any], root: Path, cdk_context: dict[str, Any], tmp_path: Path
) -> None:
    install = "schema_types.install(); ec2_types.install(); kubernetes_types.install();"
    supported = set(in_server(f"{install} print(json.dumps(sorted(engine.supported_types())))"))
    used: set[str] = set()
    for file in sorted((root / "projects").glob("*.yaml")):
        app = cdk.App(context=cdk_context, outdir=str(tmp_path / file.stem))
        build(app, [Project.load(file, charts=CHARTS)])
        app.synth()
        for template in (tmp_path / file.stem).glob("*.template.json"):
            used |= {found["Type"] for found in json.loads(template.read_text())["Resources"].values()}
    custom = {kind for kind in used if kind.startswith("Custom::")}
    applied = {f"Custom::AWSCDK-EKS-{kind}" for kind in ("HelmChart", "KubernetesObjectValue", "KubernetesResource")}
    ours = {
        f"Custom::{kind}" for kind in ("DefaultSecurityGroupLock", "EmptiedBucket", "HyperPodReady", "LifecycleBundle")
    }
    assert custom == ours | applied
    assert (used - custom) | applied <= supported  # CDK's own handlers would run tools of the host


def test_we_register_nothing_that_no_example_uses(in_server: Callable[[str], Any], root: Path) -> None:
    ours = set(
        in_server(
            "before = engine.supported_types(); schema_types.install(); ec2_types.install();"
            "kubernetes_types.install();"
            "print(json.dumps(sorted(engine.supported_types() - before)))"
        )
    )
    assert ours == {
        "AWS::APS::Workspace",
        "AWS::Budgets::Budget",
        "AWS::EC2::CapacityReservation",
        "AWS::EC2::EIP",
        "AWS::EC2::FlowLog",
        "AWS::EC2::NatGateway",
        "AWS::EC2::PlacementGroup",
        "AWS::EC2::SecurityGroupEgress",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::EKS::AccessEntry",
        "AWS::EKS::Addon",
        "AWS::EKS::PodIdentityAssociation",
        "AWS::FSx::DataRepositoryAssociation",
        "AWS::FSx::FileSystem",
        "AWS::IAM::OIDCProvider",
        "AWS::PCS::Cluster",
        "AWS::PCS::ComputeNodeGroup",
        "AWS::PCS::Queue",
        "AWS::SageMaker::Cluster",
        "AWS::SageMaker::ClusterSchedulerConfig",
        "AWS::SageMaker::ComputeQuota",
        "Custom::AWSCDK-EKS-HelmChart",
        "Custom::AWSCDK-EKS-KubernetesObjectValue",
        "Custom::AWSCDK-EKS-KubernetesResource",
    }


@pytest.mark.parametrize(
    "expression",
    [
        "isinstance(engine.provisioners._RESOURCE_HANDLERS, dict)",
        "isinstance(engine.provisioners._REPLACING_PROPERTIES, dict)",
        "all({'create', 'delete'} <= set(entry) for entry in (engine.provisioners._RESOURCE_HANDLERS[kind] for kind in "
        "('AWS::EC2::VPC', 'AWS::EC2::Subnet', 'AWS::EC2::SecurityGroup', 'AWS::S3::Bucket')))",
        "all(callable(engine.ec2._ACTION_MAP[name]) for name in ('AllocateAddress', 'DescribeAddresses', "
        "'ReleaseAddress', 'CreateNatGateway', 'DeleteNatGateway', 'CreateFlowLogs', 'DeleteFlowLogs', 'DeleteSubnet', "
        "'DeleteSecurityGroup', 'AuthorizeSecurityGroupIngress', 'RevokeSecurityGroupEgress'))",
        "all(callable(getattr(engine.eks, name)) for name in ('_get_docker', '_create_addon', '_update_addon', "
        "'_describe_addon', '_delete_addon', '_create_access_entry', '_update_access_entry', '_describe_access_entry', "
        "'_delete_access_entry', '_create_pod_identity_association', '_update_pod_identity_association', "
        "'_describe_pod_identity_association', '_delete_pod_identity_association'))",
        "hasattr(engine.eks._clusters, 'get') and hasattr(engine.eks._nodegroups, 'items')",
        "callable(engine.iam._create_oidc_provider) and callable(engine.iam._delete_oidc_provider)",
        "engine.ec2._error('DependencyViolation', 'x', 400)[0] == 400",
        "engine.ec2._ensure_defaults_initialized() is None",
        "hasattr(engine.ec2._security_groups, 'items')",
        "hasattr(engine.s3._buckets, 'get')",
        "isinstance(engine.router.SERVICE_PATTERNS, dict)",
        "isinstance(engine.app.SERVICE_HANDLERS, dict) and 'ec2' in engine.app.SERVICE_HANDLERS",
        "callable(engine.app.main)",
        "__import__('importlib.metadata').metadata.version('ministack') == '1.5.33'",
    ],
)
def test_private_names_are_what_they_were(in_server: Callable[[str], Any], expression: str) -> None:
    assert in_server(f"print(json.dumps(bool({expression})))") is True


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"FileSystemType": "LUSTRE"}, "'SubnetIds' is a required property"),
        ({"FileSystemType": "LUSTRE", "SubnetIds": ["s"], "Nope": 1}, "Nope"),
        ({"FileSystemType": "LUSTRE", "SubnetIds": ["s"], "DNSName": "x"}, "Encountered unsupported property DNSName"),
        ({"FileSystemType": "LUSTRE", "SubnetIds": ["s"], "StorageCapacity": "much"}, "is not of type 'integer'"),
    ],
)
def test_wrong_properties_are_refused_as_cloudformation_does(
    in_server: Callable[[str], Any], properties: dict[str, Any], said: str
) -> None:
    code = f"""
try:
    schema_types.validate("AWS::FSx::FileSystem", {properties!r})
    print(json.dumps("accepted"))
except ValueError as error:
    print(json.dumps(str(error)))
"""
    assert said in in_server(code)


def test_text_becomes_what_the_schema_wants(in_server: Callable[[str], Any]) -> None:
    code = """
typed = schema_types.validate("AWS::FSx::FileSystem", {"FileSystemType": "LUSTRE", "SubnetIds": ["s"],
    "StorageCapacity": "1200", "LustreConfiguration": {"EfaEnabled": "true"}})
print(json.dumps(typed))
"""
    typed = in_server(code)
    assert typed["StorageCapacity"] == 1200
    assert typed["LustreConfiguration"]["EfaEnabled"] is True


def test_the_catalogue_agrees_with_the_data_of_ec2(in_server: Callable[[str], Any]) -> None:
    """moto ships what DescribeInstanceTypes answers; cards, EFA interfaces and interfaces per card are compared."""
    code = """
import gzip, importlib.resources
data = json.load(gzip.open(importlib.resources.files("moto.ec2.resources") / "instance_types.json.gz"))
print(json.dumps({name: [row["NetworkInfo"]["MaximumNetworkCards"],
    (row["NetworkInfo"].get("EfaInfo") or {}).get("MaximumEfaInterfaces", 0),
    row["NetworkInfo"]["NetworkCards"][0]["MaximumNetworkInterfaces"]] for name, row in data.items()}))
"""
    theirs = in_server(code)
    keys = ("network_cards", "max_efa_interfaces", "max_enis_per_card")
    found = {
        (name, key): (getattr(ours, key), other)
        for name, ours in instance_types().items()
        if name in theirs
        for key, other in zip(keys, theirs[name], strict=True)
        if getattr(ours, key) != other
    }
    assert found == {}  # a difference would stand here with its reason
    assert set(instance_types()) - set(theirs) == MISSING_THERE


MISSING_THERE = {"p6e-gb200.36xlarge"}  # sold by the account team and in UltraServers only


QUEUE = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "LocalQueue",
    "metadata": {"name": "training", "namespace": "default"},
    "spec": {"clusterQueue": "training"},
}
CONTAINERS = {"containers": [{"name": "a", "image": "b"}]}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": CONTAINERS}


TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": CONTAINERS}
GROUP = {
    "apiVersion": "leaderworkerset.x-k8s.io/v1",
    "kind": "LeaderWorkerSet",
    "metadata": {"name": "chat"},
    "spec": {"leaderWorkerTemplate": {"size": 2, "workerTemplate": TEMPLATE}},
}
WORKER = {
    "image": "a/b:v1",
    "modelInvocationPort": {"containerPort": 8000},
    "modelVolumeMount": {"name": "weights"},
    "resources": {"limits": {"nvidia.com/gpu": "1"}},
}
SERVED: dict[str, Any] = {
    "apiVersion": "inference.sagemaker.aws.amazon.com/v1",
    "kind": "InferenceEndpointConfig",
    "metadata": {"name": "chat"},
    "spec": {"modelName": "chat", "modelSourceConfig": {"modelSourceType": "s3"}, "worker": WORKER},
}
INFERENCE = "amazon-sagemaker-hyperpod-inference"


def with_spec(document: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return {**document, "spec": {**document["spec"], **keys}}


OBJECTS: list[tuple[dict[str, Any], list[str], str | None]] = [
    (GROUP, ["lws"], None),
    (GROUP, [], "ensure CRDs are installed first"),
    (with_spec(GROUP, startup="x"), ["lws"], "LeaderWorkerSet/chat is invalid: spec: "),
    (
        with_spec(GROUP, leaderWorkerTemplate={"workerTemplate": {"spec": {**CONTAINERS, "hostNetwrok": True}}}),
        ["lws"],
        "Pod/chat is invalid: spec: ",
    ),
    (SERVED, [INFERENCE], None),
    (with_spec(SERVED, tolerations=[]), [INFERENCE], "InferenceEndpointConfig/chat is invalid: spec: "),
    (with_spec(SERVED, pdSpec={"prefillSpec": {}}), [INFERENCE], "'decodingSpec' is a required property"),
    (
        with_spec(SERVED, intelligentRoutingSpec={"routingStrategy": "random"}),
        [INFERENCE],
        "'random' is not one of",
    ),
    (with_spec(SERVED, instanceType="ml.p5.48xlarge", nodeAffinity={}), [INFERENCE], "should not be valid under"),
    (with_spec(SERVED, kubernetes={"volumes": [{"nmae": "x"}]}), [INFERENCE], "Pod/chat is invalid: spec.volumes"),
    (POD, [], None),
    ({**POD, "spec": {**CONTAINERS, "hostNetwrok": True}}, [], "Pod/a is invalid: spec: "),
    ({**POD, "kind": "Pood"}, [], 'no matches for kind "Pood" in version "v1"'),
    ({**POD, "apiVersion": "example.com/v1"}, [], 'no matches for kind "Pod" in version "example.com/v1"'),
    (QUEUE, [], "ensure CRDs are installed first"),
    (QUEUE, ["karpenter"], "ensure CRDs are installed first"),
    (QUEUE, ["kueue"], None),
    ({**QUEUE, "spec": {"clusterQueues": "x"}}, ["kueue"], "LocalQueue/training is invalid: spec: "),
    ({**QUEUE, "kind": "Cohort"}, ["kueue"], 'no matches for kind "Cohort"'),
    ({**QUEUE, "apiVersion": "kueue.x-k8s.io/v1beta1"}, ["kueue"], "no matches for kind"),
]


@pytest.fixture(scope="module")
def about_objects(in_server: Callable[[str], Any]) -> list[str | None]:
    """What the server says of each object, from one start of it."""
    return cast(
        "list[str | None]",
        in_server(f"""
said = []
for document, charts in {[(document, charts) for document, charts, _ in OBJECTS]!r}:
    try:
        kubernetes_types.check_object(document, "1.35", charts)
        said.append(None)
    except ValueError as error:
        said.append(str(error))
print(json.dumps(said))
"""),
    )


@pytest.mark.parametrize("at", range(len(OBJECTS)))
def test_objects_are_checked_strictly(about_objects: list[str | None], at: int) -> None:
    """An unknown field fails, and so does a kind whose schema nobody named."""
    said, found = OBJECTS[at][2], about_objects[at]
    assert found is None if said is None else found is not None and said in found


def test_a_chart_comes_from_a_place_in_a_version(in_server: Callable[[str], Any]) -> None:
    code = """
engine.eks._clusters["c"] = {"version": "1.35"}
said = []
for keys in ({}, {"Version": "1.0.0"}, {"Version": "1.0.0", "Repository": "oci://x"}):
    try:
        kubernetes_types._release({"ClusterName": "c", "Release": "r", "Chart": "x", **keys})
        said.append("taken")
    except ValueError as error:
        said.append(str(error))
print(json.dumps(said))
"""
    first, second, third = in_server(code)
    assert first.startswith("r: Version is missing")
    assert second.startswith("r: Repository is missing")
    assert third == "taken"


CLAIM = {
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "fsx", "namespace": "default"},
    "spec": {"volumeName": "a", "resources": {"requests": {"storage": "1Gi"}}},
}


def test_what_kubernetes_never_changes(in_server: Callable[[str], Any]) -> None:
    """A claim on a static volume does not grow, and a volume keeps its source."""
    grown = {**CLAIM, "spec": {**CLAIM["spec"], "resources": {"requests": {"storage": "2Gi"}}}}  # type: ignore[dict-item]
    code = f"""
said = []
for old, new in ((None, {CLAIM!r}), ({CLAIM!r}, {CLAIM!r}), ({CLAIM!r}, {grown!r})):
    try:
        said.append(kubernetes_types.check_change(old, new))
    except ValueError as error:
        said.append(str(error))
print(json.dumps(said))
"""
    first, second, third = in_server(code)
    assert (first, second) == (None, None)
    assert third == 'The PersistentVolumeClaim "fsx" is invalid: spec.resources: Forbidden: is immutable after creation'


def test_names_of_pcs_are_taken_once(in_server: Callable[[str], Any]) -> None:
    code = """
schema_types.live("AWS::PCS::Cluster")["a"] = schema_types.Record({}, {"Id": "pcs_1"})
said = []
for kind in ("computenodegroup", "computenodegroup", "queue"):
    arn = f"arn:aws:pcs:us-west-2:1:cluster/pcs/{kind}/pcs_{len(said)}"
    properties = {"ClusterId": "pcs_1", "Name": "gpu"}
    try:
        attributes = schema_types._pcs_part(arn, properties)
        kinds = {"computenodegroup": "AWS::PCS::ComputeNodeGroup", "queue": "AWS::PCS::Queue"}
        schema_types.live(kinds[kind])[arn] = schema_types.Record(properties, attributes)
        said.append("made")
    except ValueError as error:
        said.append(str(error))
print(json.dumps(said))
"""
    assert in_server(code) == ["made", "gpu already exists in the cluster pcs_1", "made"]


OPERATOR = {
    "executionRoleArn": "arn:aws:iam::111122223333:role/SageMakerHyperPodInferenceRole-1",
    "tlsCertificateS3Bucket": "hyperpod-tls-demo-1",
    "keda": {"enabled": True},
}


CONFIGURED: list[tuple[dict[str, Any], list[str] | None, list[str], str | None]] = [
    ({}, None, [], None),
    ({}, ["cert-manager"], [], "metrics-server, aws-mountpoint-s3-csi-driver, aws-fsx-csi-driver is missing"),
    (
        {"executionRoleArn": "arn:aws:iam::111122223333:role/Mine"},
        None,
        [],
        "does not begin SageMakerHyperPodInference",
    ),
    ({"tlsCertificateS3Bucket": "mine"}, None, [], "writes to hyperpod-tls"),
    ({"kedaa": {}}, None, [], "is not supported: kedaa"),
    ({}, None, ["keda"], "another one is installed already"),
    ({"keda": {"enabled": False}}, None, ["keda"], None),
]


@pytest.fixture(scope="module")
def about_operators(in_server: Callable[[str], Any]) -> list[str | None]:
    """What the server says of each configuration of the inference operator."""
    told = [({**OPERATOR, **values}, there, charts) for values, there, charts, _ in CONFIGURED]
    return cast(
        "list[str | None]",
        in_server(f"""
said = []
for values, there, charts in {told!r}:
    kubernetes_types._add_ons_of = lambda cluster: there or list(kubernetes_types._INFERENCE_NEEDS)
    kubernetes_types.charts_of = lambda cluster: charts
    try:
        kubernetes_types._check_inference("demo", values)
        said.append(None)
    except ValueError as error:
        said.append(str(error))
print(json.dumps(said))
"""),
    )


@pytest.mark.parametrize("at", range(len(CONFIGURED)))
def test_the_inference_operator_refuses_what_its_guide_says(about_operators: list[str | None], at: int) -> None:
    said, found = CONFIGURED[at][3], about_operators[at]
    assert found is None if said is None else found is not None and said in found
