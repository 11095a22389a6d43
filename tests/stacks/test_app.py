"""``app.py`` as the CDK CLI runs it: a process of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fmblocks.capacity import rules as capacity_rules
from fmblocks.cluster import rules as cluster_rules
from fmblocks.compute import rules as compute_rules
from fmblocks.findings import RULES, Severity
from fmblocks.governance import rules as governance_rules
from fmblocks.network import rules as network_rules
from fmblocks.project import PROJECT_ONLY
from fmblocks.serving import rules as serving_rules
from fmblocks.storage import rules as storage_rules
from fmblocks_stacks.app import UNBUILT
from tests.stacks.conftest import EXAMPLES

SMALL = 'name: my-project\naccount: "111122223333"\nregion: us-west-2\nnetwork: {availability_zones: [usw2-az2]}\n'


def run(root: Path, out: Path, context: dict[str, Any], *, around: tuple[str, ...] = (), **variables: str) -> Any:
    """Run app.py with a context, as the CLI does; give back the process."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CDK_", "AWS_"))}
    return subprocess.run(
        [*around, sys.executable, "-P", "app.py"],
        cwd=root,
        env={**kept, **variables, "CDK_OUTDIR": str(out), "CDK_CONTEXT_JSON": json.dumps(context)},
        capture_output=True,
        text=True,
        check=False,
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and file.name != "validation-report.json"  # it names the folder
    }


@pytest.mark.parametrize("example", EXAMPLES)
def test_two_synths_are_byte_identical(root: Path, tmp_path: Path, cdk_context: dict[str, Any], example: str) -> None:
    context = {**cdk_context, "project": f"projects/{example}"}
    # Another hash seed, another time zone, another day for whoever asks the environment.
    for name, seed in (("one", "1"), ("two", "2")):
        found = run(root, tmp_path / name, context, PYTHONHASHSEED=seed, TZ=f"UTC{seed}", SOURCE_DATE_EPOCH=seed * 9)
        assert found.returncode == 0, found.stderr
    one, two = contents(tmp_path / "one"), contents(tmp_path / "two")
    assert one.keys() == two.keys()
    assert [name for name in one if one[name] != two[name]] == []


def test_synth_needs_no_network(root: Path, tmp_path: Path, cdk_context: dict[str, Any]) -> None:
    ways = (("unshare", "--net"), ("unshare", "--map-root-user", "--net"))
    alone = next(way for way in ways if not subprocess.run([*way, "true"], capture_output=True, check=False).returncode)
    context = {**cdk_context, "project": "projects/slurm-p5en.yaml"}
    found = run(root, tmp_path, context, around=alone)
    assert found.returncode == 0, found.stderr
    assert "missing" not in json.loads((tmp_path / "manifest.json").read_text())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("name: [", "YAML syntax"),
        (SMALL + "name: other\n", "the key stands twice, first in line 1"),
        (SMALL + "storage: {lustre: {capacity_gib: lots}}\n", "lots is not a whole number"),
        (SMALL + "foo: 1\n", "foo: is an unknown key"),
        (SMALL.replace('"111122223333"', "1111"), "1111 takes exactly 12 digits"),
        (
            SMALL + "training: {node_groups: [{name: gpu, instance_type: p5em.48xlarge, count: 1}]}\n",
            "p5em.48xlarge is not an instance type of the catalogue; did you mean p5e.48xlarge",
        ),
        (SMALL.replace("usw2-az2", "use1-az1"), "use1-az1 is not a zone of region us-west-2"),
        (SMALL.replace("region: us-west-2\n", ""), "usw2-az2 can only be used with a region"),
        (SMALL.replace("[usw2-az2]", "[usw2-az2], cidr: 10.0.0.0/24"), "10.0.0.0/24 is too small"),
        (
            SMALL + "storage: {lustre: {capacity_gib: 1200, deployment_type: scratch_2, "
            "data_repository_associations: [{path: /a, bucket: My_Bucket}]}}\n",
            "My_Bucket is no bucket name",
        ),
        (None, "there is no such file"),
    ],
)
def test_a_wrong_project_ends_with_findings_and_nothing_written(
    root: Path, tmp_path: Path, cdk_context: dict[str, Any], text: str | None, said: str
) -> None:
    file, out = tmp_path / "project.yaml", tmp_path / "out"
    if text is not None:
        file.write_text(text)
    found = run(root, out, {**cdk_context, "project": str(file)})
    assert found.returncode == 1
    assert said in found.stderr
    assert "Traceback" not in found.stderr
    assert not out.exists()


