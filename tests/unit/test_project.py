"""Project files: what is accepted, and what is said about the rest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fmblocks.findings import FindingsError
from fmblocks.project import Project, lustre_addresses, primary_subnet_size, schema

Write = Callable[[str], Path]

SMALLEST = """\
name: my-project
account: "111122223333"
region: us-west-2
network: {availability_zones: [usw2-az2]}
"""
LUSTRE = "storage: {lustre: {deployment_type: persistent_2, capacity_gib: 1200, throughput_mbps_per_tib: 125}}\n"
GROUPS = """\
training:
  node_groups:
    - {name: controller, role: controller, instance_type: m7i.xlarge, count: 1}
    - {name: gpu, instance_type: ml.p5.48xlarge, count: 2}
"""


def said(project_file: Write, text: str) -> str:
    """Everything that is said about a file: errors, else warnings."""
    try:
        return "\n".join(str(finding) for finding in Project.load(project_file(text)).findings)
    except FindingsError as error:
        return str(error)


def test_the_smallest_project_has_no_finding(project_file: Write) -> None:
    loaded = Project.load(project_file(SMALLEST))
    assert loaded.findings == []
    assert loaded.project.network.cidr == "10.20.0.0/16"
    assert loaded.project.network.primary == "usw2-az2"


def test_a_whole_project_has_no_finding(project_file: Write) -> None:
    project = Project.load(project_file(SMALLEST + LUSTRE + GROUPS)).project
    assert project.training is not None
    assert project.training.node_groups[1].instance_type == "p5.48xlarge"


def test_words_are_read_in_any_case_and_short_forms_are_read(project_file: Write) -> None:
    text = LUSTRE.replace("persistent_2", "PERSISTENT_2") + GROUPS.replace("count: 2", "count: 2, capacity: spot")
    project = Project.load(project_file(SMALLEST + text)).project
    assert project.training is not None
    assert project.training.node_groups[1].capacity.mode == "spot"


def test_zones_are_a_set(project_file: Write) -> None:
    text = SMALLEST.replace("[usw2-az2]", "[usw2-az2, usw2-az1], primary_availability_zone: usw2-az2")
    other = SMALLEST.replace("[usw2-az2]", "[usw2-az1, usw2-az2], primary_availability_zone: usw2-az2")
    assert Project.load(project_file(text)).project == Project.load(project_file(other)).project


def test_slashes_more_or_less_are_the_same_link(project_file: Write) -> None:
    def link(path: str, prefix: str) -> Project:
        links = f"data_repository_associations: [{{path: {path}, bucket: data, prefix: {prefix}}}]"
        return Project.load(project_file(SMALLEST + LUSTRE.replace("capacity", links + ", capacity"))).project

    assert link("/data", "v1") == link("/data/", "v1/") == link("/data//", "/v1/")


@pytest.mark.parametrize("zones", ["1", "2"])
def test_without_a_region_zones_are_counted_with_one_warning(project_file: Write, zones: str) -> None:
    loaded = Project.load(project_file(f"name: my-project\nnetwork: {{availability_zones: {zones}}}\n"))
    assert [finding.rule for finding in loaded.findings] == ["FMB-11"]
    assert loaded.project.network.primary == "1"


BAD_SHAPES = [
    ("name: [", "YAML syntax"),
    (SMALLEST.replace("my-project", "My_Project"), ":1: error [SHAPE] name: My_Project takes 3 to 25 small letters"),
    (SMALLEST.replace("my-project", "ab"), "name: ab takes 3 to 25"),
    (SMALLEST.replace("my-project", "a" * 26), "takes 3 to 25"),
    (SMALLEST.replace("my-project", "my--project"), "single inner hyphens"),
    (
        SMALLEST.replace('"111122223333"', "11112222333"),
        ":2: error [SHAPE] account: 11112222333 takes exactly 12 digits",
    ),
    (SMALLEST.replace('"111122223333"', "1111-2222-3333"), "takes exactly 12 digits"),
    (SMALLEST.replace('"111122223333"', "１１１１２２２２３３３３"), "takes exactly 12 digits"),
    (SMALLEST.replace("region", "regoin"), ":3: error [SHAPE] regoin: is an unknown key; did you mean region?"),
    (SMALLEST.replace("availability_zones", "azs"), "network.azs: cannot be used here; the key is availability_zones"),
    (SMALLEST.replace("network: {availability_zones: [usw2-az2]}", ""), "network: is required; add network:"),
    (SMALLEST.replace("[usw2-az2]", "[usw2-az2, usw2-az2]"), "usw2-az2 is named twice"),
    (SMALLEST.replace("[usw2-az2]", "usw2-az2"), "takes a list of zone ids or names"),
    (SMALLEST.replace("[usw2-az2]", "[]"), "takes a list of zone ids or names"),
    (SMALLEST.replace("[usw2-az2]", "3"), "takes a count of 1 or 2; for more, name region and the zones"),
    (
        SMALLEST.replace("[usw2-az2]", "[usw2-az2], nat_gateways: 0, endpoints: [sagemaker]"),
        "network.endpoints.services: sagemaker is no endpoint's name; write sagemaker.api",
    ),
    (SMALLEST.replace("[usw2-az2]", "[usw2-az2], nat_gateways: true"), "true is not a whole number"),
    (SMALLEST.replace("[usw2-az2]", "[usw2-az2], subnets: {usw2-az2: {privat: x}}"), "did you mean private?"),
    (SMALLEST + "tags: {a: true}\n", "tags.a: true is not text; write text; put quotes around"),
    (SMALLEST + "tags: x\n", "tags: x is not a mapping"),
    (SMALLEST + "inference: {slurm: {}, models: [a]}\n", "inference.models: cannot be used here; the key is endpoints"),
    (SMALLEST + LUSTRE.replace("1200", "lots"), "storage.lustre.capacity_gib: lots is not a whole number"),
    (SMALLEST + LUSTRE.replace("1200", "1200.5"), "storage.lustre.capacity_gib: 1200.5 is not a whole number"),
    (
        SMALLEST + LUSTRE.replace("capacity", "data_compression_type: zip, capacity"),
        "[FSX-21] storage.lustre.data_compression_type: zip is not one of none, lz4",
    ),
    (
        SMALLEST + LUSTRE.replace("capacity", "import_path: s3://a, capacity"),
        "[FSX-04] storage.lustre.import_path: cannot be used here; persistent_2 refuses it",
    ),
    (
        SMALLEST + LUSTRE.replace("capacity", "root_squash: '1:1', capacity"),
        "storage.lustre.root_squash: cannot be used here; CloudFormation cannot set it",
    ),
    (
        SMALLEST.replace(
            "]}", "], cidr: 10.0.0.0/20, subnets: {usw2-az2: {private: 10.0.0.0/28, public: 10.0.1.0/28}}}"
        )
        + LUSTRE.replace("1200", "26400"),
        "[FSX-27] storage.lustre.capacity_gib: 12 addresses of its servers do not fit the 11",
    ),
    (SMALLEST + LUSTRE.replace("1200", "null"), "[FSX-02] storage.lustre.capacity_gib: is required with ssd"),
    (SMALLEST + LUSTRE.replace("_2", "_3"), "did you mean persistent_2?"),
    (SMALLEST + LUSTRE.replace("capacity", "efa_enabled: maybe, capacity"), "maybe is neither true nor false"),
    (SMALLEST + LUSTRE.replace("capacity", "import_path: s3://x, capacity"), "write data_repository_associations"),
    (
        SMALLEST
        + LUSTRE.replace("capacity", "data_repository_associations: [{path: /a, auto_import: [newer]}], capacity"),
        "auto_import[0]: newer is not one of new, changed, deleted; did you mean new?",
    ),
    (SMALLEST + GROUPS.replace("count: 2", "count: 2, subnet: public"), "nodes always stand in private subnets"),
    (SMALLEST + GROUPS.replace("count: 2", "count: 2, associate_public_ip: true"), "get no public address"),
    (
        SMALLEST + GROUPS.replace("count: 2", "count: -1"),
        "training.node_groups[1].count: -1 is not between 0 and the 6758",
    ),
    (SMALLEST + GROUPS.replace("name: gpu", "name: GPU"), "training.node_groups[1].name: GPU takes 3 to 25"),
    (SMALLEST + GROUPS.replace("training:", "training:\n  orchestrator: slrum"), "is not one of hyperpod-slurm"),
    (
        SMALLEST + GROUPS.replace("training:", "training:\n  orchestrator: eks"),
        "network.availability_zones: 1 zones: eks needs two",
    ),
    (
        SMALLEST + LUSTRE.replace("capacity", "storage_type: HDD, capacity"),
        "[FSX-03] storage.lustre.storage_type: hdd is not sold for persistent_2",
    ),
    (SMALLEST + "training:\n", "training: has nothing below it; write its keys, or leave it out"),
    (SMALLEST + "storage: {lustre: }\n", "storage.lustre: has nothing below it"),
    (
        SMALLEST + GROUPS + "  lifecycle_scripts: {path: /etc, on_init_complete: passwd}\n",
        "/etc is not below the project",
    ),
    (SMALLEST.replace("us-west-2", "US-WEST-2"), "US-WEST-2 is not an AWS region; did you mean us-west-2"),
    (SMALLEST.replace("my-project", "e\x1b[31m"), "YAML syntax"),
    (SMALLEST.replace("my-project", '"\\e[31mred"'), "name: \\x1b[31mred takes 3 to 25"),
    (SMALLEST.replace("my-project", "a" * 5000), "…"),
    (SMALLEST + GROUPS.replace("ml.p5.48xlarge", "ml.ml.p5.48xlarge"), "ml.p5.48xlarge is not an instance type"),
]


@pytest.mark.parametrize(("text", "expected"), BAD_SHAPES)
def test_wrong_shapes_are_said(project_file: Write, text: str, expected: str) -> None:
    assert expected in said(project_file, text)


def test_all_shape_errors_are_said_at_once_in_order(project_file: Write) -> None:
    text = "name: X\naccount: 1\nnetwork: {availability_zones: 9}\nfoo: 1\n"
    with pytest.raises(FindingsError) as caught:
        Project.load(project_file(text))
    assert [(finding.line, finding.path) for finding in caught.value.findings] == [
        (1, "name"),
        (2, "account"),
        (3, "network.availability_zones"),
        (4, "foo"),
    ]


def test_empty_later_keys_ask_for_nothing(project_file: Write) -> None:
    assert said(project_file, SMALLEST + "teams: []\ncatalog: []\nsuppress: []\nfoundation: []\n") == ""


def test_scripts_start_from_the_project_file(project_file: Write, tmp_path: Path) -> None:
    text = SMALLEST + GROUPS + "  lifecycle_scripts: {path: scripts, on_init_complete: setup.sh}\n"
    assert "[HP-08] training.lifecycle_scripts.path" in said(project_file, text)
    (tmp_path / "scripts").mkdir()
    assert "setup.sh is not a file" in said(project_file, text)
    outside = text.replace("setup.sh", "../project.yaml")
    assert "../project.yaml lies outside" in said(project_file, outside)
    (tmp_path / "scripts" / "setup.sh").write_text("#!/bin/sh\n")
    assert said(project_file, text) == ""


@pytest.mark.parametrize("file", ["trial-g6.yaml", "slurm-p5en.yaml"])
def test_examples_have_no_error(root: Path, file: str) -> None:
    findings = Project.load(root / "projects" / file).findings
    assert [finding.rule for finding in findings] == (["FMB-11"] if file == "trial-g6.yaml" else ["HP-12"])


def test_a_rule_can_be_suppressed_with_a_reason(project_file: Write) -> None:
    wrong = SMALLEST + LUSTRE.replace("1200", "5000")
    assert "[FSX-02]" in said(project_file, wrong)
    reason = "suppress: [{rule: FSX-02, reason: agreed with AWS}]\n"
    loaded = Project.load(project_file(wrong + reason))
    assert loaded.findings == []
    assert loaded.project.suppressed == {"FSX-02"}
    idle = Project.load(project_file(SMALLEST + reason)).findings
    assert [str(finding).split(": ", 1)[1] for finding in idle] == [
        "warning [FMB-22] suppress[0]: FSX-02 has no finding here; leave the suppression out"
    ]
    assert "suppress[0].reason: is required" in said(project_file, SMALLEST + "suppress: [{rule: FSX-02}]\n")
    assert "FSX-99 is no id of the rule book" in said(
        project_file, SMALLEST + "suppress: [{rule: FSX-99, reason: x}]\n"
    )


def test_a_new_type_needs_no_release(project_file: Write) -> None:
    wrong = SMALLEST + GROUPS.replace("ml.p5.48xlarge", "p9.48xlarge")
    assert "did you mean" in said(project_file, wrong)
    assert "p9.48xlarge is not sold for HyperPod" in said(project_file, wrong + "catalog: [{name: ml.p9.48xlarge}]\n")
    assert said(project_file, wrong + "catalog: [{name: p9.48xlarge, hyperpod: true}]\n") == ""


BLOCKS = """\
training:
  orchestrator: ec2
  node_groups:
    - name: gpu
      instance_type: p5.48xlarge
      count: 8
      placement: cluster
      efa: {count: 33}
      capacity: {mode: capacity_block, capacity_reservation_ids: [cr-1], end: 2026-03-10, create: {start: x}}
