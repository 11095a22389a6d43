"""Serving: figures, command lines, Kubernetes objects, the check of weights, and pushing them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import boto3
import kubernetes_validate
import pytest
import typer
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Template
from botocore.response import StreamingBody
from botocore.stub import ANY, Stubber

from fmblocks import FindingsError
from fmblocks.catalog import instance_types
from fmblocks.cli.model import copy
from fmblocks.project import Project
from fmblocks.serving import pods
from fmblocks.serving.commands import command, hyperpod_command, router_command, width_of
from fmblocks.serving.figures import figures
from fmblocks.serving.model_endpoint import VERIFY, ModelEndpoint
from fmblocks.serving.model_manifest import NAME, File, describe, text
from fmblocks.serving.nodes import ServedNodes
from fmblocks.serving.rules import has_room
from fmblocks.serving.settings import Endpoint
from fmblocks.storage.model_store import ModelStore
from tests.conftest import ROOT

TYPES = instance_types()
# Llama 3.3 70B and DeepSeek-V3, as their config.json has them.
LLAMA = {"parameters_billion": "70.6", "kv_cache": {"layers": "80", "kv_heads": "8", "head_dim": "128"}}
DEEPSEEK = {"parameters_billion": "671", "precision": "fp8", "kv_cache": {"layers": "61", "latent_dim": "576"}}


def endpoint(model: Any = None, **keys: Any) -> Endpoint:
    """An endpoint as a project file writes it."""
    given = {"name": "chat", "server": "vllm", "image": "a/b:v1", "accelerators_per_replica": "8"}
    return Endpoint.model_validate({**given, "model": {"path": "/m", **(model or {})}, **keys})


def started(one: Endpoint, half: str = "") -> dict[str, Any]:
    """The command line of a half, flag by flag; the last one counts."""
    found = command(one, half, one.roles()[half], model_path="/models")
    return {
        "command": found.command,
        "args": flags(found.args),
        "workers": flags(found.worker_args),
        "env": found.environment,
    }


def flags(args: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for at, one in enumerate(args):
        if one.startswith("--"):
            after = args[at + 1] if at + 1 < len(args) else ""
            found[one] = "" if after.startswith("--") else after
    return found


class TestFigures:
    """By hand: a token of 70B is 2 × 80 × 8 × 128 × 2 = 327,680 bytes; of DeepSeek-V3 61 × 576 × 2 = 70,272."""

    def test_of_heads(self) -> None:
        found = figures(endpoint(LLAMA, context_tokens="32768"), TYPES["p5.48xlarge"], 8)
        assert found.kv_bytes_per_token == 327_680
        assert None not in (found.weights_gib, found.kv_gib, found.tokens)
        assert found.weights_gib == pytest.approx(131.5, abs=0.05)
        assert found.hbm_gib == 640
        assert found.kv_gib == pytest.approx(640 * 0.9 - 131.502, abs=0.01)
        assert found.tokens == pytest.approx(444.498 * 2**30 / 327_680, rel=1e-4)
        assert found.requests == pytest.approx(44.45, abs=0.01)

    def test_a_latent_vector_is_kept_on_every_rank(self) -> None:
        wide = figures(
            endpoint(DEEPSEEK, accelerators_per_replica="16", nodes_per_replica="2"), TYPES["p5en.48xlarge"], 16
        )
        assert wide.kv_bytes_per_token == 70_272
        assert wide.tokens is not None
        assert wide.kv_gib is not None
        assert wide.tokens == int(wide.kv_gib * 2**30 // (70_272 * 16))
        narrow = endpoint(DEEPSEEK, accelerators_per_replica="16", nodes_per_replica="2", tensor_parallel_size="8")
        assert figures(narrow, TYPES["p5en.48xlarge"], 16).tokens == pytest.approx(2 * wide.tokens, rel=1e-6)

    def test_more_ranks_than_heads_keep_copies(self) -> None:
        shape = {"parameters_billion": "8", "kv_cache": {"layers": "32", "kv_heads": "4", "head_dim": "128"}}
        found = figures(endpoint(shape), TYPES["p5.48xlarge"], 8)
        assert found.kv_gib is not None
        assert found.tokens == int(found.kv_gib * 2**30 // (2 * 32 * 4 * 128 * 2 * 2))

    @pytest.mark.parametrize(
        ("one", "kind", "unknown"),
        [
            (endpoint({"kv_cache": LLAMA["kv_cache"]}), "p5.48xlarge", "weights_gib"),
            (endpoint({"parameters_billion": "8"}), "p5.48xlarge", "kv_bytes_per_token"),
            (endpoint(LLAMA, server="sglang"), "p5.48xlarge", "kv_gib"),
            (endpoint(LLAMA), "g6e.12xlarge", "hbm_gib"),
        ],
    )
    def test_what_nobody_said_is_unknown(self, one: Endpoint, kind: str, unknown: str) -> None:
        found = figures(one, TYPES[kind], 8 if kind.startswith("p5") else 4)
        assert getattr(found, unknown) is None
        assert found.tokens is None

    def test_smaller_numbers_of_the_cache(self) -> None:
        shape = {**LLAMA["kv_cache"], "precision": "fp8"}  # type: ignore[dict-item]
        assert figures(endpoint({**LLAMA, "kv_cache": shape}), TYPES["p5.48xlarge"], 8).kv_bytes_per_token == 163_840


class TestCommands:
    """What containers are started with."""

    def test_vllm_on_a_node(self) -> None:
        found = started(endpoint(context_tokens="8192", args=["--max-num-seqs", "64"]))
        assert found["command"] == ("vllm", "serve")
        assert found["args"] == {
            "--served-model-name": "chat", "--host": "0.0.0.0", "--port": "8000", "--tensor-parallel-size": "8",
            "--gpu-memory-utilization": "0.9", "--max-model-len": "8192", "--max-num-seqs": "64",
        }  # fmt: skip

    def test_vllm_over_nodes(self) -> None:
        found = started(endpoint(accelerators_per_replica="16", nodes_per_replica="2", tensor_parallel_size="8"))
        spread = {"--nnodes": "2", "--master-addr": "$(LWS_LEADER_ADDRESS)", "--pipeline-parallel-size": "2"}
        assert spread.items() <= found["args"].items()
        assert found["args"]["--node-rank"] == "0"
        assert "--headless" not in found["args"]
        assert found["workers"] == {**found["args"], "--node-rank": "$(LWS_WORKER_INDEX)", "--headless": ""}

    def test_sglang_over_nodes(self) -> None:
        found = started(endpoint(server="sglang", accelerators_per_replica="16", nodes_per_replica="2"))
        assert found["command"] == ("python3", "-m", "sglang.launch_server")
        assert {"--tp-size": "16", "--nnodes": "2", "--dist-init-addr": "$(LWS_LEADER_ADDRESS):20000"}.items() <= found[
            "args"
        ].items()
        assert found["args"]["--host"] == "0.0.0.0"
        assert "--enable-metrics" in found["args"]
        assert found["workers"] == found["args"]

    def test_keys_and_values_travel_over_efa(self) -> None:
        """UCX, the default of both, does not know it."""
        split = {"prefill_decode": {"prefill": {}, "decode": {"args": ["--x"]}}, "router_image": "r:1"}
        vllm = started(endpoint(**split), "decode")
        carried = json.loads(vllm["args"]["--kv-transfer-config"])
        assert carried["kv_connector_extra_config"] == {"backends": ["LIBFABRIC"]}
        assert "--x" in vllm["args"]
        sglang = started(endpoint(server="sglang", **split), "prefill")
        assert sglang["args"]["--disaggregation-mode"] == "prefill"
        assert sglang["args"]["--disaggregation-transfer-backend"] == "nixl"
        assert sglang["env"]["SGLANG_DISAGGREGATION_NIXL_BACKEND"] == "LIBFABRIC"

    def test_a_cache_on_the_cpu(self) -> None:
        cpu = {"kv_cache_tiers": ["cpu"], "kv_cache_cpu_gib": "64"}
        over = {"accelerators_per_replica": "16", "nodes_per_replica": "2"}
        assert started(endpoint(**cpu))["args"]["--kv-offloading-size"] == "64"
        assert started(endpoint(**cpu, **over))["args"]["--kv-offloading-size"] == "128"  # of all ranks together
        assert started(endpoint(server="sglang", **cpu))["args"]["--hicache-size"] == "8"  # of one

    def test_own_servers_are_left_alone(self) -> None:
        found = started(endpoint(server="own", args=["serve", "--it"]))
        assert (found["command"], found["args"]) == ((), {"--it": ""})

    def test_a_half_says_all_that_differs(self) -> None:
        """The operator replaces flags of the endpoint by those of the half, and takes none away."""
        split = {"decode": {"accelerators_per_replica": "4"}}
        one = endpoint(prefill_decode=split, tensor_parallel_size="4")
        whole = flags(hyperpod_command(one, model_path="/m").args)
        assert (whole["--tensor-parallel-size"], whole["--pipeline-parallel-size"]) == ("4", "2")
        for half, stages in (("prefill", "2"), ("decode", "1")):
            merged = {**whole, **flags(width_of(one, one.roles()[half]))}
            assert (merged["--tensor-parallel-size"], merged["--pipeline-parallel-size"]) == ("4", stages)

    def test_hyperpod_starts_vllm_by_its_image(self) -> None:
        found = hyperpod_command(endpoint(kv_cache_tiers=["cpu"]), model_path="/opt/ml/model")
        assert found.command == ()
        assert flags(found.args)["--model"] == "/opt/ml/model"
        assert found.environment == {"PYTHONHASHSEED": "0"}
        assert hyperpod_command(endpoint(), model_path="/m").environment == {}
        assert hyperpod_command(endpoint(server="sglang"), model_path="/m").command[0] == "python3"
        assert hyperpod_command(endpoint(server="own", args=["a"]), model_path="/m").args == ("a",)

    @pytest.mark.parametrize(
        ("server", "program", "split"),
        [("vllm", "vllm-router", "--vllm-pd-disaggregation"), ("sglang", "python3", "--pd-disaggregation")],
    )
    def test_routers_find_pods_by_their_labels(self, server: str, program: str, split: str) -> None:
        one = endpoint(server=server, routing="round_robin", router_image="r:1")
        found = router_command(one, namespace="ns", selectors={"": ["a=b", "c=d"]})
        assert found.command[0] == program
        assert flags(found.args)["--policy"] == "round_robin"
        assert found.args[found.args.index("--selector") + 1 :] == ("a=b", "c=d")
        halves = router_command(one, namespace="ns", selectors={"prefill": ["a=p"], "decode": ["a=d"]})
        assert split in halves.args


class TestPods:
    """The objects of an endpoint."""

    def placed(self, one: Endpoint, half: str = "", kind: str = "p5en.48xlarge", **more: Any) -> pods.Placed:
        told = {"efa_interfaces": 16, "surge": False, "fits": False, **more}
        return pods.Placed(name="chat", half=half, role=one.roles()[half], kind=TYPES[kind], group_name="gpu", **told)

    def made(self, one: Endpoint, *, checked: bool = False, **more: Any) -> dict[str, Any]:
        weights = pods.Weights(
            path="/models",
            mount={"name": "weights", "mountPath": "/models"},
            volume={"name": "weights", "persistentVolumeClaim": {"claimName": "fsx"}},
            objects=(),
            checked=checked,
        )
        placed = self.placed(one, **more)
        begun = command(one, placed.half, placed.role, model_path="/models")
        return pods.workload(one, placed, begun, weights, namespace="default", script="1" if checked else None)

    def test_nothing_of_the_fabric_where_nothing_crosses_it(self) -> None:
        (server,) = self.made(endpoint())["spec"]["template"]["spec"]["containers"]
        assert set(server["resources"]["limits"]) == {"nvidia.com/gpu"}
        assert "securityContext" not in server

    def test_over_nodes_every_pod_has_the_fabric(self) -> None:
        """C20."""
        found = self.made(endpoint(accelerators_per_replica="16", nodes_per_replica="2"))
        assert found["kind"] == "LeaderWorkerSet"
        spec = found["spec"]["leaderWorkerTemplate"]
        assert spec["size"] == 2
        for template in (spec["leaderTemplate"], spec["workerTemplate"]):
            (server,) = template["spec"]["containers"]
            assert server["resources"]["limits"] == {
                "nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "16", "hugepages-2Mi": "5120Mi",
            }  # fmt: skip
            assert server["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}
            assert {"name": "shm", "mountPath": "/dev/shm"} in server["volumeMounts"]
            assert "NCCL_SOCKET_IFNAME" in {one["name"] for one in server["env"]}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": template["spec"]}
            kubernetes_validate.validate(pod, "1.35", strict=True)
        # Only the first one answers, and is asked.
        assert "startupProbe" in spec["leaderTemplate"]["spec"]["containers"][0]
        assert "startupProbe" not in spec["workerTemplate"]["spec"]["containers"][0]
        assert pods.ANSWERS_LABEL not in spec["workerTemplate"]["metadata"]["labels"]

    def test_half_a_node_gets_half_of_its_devices(self) -> None:
        one = endpoint(accelerators_per_replica="4", prefill_decode={}, router_image="r:1")
        found = self.made(one, half="decode")
        (server,) = found["spec"]["template"]["spec"]["containers"]
        assert server["resources"]["limits"]["vpc.amazonaws.com/efa"] == "8"
        assert server["resources"]["requests"]["memory"] == "512Gi"

    def test_a_driver_that_is_asked_for(self) -> None:
        found = self.made(endpoint(gdrcopy="true"))["spec"]["template"]["spec"]
        assert {"name": "gdrdrv", "hostPath": {"path": "/dev/gdrdrv", "type": "CharDevice"}} in found["volumes"]
        assert found["containers"][0]["securityContext"] == {"privileged": True}

    def test_who_counts_the_replicas(self) -> None:
        scaled = endpoint(replicas={"min": "1", "max": "4"}, autoscaling={"target": "8"})
        assert "replicas" not in self.made(scaled)["spec"]
        assert self.made(endpoint(replicas="3"))["spec"]["replicas"] == 3
        over = {"accelerators_per_replica": "16", "nodes_per_replica": "2"}
        both = endpoint(replicas={"min": "1", "max": "4"}, autoscaling={"target": "8"}, **over)
        assert "replicas" not in self.made(both)["spec"]

    @pytest.mark.parametrize(
        ("count", "size", "room"), [(3, 8, True), (2, 8, False), (3, 5, True), (2, 5, False), (2, 4, True)]
    )
    def test_room_is_counted_in_whole_places(self, count: int, size: int, room: bool) -> None:
        """Two replicas run; a pod of five accelerators finds no room in three and three."""
        one = endpoint(accelerators_per_replica=str(size), replicas="2")
        nodes = [ServedNodes("gpu", "p5en.48xlarge", count, 16)]
        assert has_room([one], nodes, TYPES, one_more=one) is room
        assert has_room([one], nodes, TYPES)

    def test_room_decides_how_an_update_goes(self) -> None:
        turns = [self.made(endpoint(), surge=surge)["spec"]["strategy"]["rollingUpdate"] for surge in (False, True)]
        assert turns == [{"maxSurge": 0, "maxUnavailable": 1}, {"maxSurge": 1, "maxUnavailable": 0}]

    @pytest.mark.parametrize("most", range(2, 101))
    def test_an_update_stops_nobody_while_there_is_room(self, most: int) -> None:
        """Kubernetes rounds maxUnavailable down: one of all, none of few."""
        one = endpoint(replicas={"min": "1", "max": str(most)}, autoscaling={"target": "8"})
        turn = self.made(one, fits=True)["spec"]["strategy"]["rollingUpdate"]
        share = int(turn["maxUnavailable"].removesuffix("%"))
        assert turn["maxSurge"] == 1
        assert most * share // 100 == 1
        assert most // 2 * share // 100 == 0

    def test_the_users_environment_wins(self) -> None:
        one = endpoint(environment={"NCCL_DEBUG": "WARN", "VLLM_HOST_IP": "1.2.3.4"})
        (server,) = self.made(one)["spec"]["template"]["spec"]["containers"]
        told = {found["name"]: found.get("value") for found in server["env"]}
        assert (told["NCCL_DEBUG"], told["VLLM_HOST_IP"]) == ("WARN", "1.2.3.4")
        assert len(told) == len(server["env"])

    def test_weights_are_checked_before_they_are_served(self) -> None:
        spec = self.made(endpoint(), checked=True)["spec"]["template"]["spec"]
        (check,) = spec["initContainers"]
        assert check["command"] == ["python3", "/fmblocks/verify_model.py", "/models"]
        assert {mount["name"] for mount in check["volumeMounts"]} == {"weights", "check"}

    def test_who_may_call(self) -> None:
        told: dict[str, Any] = {"namespace": "default", "routed": False, "certificate": None}
        spec = pods.service(endpoint(), source_ranges=("10.20.0.0/16", "10.0.0.0/8"), **told)["spec"]
        assert (spec["type"], spec["loadBalancerSourceRanges"]) == ("LoadBalancer", ["10.20.0.0/16", "10.0.0.0/8"])
        assert pods.service(endpoint(), source_ranges=(), **told)["spec"]["type"] == "ClusterIP"

    def test_what_scales(self) -> None:
        one = endpoint(replicas={"min": "1", "max": "4"}, autoscaling={"metric": "kv_cache_usage", "target": "0.8"})
        found = pods.scaled_object(
            one,
            self.placed(one),
            namespace="default",
            cluster="c",
            server_address="https://host/workspaces/ws-1",
            region="us-west-2",
            authentication="auth",
        )
        (trigger,) = found["spec"]["triggers"]
        assert trigger["metricType"] == "Value"
        assert trigger["metadata"]["query"] == 'avg(vllm:kv_cache_usage_perc{cluster="c",endpoint="chat"})'
        assert trigger["metadata"]["ignoreNullValues"] == "false"
        assert not trigger["metadata"]["serverAddress"].endswith("/")
        assert found["spec"]["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat"}


def model_in(folder: Path) -> Path:
    """A model with its manifest."""
    (folder / "deep").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "deep/model-00001.safetensors").write_bytes(b"weights" * 1000)
    (folder / ".cache").mkdir()
    (folder / ".cache/lock").write_text("not a part")
    (folder / NAME).write_text(text(describe(folder)))
    return folder


class TestCheck:
    """The script that runs in containers, as they run it."""

    def run(self, folder: Path) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-I", "-S", str(VERIFY), str(folder)]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    def test_a_whole_model(self, tmp_path: Path) -> None:
        done = self.run(model_in(tmp_path / "m"))
        assert (done.returncode, done.stderr) == (0, "")
        assert "2 of 2 files are as the manifest says" in done.stdout

    def test_bytes_that_are_others(self, tmp_path: Path) -> None:
        folder = model_in(tmp_path / "m")
        (folder / "deep/model-00001.safetensors").write_bytes(b"WEIGHTS" * 1000)
        done = self.run(folder)
        assert done.returncode == 1
        assert "deep/model-00001.safetensors: sha256 " in done.stderr

    def test_a_file_that_is_short_and_one_that_is_gone(self, tmp_path: Path) -> None:
        folder = model_in(tmp_path / "m")
        (folder / "deep/model-00001.safetensors").write_bytes(b"weights")
        (folder / "config.json").unlink()
        done = self.run(folder)
        assert done.returncode == 1
        assert "7 bytes, and the manifest says 7000" in done.stderr
        assert "config.json: No such file or directory" in done.stderr

    def test_a_file_that_nobody_pushed(self, tmp_path: Path) -> None:
        """A server loads what it finds."""
        folder = model_in(tmp_path / "m")
        (folder / "deep/modeling_mine.py").write_text("import os")
        done = self.run(folder)
        assert done.returncode == 1
        assert "deep/modeling_mine.py: is not in the manifest" in done.stderr
        assert "2 of 2 files are as the manifest says" in done.stdout

    @pytest.mark.parametrize(
        "manifest", [None, "{", "[]", '{"format": 2, "files": {"a": {}}}', '{"format": 1, "files": {}}']
    )
    def test_no_manifest_to_check_by(self, tmp_path: Path, manifest: str | None) -> None:
        folder = model_in(tmp_path / "m")
        if manifest is None:
            (folder / NAME).unlink()
        else:
            (folder / NAME).write_text(manifest)
        done = self.run(folder)
        assert done.returncode == 1
        assert "no manifest to check by" in done.stderr
        assert "Traceback" not in done.stderr

    def test_a_manifest_that_points_elsewhere(self, tmp_path: Path) -> None:
        folder = model_in(tmp_path / "m")
        (folder / NAME).write_text('{"format": 1, "files": {"../x": {"sha256": "0", "bytes": 1}}}')
        done = self.run(folder)
        assert done.returncode == 1
        assert "../x: leaves the folder" in done.stderr

    def test_an_empty_folder_is_no_model(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="holds no files"):
            describe(tmp_path)


class TestPush:
    """Weights into the store; the real transfer is in tests/local."""

    def client(self, there: dict[str, int]) -> tuple[Any, Stubber]:
        s3 = boto3.client("s3", region_name="us-west-2", aws_access_key_id="x", aws_secret_access_key="x")
        stubber = Stubber(s3)
        listed = {"Contents": [{"Key": f"m/v1/{name}", "Size": size} for name, size in there.items()]}
        stubber.add_response("list_objects_v2", listed, {"Bucket": "b", "Prefix": "m/v1/"})
        return s3, stubber

    def sealed(self, manifest: str) -> tuple[Any, Stubber]:
        s3, stubber = self.client({NAME: 1})
        body = {"Body": StreamingBody(BytesIO(manifest.encode()), len(manifest))}
        stubber.add_response("get_object", body, {"Bucket": "b", "Key": f"m/v1/{NAME}"})
        return s3, stubber

    def test_the_same_files_are_there_already(self, tmp_path: Path) -> None:
        files = describe(model_in(tmp_path / "m"))
        s3, stubber = self.sealed(text(files))
        with stubber:
            assert copy(s3, "b", "m/v1/", tmp_path / "m", files) == []

    def test_no_version_is_written_twice(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        files = describe(model_in(tmp_path / "m"))
        s3, stubber = self.sealed(text(files | {"config.json": File(sha256="0", bytes=1)}))
        with stubber, pytest.raises(typer.Exit):
            copy(s3, "b", "m/v1/", tmp_path / "m", files)
        assert "is whole already and differs in config.json; versions do not change" in capsys.readouterr().err

    @pytest.mark.parametrize("broken", ["nothing", "folder"])
    def test_links_that_a_copy_would_lose(self, tmp_path: Path, broken: str) -> None:
        """A file that is linked is a file; a link to nothing is a download that broke off."""
        (tmp_path / "blobs").mkdir()
        (tmp_path / "blobs/1").write_text("x")
        (folder := tmp_path / "m").mkdir()
        (folder / "a.safetensors").symlink_to("../blobs/1")
        assert list(describe(folder)) == ["a.safetensors"]
        (folder / "b.bin").symlink_to("../blobs/2" if broken == "nothing" else "../blobs")
        with pytest.raises(ValueError, match=r"b.bin in .*: a link to nothing, or to a folder"):
            describe(folder)

    def test_what_is_not_of_the_folder(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        s3, stubber = self.client({"old.bin": 1})
        with stubber, pytest.raises(typer.Exit):
            copy(s3, "b", "m/v1/", tmp_path, describe(model_in(tmp_path / "m")))
        assert "old.bin; delete it, or push another version" in capsys.readouterr().err

    def test_one_that_was_broken_off_goes_on(self, tmp_path: Path) -> None:
        files = describe(folder := model_in(tmp_path / "m"))
        s3, stubber = self.client({name: told["bytes"] for name, told in files.items()})
        for name, told in files.items():
            metadata = {"Metadata": {"sha256": told["sha256"]}}
            stubber.add_response("head_object", metadata, {"Bucket": "b", "Key": f"m/v1/{name}"})
        last = {"Bucket": "b", "Key": f"m/v1/{NAME}", "Body": ANY, "ContentType": "application/json"}
        stubber.add_response("put_object", {}, last)
        with stubber:
            assert copy(s3, "b", "m/v1/", folder, files) == [NAME]
            stubber.assert_no_pending_responses()


class TestConstruct:
    """At the edge of the construct."""

    def cluster(self, stack: cdk.Stack, vpc: ec2.IVpc) -> eks.ICluster:
        provider = eks.KubectlProvider.from_kubectl_provider_attributes(
            stack, "Kubectl", service_token="arn:aws:lambda:x"
        )
        return eks.Cluster.from_cluster_attributes(stack, "Eks", cluster_name="c", vpc=vpc, kubectl_provider=provider)

    def test_the_role_reads_one_folder(self, stack: cdk.Stack, vpc: ec2.IVpc) -> None:
        store = ModelStore(stack, "Models")
        one = endpoint({"path": None, "store": "llama/v1"})
        made = ModelEndpoint(
            stack, "Chat", cluster=self.cluster(stack, vpc), endpoint=one, nodes=[NODES], model_store=store
        )
        template = Template.from_stack(stack)
        statements = [
            statement
            for policy in template.find_resources("AWS::IAM::Policy").values()
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        ]
        assert [one["Action"] for one in statements] == ["s3:GetObject", "s3:ListBucket"]
        assert json.dumps(statements[0]["Resource"]).endswith('"/llama/v1/*"]]}')
        assert statements[1]["Condition"] == {"StringLike": {"s3:prefix": ["llama/v1/*"]}}
        template.has_resource_properties("AWS::EKS::PodIdentityAssociation", {"ServiceAccount": "chat"})
        assert made.role is not None

    def test_what_it_needs_is_asked_for(self, stack: cdk.Stack, vpc: ec2.IVpc) -> None:
        cluster = self.cluster(stack, vpc)

        def made(id: str, one: Endpoint, **more: Any) -> None:
            ModelEndpoint(stack, id, cluster=cluster, endpoint=one, nodes=[NODES], **more)

        with pytest.raises(FindingsError, match=r"FMB-121.*/m, and the project has no Lustre"):
            made("A", endpoint())
        with pytest.raises(FindingsError, match=r"source_range: is required with load_balancer"):
            made("B", endpoint(load_balancer="true"), lustre_claim="fsx")
        scaled = endpoint(replicas={"min": "1", "max": "2"}, autoscaling={"target": "8"})
        with pytest.raises(FindingsError, match=r"FMB-135.*nobody writes it there"):
            made("C", scaled, lustre_claim="fsx")
        with pytest.raises(FindingsError, match=r"model: llama is not name/version"):
            ModelStore(stack, "Models").grant_read_model(iam.AccountRootPrincipal(), "llama")


NODES = ServedNodes("gpu", "p5en.48xlarge", 4, 16)


@pytest.mark.parametrize(
    ("example", "wrong", "right"),
    [
        ("serve-h100", r"  orchestrator: eks\n", "  orchestrator: hyperpod-slurm\n"),
        ("train-and-serve", r"training:\n(  .*\n)+", ""),
    ],
)
def test_one_mistake_is_one_finding(tmp_path: Path, example: str, wrong: str, right: str) -> None:
    """What the wrong orchestrator lacks, or a cluster that is missing, is not told as well."""
    text, times = re.subn(wrong, right, (ROOT / f"projects/{example}.yaml").read_text())
    assert times == 1
    file = tmp_path / "project.yaml"
    file.write_text(text)
    with pytest.raises(FindingsError) as error:
        Project.load(file)
    assert [one.rule for one in error.value.findings] == ["FMB-117"]
