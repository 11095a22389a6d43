"""What the guard says of changes: each create-only property, and each way to lose what is deployed."""

from __future__ import annotations

import copy
import gzip
import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore
import pytest
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER
from typer.testing import CliRunner

from fmblocks.cli.main import app
from fmblocks.findings import Finding, Severity
from fmblocks.guard import judgement
from fmblocks.guard.judgement import Input, StackChange, judge, unknown_allowances
from fmblocks.guard.registry import NOT_UPDATABLE, always, sometimes
from fmblocks.guard.templates import Action, Change, Replacement, compare, follow, inputs, unseen

FILE_SYSTEM = "AWS::FSx::FileSystem"


def schema(resource_type: str) -> dict[str, Any]:
    found: dict[str, Any] = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", resource_type).schema
    return found


def template(**resources: dict[str, Any]) -> dict[str, Any]:
    return {"Resources": copy.deepcopy(resources)}


def resource(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": kind, "Properties": properties}


def step(old: dict[str, Any], new: dict[str, Any]) -> list[Finding]:
    return judge([StackChange("Stack", old, new, tuple(compare(old, new)))])


def texts(findings: list[Finding]) -> str:
    return "\n".join(str(finding) for finding in findings)


def test_the_table_of_properties_is_current(root: Path) -> None:
    """`make docs` writes it from the registry's schemas."""
    page = runpy.run_path(str(root / "docs" / "generate.py"))
    assert page["CREATE_ONLY"].read_text() == page["create_only_table"]()


def test_what_the_registry_omits_is_what_fsx_cannot_update() -> None:
    path = next((Path(botocore.__file__).parent / "data" / "fsx").glob("*/service-2.json.gz"))
    shapes = json.loads(gzip.decompress(path.read_bytes()))["shapes"]
    definitions = schema(FILE_SYSTEM)["definitions"]
    expected = {"StorageType"}
    for name in ("LustreConfiguration", "OpenZFSConfiguration"):
        known = set(shapes[f"UpdateFileSystem{name}"]["members"])
        # Route tables are added and removed by two keys of their own.
        known |= {"RouteTableIds"} if "AddRouteTableIds" in known else set()
        # CloudFormation's own: they are told at deletion.
        known |= {"Options"} - set(shapes[f"CreateFileSystem{name}"]["members"])
        expected |= {f"{name}/{key}" for key in set(definitions[name]["properties"]) - known}
    assert set(NOT_UPDATABLE[FILE_SYSTEM]) == expected
    assert "StorageType" in shapes["UpdateFileSystemRequest"]["members"]  # for FSx for Windows, from HDD to SSD


def every_property() -> Iterator[tuple[str, str, Replacement]]:
    """Each property of each guarded type, with what a change of it does."""
    for kind in judgement._GUARDED:
        found = schema(kind)
        read_only = {path.removeprefix("/properties/") for path in found.get("readOnlyProperties", ())}
        writable = [name for name in found["properties"] if name not in read_only]
        replacing = {path.removeprefix("/properties/") for path in found.get("createOnlyProperties", ())}
        maybe = {path.removeprefix("/properties/") for path in found.get("conditionalCreateOnlyProperties", ())}
        replacing |= set(NOT_UPDATABLE.get(kind, ()))
        for path in sorted({*writable, *replacing, *maybe} - read_only):
            expected = Replacement.YES if path in replacing else Replacement.MAYBE if path in maybe else Replacement.NO
            yield kind, path, expected


def with_value(path: str, value: object) -> dict[str, Any]:
    first, _, rest = path.partition("/")
    if first == "*":
        return [with_value(rest, value) if rest else value]  # type: ignore[return-value]
    return {first: with_value(rest, value) if rest else value}


@pytest.mark.parametrize(("kind", "path", "expected"), list(every_property()), ids=lambda value: str(value))
def test_each_property_of_each_guarded_type(kind: str, path: str, expected: Replacement) -> None:
    old = template(Thing=resource(kind, **with_value(path, "old")))
    new = template(Thing=resource(kind, **with_value(path, "new")))
    (change,) = compare(old, new)
    told = [one for one in step(old, new) if "be replaced" in one.message]
    if expected is Replacement.NO:
        assert change.replacement is Replacement.NO
        assert told == []
        return
    assert change.replacement is expected
    (finding,) = told
    assert finding.path == "Thing"
    assert path in finding.message
    assert ("may be replaced" in finding.message) == (expected is Replacement.MAYBE)


def test_the_walk_over_properties_is_not_empty() -> None:
    rows = list(every_property())
    assert len({kind for kind, _, _ in rows}) == len(judgement._GUARDED)
    assert sum(expected is not Replacement.NO for _, _, expected in rows) > 60


@pytest.mark.parametrize("kind", sorted(judgement._GUARDED))
def test_removal_and_rename(kind: str) -> None:
    thing = {**resource(kind, Tags=[{"Key": "team", "Value": "research"}]), "DeletionPolicy": "RetainExceptOnCreate"}
    severity = judgement._GUARDED[kind].removal or judgement._GUARDED[kind].severity
    (finding,) = step(template(Thing=thing), template())
    assert "would leave its stack: it stays (RetainExceptOnCreate), bills on" in finding.message
    assert finding.severity is severity
    assert ("--allow Thing" in finding.hint) == (severity is Severity.ERROR)
    (finding,) = step(template(Thing=resource(kind)), template())
    assert "would be deleted" in finding.message
    (finding,) = step(template(Thing=thing), template(Other=thing))
    assert "its construct is called Other now, and CloudFormation makes a new one" in finding.message
    assert step(template(Thing=thing), template(Thing=thing)) == []
    assert step(template(), template(Thing=thing)) == []


def test_paths_are_those_of_constructs() -> None:
    thing = {**resource("AWS::S3::Bucket"), "Metadata": {"aws:cdk:path": "FoundationStack/Logs/Resource"}}
    (finding,) = step(template(Logs123=thing), template())
    assert finding.path == "FoundationStack/Logs"


def test_another_type_under_the_same_id() -> None:
    (finding,) = step(template(A=resource("AWS::KMS::Key")), template(A=resource("AWS::S3::Bucket")))
    assert "the key would be replaced: Type" in finding.message


def lustre(**lustre: Any) -> dict[str, Any]:
    top = {key: lustre.pop(key) for key in ("StorageCapacity", "FileSystemTypeVersion") if key in lustre}
    return template(Fs=resource(FILE_SYSTEM, SubnetIds=[{"Ref": "Subnet"}], LustreConfiguration=lustre, **top))


def test_a_subnet_that_is_replaced_under_a_file_system_takes_it_along() -> None:
    def network(cidr: str) -> dict[str, Any]:
        subnet = resource("AWS::EC2::Subnet", VpcId={"Ref": "Vpc"}, CidrBlock=cidr)
        group = resource("AWS::EC2::SecurityGroup", VpcId={"Fn::GetAtt": ["Vpc", "VpcId"]})
        return {"Resources": {**lustre()["Resources"], "Subnet": subnet, "Group": group}}

    (finding,) = step(network("10.0.0.0/24"), network("10.0.1.0/24"))
    assert (finding.rule, finding.path) == ("FSX-25", "Fs")
    assert "would be replaced: SubnetIds, which follows Subnet" in finding.message


def test_a_chain_is_followed_to_its_end() -> None:
    def chain(name: str) -> dict[str, Any]:
        return template(
            Vpc=resource("AWS::EC2::VPC", CidrBlock=name),
            Subnet=resource("AWS::EC2::Subnet", VpcId={"Fn::Sub": "${Vpc}"}),
            Fs=resource(FILE_SYSTEM, SubnetIds=[{"Fn::Join": ["", [{"Ref": "Subnet"}]]}]),
            Link=resource("AWS::FSx::DataRepositoryAssociation", FileSystemId={"Ref": "Fs"}),
        )

    found = {finding.path: finding.rule for finding in step(chain("10.0.0.0/16"), chain("10.1.0.0/16"))}
    assert found == {"Vpc": "FMB-49", "Fs": "FSX-25", "Link": "DRA-12"}


def test_subnets_and_groups_that_a_stack_publishes_are_guarded() -> None:
    def published(description: str, *, write: bool = True) -> dict[str, Any]:
        parameter = resource("AWS::SSM::Parameter", Name="/x/group", Value={"Fn::GetAtt": ["Group", "GroupId"]})
        group = resource("AWS::EC2::SecurityGroup", GroupDescription=description)
        return template(Group=group, **({"P": parameter} if write else {}))

    (finding,) = step(published("a"), published("b"))
    assert (finding.rule, finding.path) == ("FMB-49", "Group")
    assert "the published SecurityGroup would be replaced: GroupDescription a → b" in finding.message
    assert step(published("a", write=False), published("b", write=False)) == []


def test_a_value_behind_a_parameter_is_not_certain() -> None:
    old, new = (template(Fs=resource(FILE_SYSTEM, KmsKeyId=key)) for key in ("arn:a", {"Ref": "Key"}))
    new["Parameters"] = {"Key": {"Type": "String"}}
    assert "the file system may be replaced: KmsKeyId" in texts(step(old, new))
    new["Resources"]["Fs"]["Properties"]["KmsKeyId"] = "{{resolve:ssm:/key}}"
    assert "the file system may be replaced: KmsKeyId" in texts(step(old, new))


def test_a_policy_that_goes_is_told() -> None:
    kept = {**resource("AWS::KMS::Key"), "DeletionPolicy": "Retain"}
    (finding,) = step(template(Key=kept), template(Key=resource("AWS::KMS::Key")))
    assert finding.severity is Severity.WARNING
    assert "the key would lose its DeletionPolicy, Retain" in finding.message


@pytest.mark.parametrize(
    ("before", "after", "rule", "text"),
    [
        ({"StorageCapacity": 4800}, {"StorageCapacity": 2400}, "FMB-51", "StorageCapacity would go from 4800 to 2400"),
        ({"StorageCapacity": 4800}, {"StorageCapacity": 7200}, None, ""),
        (
            {"MetadataConfiguration": {"Iops": 12000}},
            {"MetadataConfiguration": {"Iops": 6000}},
            "FMB-51",
            "Iops would go from 12000 to 6000, and it can only grow",
        ),
        ({"MetadataConfiguration": {"Iops": 6000}}, {"MetadataConfiguration": {"Iops": 12000}}, None, ""),
        ({}, {"MetadataConfiguration": {"Mode": "AUTOMATIC"}}, "FMB-51", "cannot be added to a file system"),
        ({"FileSystemTypeVersion": "2.15"}, {"FileSystemTypeVersion": "2.12"}, "FSX-06", "2.15 → 2.12"),
        ({"FileSystemTypeVersion": "2.12"}, {"FileSystemTypeVersion": "2.15"}, None, ""),
        (
            {"EfaEnabled": True, "PerUnitStorageThroughput": 500},
            {"EfaEnabled": True, "PerUnitStorageThroughput": 1000},
            "FSX-14",
            "500 → 1000, and a file system with EFA keeps its throughput",
        ),
        ({"PerUnitStorageThroughput": 500}, {"PerUnitStorageThroughput": 1000}, None, ""),
        ({}, {"EfaEnabled": True}, "FSX-14", "would be replaced: LustreConfiguration/EfaEnabled"),
        ({"DeploymentType": "SCRATCH_2"}, {"DeploymentType": "PERSISTENT_2"}, "FSX-25", "SCRATCH_2 → PERSISTENT_2"),
        ({"DataCompressionType": "NONE"}, {"DataCompressionType": "LZ4"}, None, ""),
    ],
)
def test_what_fsx_does_not_do_in_place(
    before: dict[str, Any], after: dict[str, Any], rule: str | None, text: str
) -> None:
    found = step(lustre(**before), lustre(**after))
    assert [one.rule for one in found] == ([rule] if rule else [])
    assert text in texts(found)


def test_a_reservation_moved_into_a_placement_group() -> None:
    kind = "AWS::EC2::CapacityReservation"
    (finding,) = step(template(R=resource(kind)), template(R=resource(kind, PlacementGroupArn="arn")))
    assert finding.rule == "CR-17"


# What is published, and what a deployed stack got.

NAME = "/fmblocks/x/subnet/usw2-az1"


def foundation(value: object, **subnet: Any) -> dict[str, Any]:
    found = template(Subnet=resource("AWS::EC2::Subnet", **subnet), Vpc=resource("AWS::EC2::VPC"))
    if value is not None:
        found["Resources"]["P"] = resource("AWS::SSM::Parameter", Name=NAME, Value=value)
    return found


def training() -> dict[str, Any]:
    found = template(Cluster=resource("AWS::SageMaker::Cluster", VpcConfig={"Subnets": [{"Ref": "Read"}]}))
    found["Parameters"] = {"Read": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": NAME}}
    return found


def both(old: dict[str, Any], new: dict[str, Any], deployed: str | None, current: str | None) -> list[Finding]:
    told = tuple(compare(old, new))
    return judge(
        [
            StackChange("FoundationStack", old, new, told),
            StackChange("TrainingStack", training(), training(), (), (Input("Read", NAME, deployed, current),)),
        ]
    )


REF = {"Ref": "Subnet"}


def test_a_published_value_that_stays() -> None:
    assert both(foundation(REF), foundation(REF), "subnet-1", "subnet-1") == []
    tagged = foundation(REF, Tags=[{"Key": "a", "Value": "b"}])
    assert both(foundation(REF), tagged, "subnet-1", "subnet-1") == []
    assert both(foundation("lit"), foundation("lit"), "lit", "lit") == []


@pytest.mark.parametrize(
    ("old", "new", "current", "text"),
    [
        (
            foundation(REF, CidrBlock="a"),
            foundation(REF, CidrBlock="b"),
            "subnet-1",
            "known only after the deployment of",
        ),
        (foundation("subnet-1"), foundation("subnet-2"), "subnet-1", "would get subnet-2 from FoundationStack"),
        (foundation(REF), foundation({"Ref": "Vpc"}), "subnet-1", "known only after the deployment of"),
        (foundation(REF), foundation(None), "subnet-1", "FoundationStack has stopped publishing it"),
        (foundation(REF), foundation(REF), "subnet-2", "would get subnet-2, which is published already"),
    ],
    ids=["replaced below it", "another literal", "another resource", "gone", "published by an earlier deployment"],
)
def test_a_changed_value_with_an_empty_template_diff(
    old: dict[str, Any], new: dict[str, Any], current: str, text: str
) -> None:
    found = both(old, new, "subnet-1", current)
    (value,) = (one for one in found if one.rule == "FMB-50")
    assert (value.path, value.severity) == (NAME, Severity.ERROR)
    assert "TrainingStack was built with subnet-1" in value.message
    assert text in value.message
    (cluster,) = (one for one in found if one.path == "Cluster")
    assert f"the cluster would be replaced: VpcConfig, which follows {NAME}" in cluster.message


def test_a_value_that_was_not_read_before_changes_nothing() -> None:
    assert both(foundation(None), foundation(REF), None, None) == []


def test_a_stack_that_is_not_deployed_loses_nothing() -> None:
    new = template(Fs=resource(FILE_SYSTEM))
    assert judge([StackChange("FoundationStack", None, new)]) == []


def test_allow_takes_paths_logical_ids_and_names() -> None:
    old, new = foundation(REF, CidrBlock="a"), foundation(REF, CidrBlock="b")
    told = tuple(compare(old, new))
    stacks = [
        StackChange("FoundationStack", old, new, told),
        StackChange("TrainingStack", training(), training(), (), (Input("Read", NAME, "subnet-1", "subnet-1"),)),
    ]
    assert {one.path for one in judge(stacks)} == {"Subnet", NAME, "Cluster"}
    assert [one.path for one in judge(stacks, allow=[NAME, "Subnet"])] == ["Cluster"]
    assert judge(stacks, allow=[NAME, "Subnet", "Cluster/Resource"]) == []
    assert unknown_allowances(judge(stacks), ["Subnet", "Sub", ""]) == ["Sub", ""]


def test_allow_takes_one_place_and_no_other_that_ends_alike() -> None:
    def subnet(zone: str) -> dict[str, Any]:
        path = f"FoundationStack/Network/Zones/{zone}/Private"
        return {**resource("AWS::EC2::VPC"), "Metadata": {"aws:cdk:path": path}}

    old = template(A=subnet("usw2-az1"), B=subnet("usw2-az2"))
    stacks = [StackChange("S", old, template(), tuple(compare(old, template())))]
    assert len(judge(stacks, allow=["Private"])) == 2
    (left,) = judge(stacks, allow=["FoundationStack/Network/Zones/usw2-az1/Private"])
    assert left.path.endswith("usw2-az2/Private")


def test_what_no_resource_names_is_no_input() -> None:
    """Every stack of CDK reads the version of the bootstrap stack, and does nothing with it."""
    idle = {**training(), "Parameters": {**training()["Parameters"]}}
    idle["Parameters"]["BootstrapVersion"] = {
        **idle["Parameters"]["Read"],
        "Default": "/cdk-bootstrap/hnb659fds/version",
    }
    assert set(inputs(idle)) == {"Read"}


def test_a_value_of_somebody_else_is_followed_and_not_refused_itself() -> None:
    """AWS publishes images anew: the launch template follows, and that is no loss."""
    image = "/aws/service/ami/image_id"
    old = {
        "Parameters": {"Image": {"Type": "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>", "Default": image}},
        **template(T=resource("AWS::EC2::LaunchTemplate", LaunchTemplateData={"ImageId": {"Ref": "Image"}})),
    }
    changed = StackChange("S", old, old, (), (Input("Image", image, "ami-1", "ami-2"),))
    assert judge([changed]) == []
    old["Resources"]["F"] = resource(FILE_SYSTEM, KmsKeyId={"Ref": "Image"})
    (finding,) = judge([changed])
    assert f"would be replaced: KmsKeyId, which follows {image}" in finding.message


@pytest.mark.parametrize(
    ("kind", "before", "after", "text"),
    [
        (
            "AWS::EC2::CapacityReservation",
            {"InstanceCount": 4},
            {"InstanceCount": 1},
            "4 to 1: capacity that is",
        ),
        (
            "AWS::APS::Workspace",
            {"WorkspaceConfiguration": {"RetentionPeriodInDays": 150}},
            {"WorkspaceConfiguration": {"RetentionPeriodInDays": 1}},
            "from 150 to 1: older samples are deleted",
        ),
        (
            "AWS::S3::Bucket",
            {"VersioningConfiguration": {"Status": "Enabled"}},
            {"VersioningConfiguration": {"Status": "Suspended"}},
            "would keep no versions any more",
        ),
        ("AWS::KMS::Key", {}, {"Enabled": False}, "the key would be disabled"),
        (
            "AWS::SageMaker::Cluster",
            {"InstanceGroups": [{"InstanceGroupName": "a"}, {"InstanceGroupName": "b"}]},
            {"InstanceGroups": [{"InstanceGroupName": "a"}]},
            "the nodes of b would end",
        ),
    ],
)
def test_what_is_lost_in_place(kind: str, before: dict[str, Any], after: dict[str, Any], text: str) -> None:
    (finding,) = step(template(A=resource(kind, **before)), template(A=resource(kind, **after)))
    assert text in finding.message
    assert step(template(A=resource(kind, **after)), template(A=resource(kind, **after))) == []
    if kind != "AWS::KMS::Key":
        assert step(template(A=resource(kind, **after)), template(A=resource(kind, **before))) == []


def test_a_policy_is_looked_at_although_cloudformation_lists_no_change() -> None:
    kept = {**resource("AWS::S3::Bucket"), "UpdateReplacePolicy": "Retain", "DeletionPolicy": "Retain"}
    old, new = template(B=kept), template(B=resource("AWS::S3::Bucket"))
    found = judge([StackChange("S", old, new)])
    assert [one.message for one in found] == [
        "the bucket would lose its DeletionPolicy, Retain",
        "the bucket would lose its UpdateReplacePolicy, Retain",
    ]


def test_what_stands_behind_a_function_may_be_another() -> None:
    def chosen(kind: str) -> dict[str, Any]:
        either = {"Fn::If": ["C", {"DeploymentType": kind}, {"DeploymentType": "PERSISTENT_1"}]}
        return template(Fs=resource(FILE_SYSTEM, LustreConfiguration=either))

    (finding,) = step(chosen("PERSISTENT_2"), chosen("SCRATCH_2"))
    assert "the file system may be replaced" in finding.message


def test_a_number_that_is_written_as_text_is_the_same() -> None:
    old, new = (template(V=resource("AWS::EC2::VPC", Ipv4NetmaskLength=size)) for size in (16, "16"))
    assert step(old, new) == []


def test_follow_begins_with_what_is_told() -> None:
    (change,) = follow(training(), ["Read"])
    expected = Change(
        "Cluster", "AWS::SageMaker::Cluster", Action.MODIFY, Replacement.YES, ("VpcConfig, which follows Read",)
    )
    assert change == expected


def test_unseen_names_what_nobody_could_look_into() -> None:
    new = {
        **training(),
        "Conditions": {"C": {}},
        "Transform": "T",
        "Outputs": {},
    }
    new["Parameters"]["Size"] = {"Type": "String"}
    new["Mappings"] = {"M": {}}
    tags = [{"Key": "size", "Value": {"Ref": "Size"}}]
    new["Resources"]["B"] = resource("AWS::S3::Bucket", BucketName={"Fn::ImportValue": "Net:Name"}, Tags=tags)
    assert unseen(template(), new) == [
        f"the values of 1 SSM parameters: {NAME}",
        "the values of 1 template parameters: Size",
        "1 imported values and dynamic references: Net:Name",
        "what changes in mappings",
        "which conditions hold",
        "what transforms make of the template",
    ]
    assert unseen(template(), template()) == []


def test_types_that_the_registry_knows_and_does_not() -> None:
    assert always("AWS::SSM::Parameter") == ("Name",)
    assert sometimes("AWS::EC2::VPC") == ("InstanceTenancy",)
    assert always("Custom::Thing") == ()


# The command line, without AWS.


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    old, new = (
        {
            "Parameters": training()["Parameters"],
            "Resources": {**training()["Resources"], **lustre(StorageCapacity=4800, DeploymentType=kind)["Resources"]},
        }
        for kind in ("SCRATCH_2", "PERSISTENT_2")
    )
    (tmp_path / "old.json").write_text(json.dumps({"TemplateBody": old, "StagesAvailable": []}))
    (tmp_path / "new.json").write_text(json.dumps(new))
    return str(tmp_path / "old.json"), str(tmp_path / "new.json")


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["guard", *words])


def test_two_templates(files: tuple[str, str]) -> None:
    done = run("--template", *files)
    assert done.exit_code == 1
    assert "new.json: replaced 1" in done.stdout
    assert f"not seen: the values of 1 SSM parameters: {NAME}" in done.stdout
    assert "error [FSX-25] Fs: the file system would be replaced" in done.stdout
    assert "refused: 1, warnings: 0, allowed: 0" in done.stderr


def test_two_templates_allowed(files: tuple[str, str]) -> None:
    done = run("--template", *files, "--allow", "Fs", "--json")
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    assert told["stacks"][0]["changes"] == {"added": 0, "changed": 0, "replaced": 1, "removed": 0}
    assert told["findings"] == []
    assert "refused: 0, warnings: 0, allowed: 1" in done.stderr


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "name either a project file or --template OLD NEW"),
        (("x.yaml", "--template", "OLD", "NEW"), "name either a project file or --template OLD NEW"),
        (("--template", "missing.json", "NEW"), "missing.json cannot be read: FileNotFoundError"),
        (("--template", "OLD", "broken.json"), "broken.json:2: is no JSON"),
        (("--template", "OLD", "list.json"), "list.json is no template: it has no Resources"),
        (("--template", "OLD", "typeless.json"), "typeless.json is no template: A has no Type"),
        (("--template", "OLD", "NEW", "--allow", "Nothing"), "--allow Nothing names nothing that is refused"),
        (("nowhere.yaml",), "nowhere.yaml"),
    ],
)
def test_what_cannot_be_looked_at(
    files: tuple[str, str], words: tuple[str, ...], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.json").write_text("{\n nothing")
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "typeless.json").write_text('{"Resources": {"A": {}}}')
    monkeypatch.chdir(tmp_path)
    named = {"OLD": files[0], "NEW": files[1]}
    done = run(*(named.get(word, word) for word in words))
    assert done.exit_code == 2
    assert text in done.stderr
    assert (done.stdout == "") == ("--allow" not in words)


def test_a_backup_is_not_empty() -> None:
    old, new = (template(Fs=resource(FILE_SYSTEM, **more)) for more in ({}, {"BackupId": "backup-1"}))
    (finding,) = step(old, new)
    assert "would be replaced: BackupId; the new one holds what the backup holds" in finding.message


def test_what_may_not_be_there_any_more() -> None:
    old = template(Fs=resource(FILE_SYSTEM))
    new = template(Fs={**resource(FILE_SYSTEM), "Condition": "Never"})
    assert "the file system may be replaced: Condition" in texts(step(old, new))


def test_kubernetes_goes_up_one_by_one() -> None:
    def cluster(version: str) -> dict[str, Any]:
        return template(C=resource("AWS::EKS::Cluster", Version=version))

    assert step(cluster("1.35"), cluster("1.36")) == []
    for new, hint in (("1.37", "write 1.35 or 1.36"), ("1.34", "write 1.35")):
        (found,) = step(cluster("1.35"), cluster(new))
        assert (found.rule, found.severity, found.hint) == (
            "FMB-95",
            Severity.ERROR,
            f"{hint}; if it is meant: --allow C",
        )
        assert f"1.35 → {new}, and a cluster goes up by one minor version at a time" in found.message


def test_groups_that_go_are_told() -> None:
    """Replacing one of PCS fails, since its name is taken; taking it away ends its nodes."""
    old = template(
        G=resource("AWS::PCS::ComputeNodeGroup", Name="gpu", InstanceConfigs=[{"InstanceType": "p5.48xlarge"}]),
        K=resource("Custom::AWSCDK-EKS-KubernetesResource", Manifest='[{"apiVersion": "karpenter.sh/v1"}]'),
        L=resource("Custom::AWSCDK-EKS-KubernetesResource", Manifest='[{"apiVersion": "v1"}]'),
    )
    found = {finding.path: finding for finding in step(old, template())}
    assert {path: (one.rule, one.severity) for path, one in found.items()} == {
        "G": ("PCS-03", Severity.WARNING),
        "K": ("EKS-05", Severity.WARNING),
    }
    assert "the node pool would" in found["K"].message
    other = template(
        **{**old["Resources"], "G": resource("AWS::PCS::ComputeNodeGroup", Name="gpu", InstanceConfigs=[])}
    )
    (refused,) = step(old, other)
    assert (refused.rule, refused.severity) == ("PCS-03", Severity.ERROR)
    assert "its name is taken: rename the group" in refused.message


def group(name: str, **more: Any) -> dict[str, Any]:
    told = {"InstanceGroupName": name, "InstanceType": "ml.p5.48xlarge", "InstanceCount": 2}
    return {**told, "SlurmConfig": {"NodeType": "Compute"}, **more}


def hyperpod(*groups: dict[str, Any]) -> dict[str, Any]:
    return template(Hyper=resource("AWS::SageMaker::Cluster", InstanceGroups=list(groups)))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"InstanceType": "ml.p5e.48xlarge"}, "instance type of gpu would change, and a group keeps them"),
        ({"SlurmConfig": {"NodeType": "Login"}}, "role of gpu would change"),
        ({"OverrideVpcConfig": {"Subnets": ["subnet-1"]}}, "subnet and security groups of gpu would change"),
    ],
)
def test_what_a_group_of_hyperpod_keeps(change: dict[str, Any], text: str) -> None:
    (finding,) = step(hyperpod(group("gpu"), group("cpu")), hyperpod(group("cpu"), group("gpu", **change)))
    assert (finding.rule, finding.severity) == ("FMB-108", Severity.ERROR)
    assert text in finding.message