"""


def test_every_orchestrator_has_its_findings(project_file: Write) -> None:
    shapes = said(project_file, SMALLEST + BLOCKS)
    assert "capacity.capacity_reservation_ids: cannot be used here; a group takes one reservation" in shapes
    assert "capacity.end: 2026-03-10 takes a time with its zone" in shapes
    assert "capacity.create.start: cannot be used here; CloudFormation cannot create future-dated" in shapes
    right = BLOCKS.replace(
        "capacity_reservation_ids: [cr-1], end: 2026-03-10, create: {start: x}", "end: 2026-03-10T11:30:00Z"
    )
    found = said(project_file, SMALLEST + right)
    for id in ("X-01", "EFA-02", "CB-06"):
        assert f"[{id}]" in found
    plain = GROUPS.replace("training:", "training:\n  orchestrator: hyperpod-eks").replace("role: controller, ", "")
    two = SMALLEST.replace("[usw2-az2]", "[usw2-az2, usw2-az3], primary_availability_zone: usw2-az2")
    loaded = Project.load(project_file(two + plain))
    assert [finding.rule for finding in loaded.findings] == ["FMB-23", "FMB-80"]


def test_the_schema_is_json_and_knows_every_key() -> None:
    text = json.loads(schema())
    assert set(text["properties"]) == set(Project.model_fields)
    assert text["additionalProperties"] is False


EXISTING_VPC = """\
network:
  vpc:
    id: vpc-0123456789abcdef0
    cidr: 10.0.0.0/16
    private_subnets:
      - {id: subnet-0123456789abcdef0, availability_zone: usw2-az1, cidr: 10.0.0.0/24, route_table_id: rtb-0123456789abcdef0}
      - {id: subnet-0123456789abcdef1, availability_zone: usw2-az2, cidr: 10.0.16.0/20, route_table_id: rtb-0123456789abcdef1}
  primary_availability_zone: usw2-az2
