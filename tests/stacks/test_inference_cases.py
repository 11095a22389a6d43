"""Endpoints: what the templates of projects that serve hold, and failures that others had."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aws_cdk
import jsonschema
import kubernetes_validate
import pytest
import yaml

from fmblocks.findings import FindingsError
from fmblocks.local import session
from tests.stacks.conftest import Synthesize, Synthesized, Template, of_type
from tests.stacks.test_eks_cases import CHART, MANIFEST, objects, properties

HEAD = """\
name: demo
account: "111122223333"
region: us-west-2
network: {availability_zones: [usw2-az1, usw2-az2], primary_availability_zone: usw2-az2}
access: {admins: ["arn:aws:iam::111122223333:role/Platform"]}
observability: {collector: agents}
storage:
  model_store: {}
  lustre: {deployment_type: persistent_2, capacity_gib: 1200, throughput_mbps_per_tib: 125}
"""
GROUP = "{name: gpu, instance_type: p5en.48xlarge, count: 4}"
CHAT = "{name: chat, server: vllm, image: a/b:v1, model: {path: /m}, accelerators_per_replica: 8"
Serve = Callable[..., Synthesized]


@pytest.fixture(scope="module")
def serve(synthesize: Synthesize, tmp_path_factory: pytest.TempPathFactory) -> Serve:
    """A project with endpoints, from what a case adds to the smallest one."""

    def make(*endpoints: str, orchestrator: str = "eks", groups: str = GROUP, more: str = "", head: str = HEAD) -> Any:
        file = tmp_path_factory.mktemp("case") / "project.yaml"
        lines = [f"inference:\n  orchestrator: {orchestrator}\n{more}  node_groups: [{groups}]\n  endpoints:\n"]
        file.write_text(head + "".join([*lines, *(f"    - {one}\n" for one in endpoints)]))
        return synthesize(file)

    return make


@pytest.fixture(scope="module")
def h100(synthesize: Synthesize, root: Path) -> Synthesized:
    return synthesize(root / "projects/serve-h100.yaml")


@pytest.fixture(scope="module")
def split(synthesize: Synthesize, root: Path) -> Synthesized:
    return synthesize(root / "projects/serve-disaggregated.yaml")


@pytest.fixture(scope="module")
def shared(synthesize: Synthesize, root: Path) -> Synthesized:
    return synthesize(root / "projects/train-and-serve.yaml")


def the(kind: str, template: Template, name: str | None = None) -> dict[str, Any]:
    """The one object of a kind."""
    (found,) = [one for one in objects(template) if one["kind"] == kind and name in (None, one["metadata"]["name"])]
    return found


def pods_of(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What is a pod inside of an object whose kind Kubernetes does not know."""
    spec = document["spec"]
    if document["kind"] == "LeaderWorkerSet":
        for key in ("leaderTemplate", "workerTemplate"):
            yield spec["leaderWorkerTemplate"][key]["spec"]
    if document["kind"] == "InferenceEndpointConfig":
        worker = spec["worker"]
        container = {key: worker[key] for key in ("image", "args", "resources")}
        container |= {"name": "worker", "env": worker["environmentVariables"]}
        yield {"containers": [container], **spec.get("kubernetes", {})}


SCHEMAS = json.loads((Path(session.__file__).parent / "server/custom_kinds.json").read_text())
CUSTOM = ("leaderworkerset.x-k8s.io/", "keda.sh/", "inference.sagemaker.aws.amazon.com/", "karpenter.", "kueue.")


@pytest.mark.parametrize("example", ["h100", "split", "shared"])
def test_every_object_is_what_kubernetes_takes(example: str, request: pytest.FixtureRequest) -> None:
    """Strictly; of the kinds that operators bring names, enums and patterns, and the pods inside of them."""
    found = request.getfixturevalue(example)
    seen = set()
    for one in objects(found.inference):
        seen.add(one["kind"])
        if not one["apiVersion"].startswith(CUSTOM):
            kubernetes_validate.validate(one, "1.35", strict=True)
            continue
        text = re.sub(r"workspaces/<x>", "workspaces/ws-1", json.dumps(one)).replace(
            "<AWS::URLSuffix>", "amazonaws.com"
        )
        schema = SCHEMAS[f"{one['apiVersion']}/{one['kind']}"]
        assert [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(json.loads(text))] == []
        for spec in pods_of(one):
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}
            kubernetes_validate.validate(pod, "1.35", strict=True)
    wanted = {
        "h100": {"Deployment", "LeaderWorkerSet", "ScaledObject", "PersistentVolume"},
        "split": {"InferenceEndpointConfig"},
    }
    assert wanted.get(example, {"Deployment"}) <= seen