def test_counts_scripts_and_further_groups_are_nothing_to_tell() -> None:
    script = {"LifeCycleConfig": {"SourceS3Uri": "s3://sagemaker-x/new/", "OnInitComplete": "compute.sh"}}
    old, new = hyperpod(group("gpu")), hyperpod(group("gpu", InstanceCount=4, **script), group("more"))
    assert step(old, new) == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"InstanceCount": 1}, "1 of the 2 nodes of gpu would end"),
        ({"ExecutionRole": "other"}, "the role of gpu would change"),
        ({"TrainingPlanArn": "other"}, "the training plan of gpu would change"),
    ],
)
def test_what_happens_to_nodes_of_hyperpod_is_told(change: dict[str, Any], text: str) -> None:
    (finding,) = step(hyperpod(group("gpu")), hyperpod(group("gpu", **change)))
    assert (finding.rule, finding.severity) == ("FMB-108", Severity.WARNING)
    assert text in finding.message


def test_slurm_keeps_its_database_and_provisioning_is_told() -> None:
    database = {"Slurm": {"AccountingDatabase": {"Endpoint": "host"}}}
    kind = "AWS::SageMaker::Cluster"
    old = template(Hyper=resource(kind, Orchestrator=database, NodeProvisioningMode="Continuous"))
    gone, told = step(old, template(Hyper=resource(kind, Orchestrator={"Slurm": {"SlurmConfigStrategy": "Managed"}})))
    assert (gone.rule, gone.severity) == ("FMB-108", Severity.ERROR)
    assert "would go back to the controller" in gone.message
    assert (told.rule, told.severity) == ("FMB-108", Severity.WARNING)
    assert "from Continuous to Standard" in told.message
    assert step(template(Hyper=resource(kind, NodeProvisioningMode="Continuous")), old) == []


