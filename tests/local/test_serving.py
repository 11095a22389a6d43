"""The lives of endpoints: deployed, changed, destroyed. No server and no Kubernetes is behind them.

The tests of each class are one story, told in order.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fmblocks.serving.model_endpoint import VERIFY
from tests.local.conftest import FMBLOCKS, LocalAws
from tests.local.test_kubernetes import add_ons, cluster, edit, host_tools, of

__all__ = ["host_tools"]  # a fixture, for every test here
pytestmark = pytest.mark.enable_socket
MANIFEST = "Custom::AWSCDK-EKS-KubernetesResource"


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory, root: Path) -> dict[str, Path]:
    """Copies of the examples, to be changed, with a chart beside them."""
    folder = tmp_path_factory.mktemp("projects")
    shutil.copytree(root / "tests/charts", folder, dirs_exist_ok=True)
    names = ("serve-h100", "serve-disaggregated", "train-and-serve")
    return {name: Path(shutil.copy(root / "projects" / f"{name}.yaml", folder)) for name in names}


def objects(aws: LocalAws, stack: str) -> list[dict[str, Any]]:
    """The objects of endpoints, as the deployed template has them."""
    template = aws.client("cloudformation").get_template(StackName=stack)["TemplateBody"]
    template = json.loads(template) if isinstance(template, str) else template
    found = []
    for id, one in template["Resources"].items():
        if one["Type"] == MANIFEST and id.startswith("ServingEndpoint"):
            text = one["Properties"]["Manifest"]
            if isinstance(text, dict):
                text = "".join(part if isinstance(part, str) else "x" for part in text["Fn::Join"][1])
            found += json.loads(text)
    return found


def replicas(aws: LocalAws, stack: str) -> dict[str, int | None]:
    """The counts that stand in a template, by name."""
    kinds = ("Deployment", "LeaderWorkerSet", "InferenceEndpointConfig")
    return {one["metadata"]["name"]: one["spec"].get("replicas") for one in objects(aws, stack) if one["kind"] in kinds}


class TestOnEks:
    """Replicas that KEDA counts beside one over two nodes."""

    STACK = "serve-h100-InferenceStack"

    def test_one_command_deploys_it(self, aws: LocalAws, projects: dict[str, Path]) -> None:
        aws.deploy(projects["serve-h100"], "InferenceStack")
        assert replicas(aws, self.STACK) == {"chat-8b-server": None, "reason-671b-server-group": 1}
        bound = aws.client("eks").list_pod_identity_associations(clusterName=cluster(aws, self.STACK)["name"])
        assert {"chat-8b", "reason-671b", "keda-operator"} <= {one["serviceAccount"] for one in bound["associations"]}

    def test_again_nothing_changes(self, aws: LocalAws, projects: dict[str, Path]) -> None:
        """So the scaler's count stays whatever it is."""
        assert aws.deploy(projects["serve-h100"], "InferenceStack").count("(no changes)") == 2

    def test_image_count_version_and_endpoint_change_in_place(self, aws: LocalAws, projects: dict[str, Path]) -> None:
        before = of(aws, self.STACK, MANIFEST)
        edit(
            projects["serve-h100"],
            ("vllm/vllm-openai:v0.33.0", "vllm/vllm-openai:v0.33.1"),
            ("llama-3.1-8b-instruct/v1", "llama-3.1-8b-instruct/v2"),
            ("replicas: {min: 1, max: 8}", "replicas: {min: 2, max: 6}"),
            (
                "observability:",
                "    - {name: small, server: sglang, image: lmsysorg/sglang:v0.5.23, model: {bucket: my-models}, "
                "node_group: h100, accelerators_per_replica: 1}\nobservability:",
            ),
        )
        aws.deploy(projects["serve-h100"], "InferenceStack")
        after = of(aws, self.STACK, MANIFEST)
        assert set(before.items()) < set(after.items())
        assert replicas(aws, self.STACK) == {"chat-8b-server": None, "reason-671b-server-group": 1, "small-server": 1}

    def test_weights_are_pushed_once(self, aws: LocalAws, projects: dict[str, Path], tmp_path: Path) -> None:
        model, copied = tmp_path / "model", tmp_path / "copied"
        (model / "deep").mkdir(parents=True)
        (model / "config.json").write_text("{}")
        (model / "deep/weights.bin").write_bytes(bytes(9 * 2**20))  # more than one part
        push = [str(FMBLOCKS), "model", "push", str(projects["serve-h100"]), str(model), "tiny/v1"]
        first = aws.run(*push, project=projects["serve-h100"])
        assert first.stdout.count("pushed ") == 3
        again = aws.run(*push, project=projects["serve-h100"])
        assert "2 files, 9437186 bytes, which were there already" in again.stdout
        (model / "config.json").write_text("{1}")
        changed = aws.run(*push, project=projects["serve-h100"], check=False)
        assert changed.returncode == 2
        assert "is whole already and differs in config.json; versions do not change" in changed.stdout
        ssm, s3 = aws.client("ssm"), aws.client("s3")
        bucket = ssm.get_parameter(Name="/fmblocks/serve-h100/bucket/models/name")["Parameter"]["Value"]
        for one in s3.list_objects_v2(Bucket=bucket, Prefix="tiny/v1/")["Contents"]:
            target = copied / one["Key"].removeprefix("tiny/v1/")
            target.parent.mkdir(parents=True, exist_ok=True)
            s3.download_file(bucket, one["Key"], str(target))
        checked = subprocess.run(
            [sys.executable, str(VERIFY), str(copied)], capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0, checked.stderr

    def test_it_goes_and_data_stay(self, aws: LocalAws, projects: dict[str, Path]) -> None:
        aws.destroy(projects["serve-h100"], "InferenceStack")
        with pytest.raises(Exception, match="does not exist"):
            aws.status(self.STACK)
        assert of(aws, "serve-h100-FoundationStack", "AWS::S3::Bucket")


class TestOnTheClusterOfTraining:
    """InferenceStack comes and goes; TrainingStack does not notice."""

    TRAINING, STACK = "train-and-serve-TrainingStack", "train-and-serve-InferenceStack"

    def test_one_command_deploys_both(self, aws: LocalAws, projects: dict[str, Path]) -> None:
        aws.deploy(projects["train-and-serve"], "InferenceStack")
        assert replicas(aws, self.STACK) == {"preview-server": 2}
        entries = aws.client("eks").list_access_entries(clusterName=cluster(aws, self.TRAINING)["name"])
        (entry,) = of(aws, self.STACK, "AWS::EKS::AccessEntry").values()
        assert entry.split("|")[0] in entries["accessEntries"]

    def test_another_count_is_of_this_stack_alone(self, aws: LocalAws, projects: dict[str, Path]) -> None:
        edit(projects["train-and-serve"], ("replicas: 2", "replicas: 3"))
        assert aws.deploy(projects["train-and-serve"], "InferenceStack").count("(no changes)") == 3
        assert replicas(aws, self.STACK) == {"preview-server": 3}

    def test_it_goes_and_training_stays(self, aws: LocalAws, projects: dict[str, Path]) -> None:
        before = aws.resources(self.TRAINING)
        aws.destroy(projects["train-and-serve"], "InferenceStack")
        with pytest.raises(Exception, match="does not exist"):
            aws.status(self.STACK)
        assert aws.status(self.TRAINING) == "CREATE_COMPLETE"
        assert aws.resources(self.TRAINING) == before
        assert aws.client("fsx").describe_file_systems()["FileSystems"]


@pytest.fixture(scope="module")
def east(aws: LocalAws) -> LocalAws:
    """The local AWS in the Region of the example on HyperPod."""
    return dataclasses.replace(aws, region="us-east-1")


class TestOnHyperPod:
    """Prefill and decode, by the operator."""

    STACK = "serve-split-InferenceStack"

    def config(self, aws: LocalAws) -> dict[str, Any]:
        """The custom resource."""
        (found,) = [one for one in objects(aws, self.STACK) if one["metadata"]["name"] == "chat-70b"]
        return dict(found["spec"])

    def test_one_command_deploys_it(self, east: LocalAws, projects: dict[str, Path]) -> None:
        east.deploy(projects["serve-disaggregated"], "InferenceStack")
        assert "amazon-sagemaker-hyperpod-inference" in add_ons(east, self.STACK)
        assert self.config(east)["pdSpec"]["decodingSpec"]["replicas"] == 4

    def test_counts_image_and_endpoint_change_in_place(self, east: LocalAws, projects: dict[str, Path]) -> None:
        before = of(east, self.STACK, "AWS::SageMaker::Cluster")
        edit(
            projects["serve-disaggregated"],
            ("decode: {node_group: decode, replicas: 4}", "decode: {node_group: decode, replicas: 3}"),
            ("server-hyperpod-cuda-v1.1", "server-hyperpod-cuda-v1.2"),
            (
                "access:\n",
                "    - {name: small, server: vllm, image: a/b:v1, model: {path: /models/x}, node_group: decode, "
                "accelerators_per_replica: 1}\naccess:\n",
            ),
        )
        east.deploy(projects["serve-disaggregated"], "InferenceStack")
        assert of(east, self.STACK, "AWS::SageMaker::Cluster") == before
        assert self.config(east)["pdSpec"]["decodingSpec"]["replicas"] == 3
        assert set(replicas(east, self.STACK)) == {"chat-70b", "small"}

    def test_routing_that_goes_is_refused_before_the_operator_does(
        self, east: LocalAws, projects: dict[str, Path], tmp_path: Path, root: Path
    ) -> None:
        changed = tmp_path / "changed.yaml"
        changed.write_text(projects["serve-disaggregated"].read_text().replace("routing: prefix_aware", ""))
        look = [str(FMBLOCKS), "guard", str(changed), "--context", f"charts={root / 'tests/charts'}"]
        said = east.run(*look, project=changed, check=False)
        assert said.returncode == 1, said.stdout[-3000:]
        assert "error [FMB-134]" in said.stdout

    def test_it_goes_endpoints_first(self, east: LocalAws, projects: dict[str, Path], host_tools: Path) -> None:
        east.destroy(projects["serve-disaggregated"], "InferenceStack")
        with pytest.raises(Exception, match="does not exist"):
            east.status(self.STACK)
        assert of(east, "serve-split-FoundationStack", "AWS::FSx::FileSystem")
        called = host_tools / "called"
        assert not called.exists(), called.read_text()