def test_over_two_nodes_they_talk_over_efa(serve: Serve) -> None:
    """C20."""
    found = serve(f"{CHAT.replace('replica: 8', 'replica: 16')}, nodes_per_replica: 2}}")
    (gpu,) = [
        one
        for one in properties(found.inference, "AWS::EKS::Nodegroup")
        if one["Labels"]["fmblocks/node-group"] == "gpu"
    ]
    assert len(gpu["Subnets"]) == 1
    template = found.inference["Resources"][gpu["LaunchTemplate"]["Id"]["Ref"]]["Properties"]["LaunchTemplateData"]
    efa = [one for one in template["NetworkInterfaces"] if one.get("InterfaceType", "").startswith("efa")]
    assert len(efa) == 16
    fabric = [one for one in found.inference["Parameters"].values() if "efa-security-group-id" in one["Default"]]
    assert fabric
    assert the("LeaderWorkerSet", found.inference)["spec"]["leaderWorkerTemplate"]["size"] == 2


@pytest.mark.parametrize(
    ("endpoint", "groups", "orchestrator", "said"),
    [
        # C20: two zones, whatever is served.
        (f"{CHAT.replace('replica: 8', 'replica: 16')}, nodes_per_replica: 2}}", GROUP.replace("count: 4", "count: 4, azs: [a, b]"), "eks", r"X-04.*azs"),
        (f"{CHAT}}}", GROUP.replace("count: 4", "count: 4, capacity: {mode: spot, training_plan_arn: 'arn:x'}"), "hyperpod-eks", r"TP-01.*is given, but the mode is spot"),
        (f"{CHAT}, kv_cache_tiers: [tiered_storage]}}", GROUP, "eks", r"FMB-123.*tiered_storage is HyperPod's"),
        (f"{CHAT.replace('{path: /m}', '{path: /m, parameters_billion: 671}')}}}", GROUP, "eks", r"FMB-124.*1,250 GiB at bf16"),
        (f"{CHAT}}}", GROUP.replace("p5en", "g6"), "pcs", r"FMB-117.*pcs runs no endpoints"),
    ],
)  # fmt: skip
def test_what_is_refused(serve: Serve, endpoint: str, groups: str, orchestrator: str, said: str) -> None:
    with pytest.raises(FindingsError, match=said):
        serve(endpoint, groups=groups, orchestrator=orchestrator)


def test_halves_in_two_zones_are_refused(serve: Serve) -> None:
    two = "{name: gpu, instance_type: p5en.48xlarge, count: 1}, {name: more, instance_type: p5en.48xlarge, count: 1, availability_zone: usw2-az1}"
    halves = "prefill_decode: {prefill: {node_group: gpu}, decode: {node_group: more}}"
    with pytest.raises(FindingsError, match=r"FMB-122.*usw2-az1 and usw2-az2, and EFA traffic does not leave"):
        serve(f"{CHAT}, {halves}}}", groups=two, orchestrator="hyperpod-eks")


def test_a_shared_cluster_needs_the_tier_itself(synthesize: Synthesize, root: Path, tmp_path: Path) -> None:
    text = (root / "projects/hyperpod-eks-b200.yaml").read_text()
    served = "inference:\n  cluster: training\n  endpoints:\n    - {name: chat, server: vllm, image: 'a/b:v1', "
    served += "model: {path: /m}, node_group: gpu, accelerators_per_replica: 8, kv_cache_tiers: [tiered_storage]}\n"
    file = tmp_path / "project.yaml"
    file.write_text(text + served)
    found = synthesize(file)
    config = the("InferenceEndpointConfig", found.inference)["spec"]
    assert config["kvCacheSpec"]["l2CacheSpec"] == {"l2CacheBackend": "tieredstorage"}
    file = tmp_path / "without.yaml"
    file.write_text(re.sub(r"  tiered_storage: .*\n", "", text) + served)
    with pytest.raises(FindingsError, match=r"FMB-123.*which the cluster has not switched on"):
        synthesize(file)