def numbered(**numbers: int) -> dict[str, Any]:
    made = resource("Custom::LifecycleBundle", Prefix="1")
    return template(Scripts={**made, "Metadata": {judgement.USER_NUMBERS: numbers}})


@pytest.mark.parametrize(
    ("after", "text"),
    [
        ({"ana": 10011, "ben": 10002}, "the number of ana would go from 10001 to 10011"),
        ({"ben": 10002, "carol": 10001}, "carol would get 10001, the number of ana"),
    ],
)
def test_users_keep_their_numbers(after: dict[str, int], text: str) -> None:
    before = numbered(ana=10001, ben=10002)
    (finding,) = step(before, numbered(**after))
    assert (finding.rule, finding.severity) == ("FMB-108", Severity.ERROR)
    assert text in finding.message
    assert step(before, numbered(ben=10002, carol=10003)) == []


def routed(strategy: str | None) -> dict[str, Any]:
    spec = {"intelligentRoutingSpec": {"enabled": True, "routingStrategy": strategy}} if strategy else {}
    endpoint = {"kind": "InferenceEndpointConfig", "metadata": {"name": "chat"}, "spec": spec}
    parts = json.dumps([endpoint]).replace('"chat"', '"chat", "namespace": "|"').split("|")
    joined = {"Fn::Join": ["", [parts[0], {"Ref": "Namespace"}, parts[1]]]}
    return template(Endpoint=resource("Custom::AWSCDK-EKS-KubernetesResource", Manifest=joined))


