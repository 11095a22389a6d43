"""Projects synthesized in this process."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from fmblocks.project import Project
from fmblocks_stacks.assembly import build
from tests.conftest import CHARTS

Template = dict[str, Any]
EXAMPLES = (
    "trial-g6.yaml", "slurm-p5en.yaml", "ec2-odcr.yaml", "ec2-capacity-block.yaml", "closed-p5.yaml", "eks-odcr.yaml",
    "eks-rl.yaml", "hyperpod-eks-b200.yaml", "pcs-p5en.yaml", "serve-h100.yaml", "serve-disaggregated.yaml",
    "train-and-serve.yaml",
)  # fmt: skip
# Forms a project can have that the examples do not show: one line each, on top of the smallest project.
FORMS = {
    "zone names": "region: us-west-2\nnetwork: {availability_zones: [us-west-2a], cidr: 10.0.0.0/20}\n",
    "a region without an account": "region: us-west-2\nnetwork: {availability_zones: [usw2-az2]}\n",
    "two zones of any region": "network: {availability_zones: 2, nat_gateways: 2}\n",
    "a closed network": "region: us-west-2\nnetwork: {availability_zones: [usw2-az2], nat_gateways: 0}\n",
    "endpoints in an open network": "network: {availability_zones: 2, endpoints: {services: [ecr.api, ecr.dkr], "
    "availability_zones: 2}}\n",
    "continuous provisioning": "network: {availability_zones: 1}\n",
    "buckets that move what is old": "network: {availability_zones: 1}\nstorage:\n  buckets: "
    "{noncurrent_version_days: 30, intelligent_tiering_after_days: 0}\n  lustre:\n    capacity_gib: 1200\n"
    "    throughput_mbps_per_tib: 125\n    data_repository_associations: [{path: /c, auto_export: [new]}]\n",
    "hard disks with backups": """\
network: {availability_zones: 1}
storage:
  lustre:
    deployment_type: persistent_1
    storage_type: hdd
    capacity_gib: 6000
    throughput_mbps_per_tib: 12
    drive_cache_type: read
    data_compression_type: lz4
    automatic_backup_retention_days: 7
    daily_automatic_backup_start_time: "05:00"
    copy_tags_to_backups: true
    weekly_maintenance_start_time: "7:06:00"
""",
    "Kubernetes in any Region": """\
network: {availability_zones: 2}
storage: {lustre: {deployment_type: persistent_2, capacity_gib: 1200, throughput_mbps_per_tib: 125}}
training:
  orchestrator: eks
  kubernetes: {version: "1.36", kueue: true}
  node_groups:
    - {name: gpu, instance_type: g6.12xlarge, count: 2, placement: cluster}
    - {name: spare, instance_type: p5.48xlarge, count: 4, capacity: spot, provisioned_by: karpenter}
    - {name: trn, instance_type: trn2.48xlarge, count: 1, image: ami-0123456789abcdef0}
access: {admins: ["arn:aws:iam::111122223333:role/Platform"]}
""",
    "Kubernetes in a closed network": """\
region: us-west-2
network:
  availability_zones: [usw2-az1, usw2-az2]
  primary_availability_zone: usw2-az1
  nat_gateways: 0
  endpoints:
    services: [
      aps-workspaces, ec2, ecr.api, ecr.dkr, eks, eks-auth, fsx, kms, lambda, logs, monitoring, sagemaker.api, ssm,
      ssmmessages, sts,
    ]
storage: {lustre: {deployment_type: persistent_2, capacity_gib: 1200, throughput_mbps_per_tib: 125}}
training:
  orchestrator: eks
  kubernetes:
    image_registry: 111122223333.dkr.ecr.us-west-2.amazonaws.com/mirror
    chart_registry: oci://111122223333.dkr.ecr.us-west-2.amazonaws.com/charts
    kube_ray: true
  node_groups: [{name: gpu, instance_type: p5.48xlarge, count: 2}]
access: {admins: ["arn:aws:iam::111122223333:role/Platform"]}
""",
    "PCS in any Region": """\