def test_a_chart_that_is_not_there_is_refused_at_synth(root: Path, tmp_path: Path, cdk_context: dict[str, Any]) -> None:
    file, out = tmp_path / "project.yaml", tmp_path / "out"
    file.write_text(
        SMALL.replace("[usw2-az2]", "[usw2-az2, usw2-az3], primary_availability_zone: usw2-az2")
        + "training: {orchestrator: hyperpod-eks, node_groups: [{name: gpu, instance_type: p5.48xlarge, count: 1}]}\n"
    )
    context = {key: value for key, value in cdk_context.items() if key != "charts"}  # then they are beside the file
    found = run(root, out, {**context, "project": str(file)})
    assert found.returncode == 1
    assert "error [FMB-23] training.kubernetes.dependency_chart.path" in found.stderr
    assert "run `fmblocks chart pull FILE`" in found.stderr
    assert not out.exists()


def test_many_projects_become_stages(root: Path, tmp_path: Path, cdk_context: dict[str, Any]) -> None:
    for name in ("first", "second"):
        (tmp_path / f"{name}.yaml").write_text(SMALL.replace("my-project", name))
    out = tmp_path / "out"
    found = run(root, out, {**cdk_context, "projects": str(tmp_path / "*.yaml")})
    assert found.returncode == 0, found.stderr
    manifest = json.loads((out / "assembly-second" / "manifest.json").read_text())
    (stack,) = [one for one in manifest["artifacts"].values() if one["type"] == "aws:cloudformation:stack"]
    assert stack["displayName"] == "second/FoundationStack"
    assert stack["properties"]["stackName"] == "second-FoundationStack"


def test_projects_of_one_name_are_refused(root: Path, tmp_path: Path, cdk_context: dict[str, Any]) -> None:
    for name in ("first", "second"):
        (tmp_path / f"{name}.yaml").write_text(SMALL)
    found = run(root, tmp_path / "out", {**cdk_context, "projects": str(tmp_path / "*.yaml")})
    assert found.returncode == 1
    assert "my-project is the name of" in found.stderr
    found = run(root, tmp_path / "out", {**cdk_context, "projects": str(tmp_path / "*.yml")})
    assert "matches no file" in found.stderr