@pytest.mark.parametrize(("before", "after"), [(None, "prefixaware"), ("prefixaware", None)])
def test_endpoints_keep_their_routing(before: str | None, after: str | None) -> None:
    (finding,) = step(routed(before), routed(after))
    assert (finding.rule, finding.severity) == ("FMB-134", Severity.ERROR)
    assert f"the routing of chat would {'go' if before else 'come'}" in finding.message
    assert step(routed("session"), routed("kvaware")) == []
    assert step(routed(before), routed(before)) == []
    assert step(routed(before), template()) == []  # an endpoint may go


def test_a_new_release_takes_the_root_volumes() -> None:
    (finding,) = step(hyperpod(group("gpu")), hyperpod(group("gpu", ImageReleaseVersion="1.2.3")))
    assert (finding.rule, finding.severity) == ("FMB-108", Severity.WARNING)
    assert "the nodes of gpu get another image" in finding.message


def test_another_network_replaces_the_cluster() -> None:
    """C86."""
    before = resource("AWS::SageMaker::Cluster", VpcConfig={"Subnets": ["a"], "SecurityGroupIds": ["g"]})
    after = resource("AWS::SageMaker::Cluster", VpcConfig={"Subnets": ["b"], "SecurityGroupIds": ["g"]})
    (finding,) = step(template(Hyper=before), template(Hyper=after))
    assert (finding.rule, finding.severity) == ("FMB-49", Severity.ERROR)
    assert "VpcConfig" in finding.message


def test_a_database_is_kept() -> None:
    old = template(Db=resource("AWS::RDS::DBCluster", KmsKeyId="a", Engine="aurora-mysql"))
    new = template(Db=resource("AWS::RDS::DBCluster", KmsKeyId="b", Engine="aurora-mysql"))
    assert "FMB-49" in {finding.rule for finding in step(old, new)}