def test_a_tier_switches_on_what_it_needs(split: Synthesized) -> None:
    (cluster,) = properties(split.inference, "AWS::SageMaker::Cluster")
    assert cluster["TieredStorageConfig"]["Mode"] == "Enable"


class TestCounts:
    """Nobody but the scaler counts what is scaled."""

    def test_no_count_where_something_scales(self, h100: Synthesized) -> None:
        scaled = the("ScaledObject", h100.inference)["spec"]
        assert (scaled["minReplicaCount"], scaled["maxReplicaCount"]) == (1, 8)
        assert "replicas" not in the("Deployment", h100.inference, "chat-8b-server")["spec"]
        assert the("LeaderWorkerSet", h100.inference)["spec"]["replicas"] == 1

    def test_nor_on_hyperpod(self, serve: Serve) -> None:
        found = serve(
            f"{CHAT}, replicas: {{min: 1, max: 3}}, autoscaling: {{target: 4}}}}",
            orchestrator="hyperpod-eks",
            groups=f"{GROUP}, {{name: services, instance_type: m7i.4xlarge, count: 1}}",
            more="  kubernetes: {hyperpod_add_ons: [observability]}\n",
            head=HEAD.replace("observability: {collector: agents}\n", ""),
        )
        spec = the("InferenceEndpointConfig", found.inference)["spec"]
        assert "replicas" not in spec
        scaling = spec["autoScalingSpec"]
        assert (scaling["minReplicaCount"], scaling["maxReplicaCount"]) == (1, 3)
        assert scaling["prometheusTrigger"]["query"] == 'sum(vllm:num_requests_waiting{model_name="chat"})'
        assert not scaling["prometheusTrigger"]["serverAddress"].endswith("/")


def test_what_kubectl_does_not_prune_has_a_resource_of_its_own(h100: Synthesized) -> None:
    """A scaler that its manifest loses would go on scaling."""
    for id, one in of_type(h100.inference, MANIFEST).items():
        kinds = [one["kind"] for one in objects({"Resources": {id: one}})]
        if "ScaledObject" in kinds:
            assert kinds == ["ScaledObject"]


def named(template: Template) -> dict[tuple[str, str], str]:
    """The resource of each Kubernetes object of endpoints."""
    return {
        (found["kind"], found["metadata"]["name"]): id
        for id, one in of_type(template, MANIFEST).items()
        if id.startswith("ServingEndpoint")
        for found in objects({"Resources": {id: one}})
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "nodes_per_replica: 2, accelerators_per_replica: 16"),
        ("", "replicas: {min: 1, max: 3}, autoscaling: {target: 4}"),
        ("", "model: {store: llama/v1}"),
        ("model: {store: llama/v1}", "model: {store: llama/v2}"),
        ("", "router_image: 'a/r:v1', routing: prefix_aware"),
        ("", "router_image: 'a/r:v1', prefill_decode: {}"),
    ],
)
def test_no_object_moves_to_another_resource(serve: Serve, before: str, after: str) -> None:
    """CloudFormation makes the new one first, and Kubernetes refuses a second one of a name."""

    def template(change: str) -> Template:
        keys = yaml.safe_load(f"{{{change}}}") or {}
        return serve(json.dumps({**yaml.safe_load(f"{CHAT}}}"), **keys})).inference

    was, becomes = named(template(before)), named(template(after))
    assert {key: id for key, id in was.items() if key in becomes} == {
        key: id for key, id in becomes.items() if key in was
    }
    assert was != becomes or before.split("/")[0] == after.split("/")[0]


def test_pods_of_a_replica_are_found_by_a_service_of_the_controllers_own(h100: Synthesized) -> None:
    """LeaderWorkerSet makes a headless one of its name; ours would stand in its place."""
    groups = [one["metadata"]["name"] for one in objects(h100.inference) if one["kind"] == "LeaderWorkerSet"]
    doors = [one["metadata"]["name"] for one in objects(h100.inference) if one["kind"] == "Service"]
    assert groups
    assert not set(groups) & set(doors)


def charts(template: Template) -> set[str]:
    return {one["Chart"] for one in properties(template, CHART) if "Chart" in one}