@pytest.fixture(scope="module")
def installed(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from what is committed and not, in a folder of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    built = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(built, cwd=root, check=True, capture_output=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    shutil.unpack_archive(wheel, folder / "installed", "zip")
    return folder / "installed"


def test_the_wheel_gives_the_same_templates(
    root: Path, tmp_path: Path, installed: Path, cdk_context: dict[str, Any]
) -> None:
    """Used in a folder with no checkout on the path."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(root / "app.py", elsewhere)
    shutil.copytree(root / "projects", elsewhere / "projects")
    context = {**cdk_context, "project": "projects/slurm-p5en.yaml"}
    from_wheel = run(elsewhere, tmp_path / "wheel", context, PYTHONPATH=str(installed))
    assert from_wheel.returncode == 0, from_wheel.stderr
    from_checkout = run(root, tmp_path / "checkout", context)
    assert from_checkout.returncode == 0, from_checkout.stderr
    for stack in ("FoundationStack", "TrainingStack"):
        name = f"{stack}.template.json"
        assert (tmp_path / "wheel" / name).read_bytes() == (tmp_path / "checkout" / name).read_bytes()

    where = "import fmblocks, fmblocks_stacks, fmblocks_lambda; print(fmblocks.__file__, fmblocks_lambda.__file__)"
    shown = subprocess.run(
        [sys.executable, "-P", "-c", where],
        cwd=elsewhere,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(root) not in shown.stdout


def test_the_readme_app_synthesizes(root: Path, tmp_path: Path, installed: Path, cdk_context: dict[str, Any]) -> None:
    """The app of the README, which passes its own VPC, bucket, key and role, run as it stands there, on the wheel."""
    readme = (root / "README.md").read_text()
    (app,) = [code for code in re.findall(r"```python\n(.*?)```", readme, re.DOTALL) if "app.synth()" in code]
    # What it imports must be the wheel's, or the test is about the checkout.
    (tmp_path / "app.py").write_text(f"{app}\nassert fm.__file__.startswith({str(installed)!r}), fm.__file__\n")
    found = run(tmp_path, tmp_path / "out", {**cdk_context}, PYTHONPATH=str(installed))
    assert found.returncode == 0, found.stderr
    template = json.loads(next((tmp_path / "out").glob("*.template.json")).read_text())
    kinds = [resource["Type"] for resource in template["Resources"].values()]
    assert kinds.count("AWS::SageMaker::Cluster") == 1
    assert kinds.count("AWS::FSx::FileSystem") == 1


def test_the_app_of_hyperpod_with_eks_synthesizes(
    root: Path, tmp_path: Path, installed: Path, cdk_context: dict[str, Any]
) -> None:
    """The same of docs/hyperpod-eks.md: no warning is left, and the nodes share a group with the control plane."""
    page = (root / "docs/hyperpod-eks.md").read_text()
    (app,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "app.py").write_text(app)
    shutil.copytree(root / "tests/charts", tmp_path, dirs_exist_ok=True)
    found = run(tmp_path, tmp_path / "out", {**cdk_context}, PYTHONPATH=str(installed))
    assert found.returncode == 0, found.stderr
    assert "[FMB" not in found.stderr, found.stderr
    made = json.loads((tmp_path / "out/Mine.template.json").read_text())["Resources"].values()
    (control,) = (one["Properties"] for one in made if one["Type"] == "AWS::EKS::Cluster")
    (nodes,) = (one["Properties"] for one in made if one["Type"] == "AWS::SageMaker::Cluster")
    (shared,) = nodes["VpcConfig"]["SecurityGroupIds"]
    assert shared in control["ResourcesVpcConfig"]["SecurityGroupIds"]
    charts = [one for one in made if one["Type"] == "Custom::AWSCDK-EKS-HelmChart"]
    assert any("hyperpod" in json.dumps(one["Properties"]).lower() for one in charts)


def test_the_app_of_serving_synthesizes(
    root: Path, tmp_path: Path, installed: Path, cdk_context: dict[str, Any]
) -> None:
    """The same of docs/serving.md."""
    (app,) = re.findall(r"```python\n(.*?)```", (root / "docs/serving.md").read_text(), re.DOTALL)
    (tmp_path / "app.py").write_text(app)
    found = run(tmp_path, tmp_path / "out", {**cdk_context}, PYTHONPATH=str(installed))
    assert found.returncode == 0, found.stderr
    assert "[FMB" not in found.stderr, found.stderr
    made = (tmp_path / "out/Mine.template.json").read_text()
    assert "llama-70b/v1/*" in made


def test_every_warning_of_what_is_built_is_told_at_synth_too() -> None:
    """By the construct it is about, or beside FoundationStack: whoever deploys does not run `validate`."""
    at_constructs = {
        *cluster_rules.CLUSTER_CONSTRUCT,
        *cluster_rules.GROUP_CONSTRUCT,
        *cluster_rules.CLIENT_CONSTRUCT,
        *cluster_rules.EKS_CONSTRUCT,
        *cluster_rules.OWN_NODES_CONSTRUCT,
        *cluster_rules.PCS_CONSTRUCT,
        *cluster_rules.PCS_TEMPLATE_CONSTRUCT,
        *compute_rules.HYPERPOD_CONSTRUCT,
        *compute_rules.TEMPLATE_CONSTRUCT,
        *compute_rules.FLEET_CONSTRUCT,
        *compute_rules.INTERFACES,
        *capacity_rules.TEMPLATE_CONSTRUCT,
        *capacity_rules.FLEET_CONSTRUCT,
        *network_rules.RULES,
        *storage_rules.LUSTRE_CONSTRUCT,
        *storage_rules.ASSOCIATION_CONSTRUCT,
        *serving_rules.ENDPOINT,
    }
    reached = {
        *cluster_rules.GROUP,
        *cluster_rules.HYPERPOD,
        *cluster_rules.SLURM,
        *cluster_rules.EC2_GROUP,
        *cluster_rules.TRAINING,
        *cluster_rules.WHOLE,
        *cluster_rules.PROJECT,
        *capacity_rules.EVERY_GROUP,
        *capacity_rules.EC2_GROUP,
        *capacity_rules.TRAINING,
        *compute_rules.EVERY_GROUP,
        *compute_rules.EC2_GROUP,
        *compute_rules.TRAINING,
        *network_rules.RULES,
        *storage_rules.RULES,
        *storage_rules.LUSTRE_PROJECT,
        *storage_rules.CLIENTS,
        *governance_rules.RULES,
        *serving_rules.INFERENCE,
        *serving_rules.ENDPOINTS,
        *serving_rules.ENDPOINT,
    }
    warned = {id for id in reached if RULES[id].severity is Severity.WARNING}
    of_later = {"HP-28"}  # of HyperPod with EKS
    assert warned - at_constructs - PROJECT_ONLY - set(UNBUILT) - of_later == set()


def test_a_kubectl_that_is_not_installed_is_told_without_a_traceback(
    root: Path, tmp_path: Path, cdk_context: dict[str, Any]
) -> None:
    """`validate` cannot know it: which packages are there is the machine's matter."""
    old = tmp_path / "old.yaml"
    old.write_text((root / "projects" / "eks-odcr.yaml").read_text().replace('version: "1.35"', 'version: "1.31"'))
    found = run(root, tmp_path / "out", {**cdk_context, "project": str(old)})
    assert found.returncode == 1
    assert "kubernetes_version: kubectl 1.31 is not installed" in found.stderr
    assert "Traceback" not in found.stderr
    assert not (tmp_path / "out" / "manifest.json").exists()