"""
EXISTING_LUSTRE = """\
storage:
  lustre:
    existing:
      file_system_id: fs-0123456789abcdef0
      dns_name: fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com
      mount_name: abcd1234
      security_group_id: sg-0123456789abcdef1
      availability_zone: usw2-az2
"""
HEAD = "name: my-project\nregion: us-west-2\n"


def test_an_existing_vpc_and_file_system_have_no_finding(project_file: Write) -> None:
    project = Project.load(project_file(HEAD + EXISTING_VPC + EXISTING_LUSTRE + GROUPS)).project
    assert (project.network.zones, project.network.primary) == (("usw2-az1", "usw2-az2"), "usw2-az2")
    assert project.network.ipv4_range == "10.0.0.0/16"
    assert primary_subnet_size(project.network) == 4096
    assert lustre_addresses(project.storage.lustre) == 0


@pytest.mark.parametrize(
    ("text", "said_of_it"),
    [
        (
            HEAD + "network: {primary_availability_zone: usw2-az1}\n",
            "network.availability_zones: names no zone; name one",
        ),
        (HEAD + EXISTING_VPC + "  nat_gateways: 1\n", "network.nat_gateways: says how a VPC is made"),
        (HEAD + EXISTING_VPC.replace("usw2-az1", "use1-az1"), "network.vpc.private_subnets: use1-az1 is not a zone of"),
        (HEAD + EXISTING_VPC.replace("usw2-az1", "usw2-az2"), "network.vpc.private_subnets: usw2-az2 is named twice"),
        (
            HEAD + EXISTING_VPC.replace("  primary_availability_zone: usw2-az2\n", ""),
            "network.primary_availability_zone: is not given, and usw2-az1, usw2-az2 are 2 zones",
        ),
        (
            HEAD + EXISTING_VPC.replace("cidr: 10.0.0.0/16", "cidr: 10.0.0.0/8"),
            "network.vpc.cidr: 10.0.0.0/8 is larger",
        ),
        (HEAD + "network: {vpc_id: vpc-1, availability_zones: [usw2-az1]}\n", "write vpc: {id, cidr, private_subnets"),
        (
            HEAD + EXISTING_VPC + EXISTING_LUSTRE.replace("availability_zone: usw2-az2", "availability_zone: usw2-az1"),
            "error [FSX-26] storage.lustre.existing.availability_zone: stands in usw2-az1, the nodes in usw2-az2",
        ),
        (
            HEAD + EXISTING_VPC + EXISTING_LUSTRE + "    capacity_gib: 1200\n",
            "storage.lustre.capacity_gib: says how a file",
        ),
        (SMALLEST + EXISTING_LUSTRE, "stands in a VPC that is there already, and the project makes another one"),
        (
            HEAD + EXISTING_VPC.replace("usw2-az2\n", "usw2-az1\n") + LUSTRE.replace("1200", "1202400"),
            "502 addresses of its servers do not fit the 251 of the subnet",
        ),
    ],
)
def test_what_is_said_of_an_existing_vpc(project_file: Write, text: str, said_of_it: str) -> None:
    assert said_of_it in said(project_file, text)