def test_charts_come_once_and_only_where_they_are_needed(serve: Serve, h100: Synthesized, shared: Synthesized) -> None:
    assert {"keda", "lws"} <= charts(h100.inference)
    assert not {"keda", "lws"} & charts(shared.inference)
    scaled = "replicas: {min: 1, max: 2}, autoscaling: {target: 4}"
    found = serve(f"{CHAT}, {scaled}}}", f"{CHAT.replace('name: chat', 'name: talk')}, {scaled}}}")
    assert [one["Chart"] for one in properties(found.inference, CHART)].count("keda") == 1
    assert "lws" not in charts(found.inference)


def waits(template: Template, id: str) -> set[str]:
    return set(template["Resources"][id].get("DependsOn", []))


def only(template: Template, kind: str, text: str) -> str:
    (id,) = [id for id in of_type(template, kind) if text in id]
    return id


def test_keda_starts_with_its_role(h100: Synthesized) -> None:
    chart = only(h100.inference, CHART, "ServingKeda")
    association = only(h100.inference, "AWS::EKS::PodIdentityAssociation", "ServingKeda")
    assert association in waits(h100.inference, chart)
    bound = h100.inference["Resources"][association]["Properties"]
    assert (bound["Namespace"], bound["ServiceAccount"]) == ("keda", "keda-operator")
    auth = only(h100.inference, MANIFEST, "ServingKedaAuthentication")
    assert chart in waits(h100.inference, auth)
    assert auth in waits(h100.inference, only(h100.inference, MANIFEST, "Endpointchat8bScaling"))


class TestWeights:
    """Where they come from, and who reads them."""

    def test_each_endpoint_reads_its_own(self, h100: Synthesized) -> None:
        for name, folder in (("chat8b", "llama-3.1-8b-instruct/v1/"), ("reason671b", "deepseek-v3/2026-03/")):
            policy = only(h100.inference, "AWS::IAM::Policy", f"Endpoint{name}Role")
            document = h100.inference["Resources"][policy]["Properties"]["PolicyDocument"]
            by_action = {json.dumps(one["Action"]): one for one in document["Statement"]}
            assert f"{folder}*" in json.dumps(by_action['"s3:GetObject"']["Resource"])
            assert by_action['"s3:ListBucket"']["Condition"] == {"StringLike": {"s3:prefix": [f"{folder}*"]}}
        (volume, _) = [one for one in objects(h100.inference) if one["kind"] == "PersistentVolume"]
        assert volume["spec"]["csi"]["volumeAttributes"]["authenticationSource"] == "pod"
        assert {"read-only", "prefix llama-3.1-8b-instruct/v1/"} <= set(volume["spec"]["mountOptions"])

    def test_another_version_is_another_volume(self, serve: Serve) -> None:
        """Kubernetes changes the source of no volume."""
        names = []
        for version in ("v1", "v2"):
            found = serve(CHAT.replace("{path: /m}", f"{{store: llama/{version}}}") + "}").inference
            volumes = [one["metadata"]["name"] for one in objects(found) if one["kind"] == "PersistentVolume"]
            names += [name for name in volumes if name.startswith("chat-")]
        assert len(set(names)) == 2

    def test_lustre_shows_the_store(self, split: Synthesized) -> None:
        (link,) = properties(split.foundation, "AWS::FSx::DataRepositoryAssociation")
        bucket = only(split.foundation, "AWS::S3::Bucket", "ModelStore")
        assert json.dumps({"Ref": bucket}) in json.dumps(link["DataRepositoryPath"])
        assert link["FileSystemPath"] == "/models"
        assert set(link["S3"]) == {"AutoImportPolicy"}
        source = the("InferenceEndpointConfig", split.inference)["spec"]["modelSourceConfig"]
        assert (source["modelSourceType"], source["modelLocation"]) == ("fsx", "models/llama-3.3-70b-instruct/v2")

    def test_of_the_store_every_file_is_checked_first(self, h100: Synthesized, shared: Synthesized) -> None:
        spec = the("Deployment", h100.inference, "chat-8b-server")["spec"]["template"]["spec"]
        assert [one["name"] for one in spec["initContainers"]] == ["check-model"]
        script = the("ConfigMap", h100.inference, "chat-8b-check")["data"]["verify_model.py"]
        compile(script, "verify_model.py", "exec")
        assert "initContainers" not in the("Deployment", shared.inference, "preview-server")["spec"]["template"]["spec"]