network: {availability_zones: 1}
storage: {lustre: {deployment_type: persistent_2, capacity_gib: 1200, throughput_mbps_per_tib: 125}}
training:
  orchestrator: pcs
  slurm: {version: "25.05", rest_api: true, accounting: false, scale_down_idle_seconds: 300}
  node_groups: [{name: gpu, instance_type: p5.48xlarge, count: 40, capacity: spot, min_count: 0}]
""",
    "intelligent tiering": """\
network: {availability_zones: 1}
storage:
  lustre:
    storage_type: intelligent_tiering
    throughput_capacity_mbps: 4000
    read_cache: {sizing_mode: user_provisioned, size_gib: 64}
    metadata: {mode: user_provisioned, iops: 6000}
    efa_enabled: true
""",
}
TRAINING = """\
storage: {lustre: {deployment_type: persistent_2, capacity_gib: 1200, throughput_mbps_per_tib: 125}}
training:
  node_groups:
    - {name: controller, role: controller, instance_type: m7i.xlarge, count: 1}
    - {name: gpu, instance_type: g6.2xlarge, count: 2}
"""


@dataclass(frozen=True)
class Synthesized:
    """A cloud assembly."""

    app: cdk.App
    folder: Path
    foundation: Template
    training: Template
    capacity: Template | None
    inference: Template

    @property
    def templates(self) -> dict[str, Template]:
        """By construct id."""
        found = {"FoundationStack": self.foundation, "CapacityStack": self.capacity}
        found |= {"TrainingStack": self.training, "InferenceStack": self.inference}
        return {name: one for name, one in found.items() if one is not None and one["Resources"]}


Synthesize = Callable[[Path], Synthesized]


@pytest.fixture(scope="session")
def synthesize(cdk_context: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Synthesize:
    """Synthesizes a project file with the flags of cdk.json."""

    @functools.cache
    def once(file: Path) -> Synthesized:
        folder = tmp_path_factory.mktemp("assembly")
        app = cdk.App(context=cdk_context, outdir=str(folder))
        build(app, [Project.load(file, charts=CHARTS)])
        app.synth()
        names = ("FoundationStack", "TrainingStack", "CapacityStack", "InferenceStack")
        found = {name: _template(folder, name) for name in names}
        capacity = found["CapacityStack"] if found["CapacityStack"]["Resources"] else None
        training, inference = found["TrainingStack"], found["InferenceStack"]
        return Synthesized(app, folder, found["FoundationStack"], training, capacity, inference)

    return once


def _template(folder: Path, stack: str) -> Template:
    file = folder / f"{stack}.template.json"
    found: Template = json.loads(file.read_text()) if file.exists() else {"Resources": {}}
    return found


@pytest.fixture(scope="session")
def form(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Writes a project of a form that the examples do not show; the same text gives the same file."""

    @functools.cache
    def write(text: str) -> Path:
        file = tmp_path_factory.mktemp("project") / "project.yaml"
        rest = TRAINING[TRAINING.index("training:") :] if "storage:" in text else TRAINING
        if "training:" in text:
            rest = ""
        if text == FORMS["continuous provisioning"]:
            rest = rest.replace("training:", "training:\n  node_provisioning: continuous")
        file.write_text(f"name: my-project\n{text}{rest}")
        return file

    return write


@pytest.fixture(scope="module", params=[*EXAMPLES, *FORMS])
def synthesized(
    request: pytest.FixtureRequest, synthesize: Synthesize, form: Callable[[str], Path], root: Path
) -> Synthesized:
    """Every example and every form."""
    name = request.param
    return synthesize(form(FORMS[name]) if name in FORMS else root / "projects" / name)


@pytest.fixture(scope="module")
def large(synthesize: Synthesize, root: Path) -> Synthesized:
    """The reference project of 16 × p5en."""
    return synthesize(root / "projects" / "slurm-p5en.yaml")


def lustre_of(template: Template) -> dict[str, Any]:
    """The Lustre file system of a template."""
    systems = of_type(template, "AWS::FSx::FileSystem").values()
    (found,) = (one for one in systems if one["Properties"]["FileSystemType"] == "LUSTRE")
    return dict(found)


def of_type(template: Template, resource_type: str) -> dict[str, Any]:
    """The resources of a type, by logical id."""
    return {id: found for id, found in template["Resources"].items() if found["Type"] == resource_type}