class TestOperator:
    """HyperPod's inference operator: what it needs comes before it, endpoints after it."""

    def test_order(self, split: Synthesized) -> None:
        (add_on,) = [
            id
            for id, one in of_type(split.inference, "AWS::EKS::Addon").items()
            if one["Properties"]["AddonName"] == "amazon-sagemaker-hyperpod-inference"
        ]
        before = waits(split.inference, add_on)
        for part in ("ExecutionRole", "LoadBalancerRole", "ScalerRole", "Namespace"):
            assert any(f"ServingOperator{part}" in one for one in before), part
        for name in ("certmanager", "metricsserver", "awsfsxcsidriver", "awsmountpoints3csidriver"):
            assert any(name in one for one in before), name
        endpoint = only(split.inference, MANIFEST, "Endpointchat70b")
        assert add_on in waits(split.inference, endpoint)

    def test_what_it_is_told(self, split: Synthesized) -> None:
        (add_on,) = [
            one
            for one in properties(split.inference, "AWS::EKS::Addon")
            if one["AddonName"] == "amazon-sagemaker-hyperpod-inference"
        ]
        parts = add_on["ConfigurationValues"]["Fn::Join"][1]
        told = json.loads("".join(one if isinstance(one, str) else json.dumps(one).replace('"', "'") for one in parts))
        assert told["alb"]["enabled"] is told["keda"]["enabled"] is True
        assert "ServingOperatorExecutionRole" in told["executionRoleArn"]
        assert "Certificates" in told["tlsCertificateS3Bucket"]
        assert "KubernetesHyperPod" in told["hyperpodClusterArn"]
        (bucket,) = properties(split.inference, "AWS::S3::Bucket")
        assert "hyperpod-tls-serve-split-" in json.dumps(bucket["BucketName"])

    def test_roles_are_of_one_service_account_each(self, split: Synthesized) -> None:
        accounts = set()
        for id, one in of_type(split.inference, "AWS::IAM::Role").items():
            if not id.startswith("ServingOperator"):
                continue
            text, values = one["Properties"]["AssumeRolePolicyDocument"]["Fn::Sub"]
            document = json.loads(text)
            condition = document["Statement"][0]["Condition"]["StringEquals"]
            assert condition["${Issuer}:aud"] == "sts.amazonaws.com"
            assert set(values) == {"Provider", "Issuer"}
            accounts.add(condition["${Issuer}:sub"].rsplit(":", 1)[1])
            services = {s["Principal"]["Service"] for s in document["Statement"] if "Service" in s["Principal"]}
            assert services == ({"sagemaker.amazonaws.com"} if "Execution" in id else set())
        assert accounts == {
            "hyperpod-inference-controller-manager", "aws-load-balancer-controller", "keda-operator",
        }  # fmt: skip

    def test_the_load_balancer_role_asks_for_no_more_than_its_project(self, split: Synthesized) -> None:
        """Against the policy of the controller's release that aws-cdk-lib carries."""
        (archive,) = (Path(aws_cdk.__file__).parent / "_jsii").glob("aws-cdk-lib@*.tgz")
        with tarfile.open(archive) as files:
            member = files.extractfile("package/aws-eks-v2/lib/addons/alb-iam_policy-v2.13.4.json")
            assert member is not None
            theirs = json.load(member)["Statement"]
        policy = only(split.inference, "AWS::IAM::Policy", "LoadBalancerRole")

        def allowed(document: list[dict[str, Any]]) -> dict[str, set[bool]]:
            """By action whether every statement of it is bound by a condition."""
            found: dict[str, set[bool]] = {}
            for statement in document:
                actions = statement["Action"]
                for action in actions if isinstance(actions, list) else [actions]:
                    found.setdefault(action, set()).add("Condition" in statement)
            return found

        ours = allowed(split.inference["Resources"][policy]["Properties"]["PolicyDocument"]["Statement"])
        published = allowed(theirs)
        assert set(ours) <= set(published)
        # What endpoints do not use: Cognito, WAF, Shield, Outposts, address pools, certificates of IAM.
        unused = r"(cognito-idp|waf-regional|wafv2|shield|iam):.*|elasticloadbalancing:(SetWebAcl|ModifyIpPools|ModifyCapacityReservation)|ec2:(\w*Coip\w*|DescribeIpamPools)"
        assert [one for one in set(published) - set(ours) if not re.fullmatch(unused, one)] == []
        # What the project binds by the controller's own tag is bound here.
        assert [one for one in ours if published[one] == {True} and ours[one] != {True}] == []


class TestShared:
    """An endpoint on the cluster of another stack."""

    def test_nothing_of_a_cluster_is_made(self, shared: Synthesized) -> None:
        kinds = {one["Type"] for one in shared.inference["Resources"].values()}
        assert not kinds & {"AWS::EKS::Cluster", "AWS::EKS::Nodegroup", "AWS::EKS::Addon", CHART}
        (entry,) = properties(shared.inference, "AWS::EKS::AccessEntry")
        assert "AccessKubectlProviderHandler" in json.dumps(entry["PrincipalArn"])
        endpoint = only(shared.inference, MANIFEST, "EndpointpreviewReplicas")
        assert only(shared.inference, "AWS::EKS::AccessEntry", "Access") in waits(shared.inference, endpoint)

    def test_it_is_deployed_after_training(self, shared: Synthesized) -> None:
        manifest = json.loads((shared.folder / "manifest.json").read_text())["artifacts"]
        assert {"FoundationStack", "TrainingStack"} <= set(manifest["InferenceStack"]["dependencies"])
        assert "InferenceStack" not in manifest["TrainingStack"]["dependencies"]

    def test_an_own_cluster_waits_for_nobody(self, h100: Synthesized) -> None:
        manifest = json.loads((h100.folder / "manifest.json").read_text())["artifacts"]
        assert "TrainingStack" not in manifest
        assert "FoundationStack" in manifest["InferenceStack"]["dependencies"]


def test_a_router_finds_the_pods_that_answer(serve: Serve) -> None:
    two = f"{GROUP}, {{name: more, instance_type: p5en.48xlarge, count: 4}}"
    halves = (
        "router_image: 'a/r:v1', prefill_decode: {prefill: {node_group: gpu}, decode: {node_group: more, replicas: 2}}"
    )
    found = serve(f"{CHAT}, {halves}}}", groups=two)
    started = {one["metadata"]["name"]: one["spec"] for one in objects(found.inference) if one["kind"] == "Deployment"}
    assert started["chat-decode"]["replicas"] == 2
    (router,) = started["chat-router"]["template"]["spec"]["containers"]
    for half in ("prefill", "decode"):
        at = router["args"].index(f"--{half}-selector")
        wanted = dict(one.split("=") for one in router["args"][at + 1 : at + 4])
        assert wanted.items() <= started[f"chat-{half}"]["template"]["metadata"]["labels"].items()
    door = the("Service", found.inference, "chat")["spec"]
    assert door["selector"].items() <= started["chat-router"]["template"]["metadata"]["labels"].items()
    assert door["ports"][0]["targetPort"] == router["ports"][0]["containerPort"]


def test_a_load_balancer_is_inside_and_ends_tls(h100: Synthesized) -> None:
    found = the("Service", h100.inference, "chat-8b")
    annotations = {
        key.rsplit("aws-load-balancer-", 1)[1]: value for key, value in found["metadata"]["annotations"].items()
    }
    assert annotations["type"] == "nlb"
    assert annotations["internal"] == "true"
    assert annotations["ssl-cert"].startswith("arn:aws:acm:")
    assert found["spec"]["ports"][0]["port"] == 443
    assert found["spec"]["loadBalancerSourceRanges"] == ["10.20.0.0/16"]


def test_metrics_carry_the_endpoint_they_are_of(h100: Synthesized) -> None:
    """The scaler asks by it."""
    (config,) = [one["data"]["config.yaml"] for one in objects(h100.inference) if "config.yaml" in one.get("data", {})]
    assert "__meta_kubernetes_pod_label_fmblocks_endpoint" in config
    pod = the("Deployment", h100.inference, "chat-8b-server")["spec"]["template"]
    assert pod["metadata"]["labels"]["fmblocks/metrics"] == "true"
    assert [port["name"] for port in pod["spec"]["containers"][0]["ports"]] == ["metrics"]
    query = the("ScaledObject", h100.inference)["spec"]["triggers"][0]["metadata"]["query"]
    assert 'endpoint="chat-8b"' in query
