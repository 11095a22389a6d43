"""What the guard asks CloudFormation, and what it makes of the answers; botocore's Stubber checks both."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber

from fmblocks.guard import assembly, change_sets
from fmblocks.guard.assembly import Asset, Stack
from fmblocks.guard.change_sets import Clients, GuardError, left_behind, look
from fmblocks.guard.judgement import Input, StackChange
from fmblocks.guard.templates import Action, Change, Replacement

NOW = datetime.datetime(2026, 12, 1, tzinfo=datetime.UTC)
READ = {"Read": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/fmblocks/x/vpc-id"}}
KEY = {"Type": "AWS::KMS::Key", "Properties": {"Description": {"Ref": "Read"}}}
OLD = {"Parameters": READ, "Resources": {"Key": KEY}}


def client(service: Any) -> Any:
    return boto3.client(
        service, region_name="us-west-2", aws_access_key_id="1", aws_secret_access_key="2"
    )  # no request leaves: the stubber answers


@pytest.fixture
def cloudformation() -> Iterator[Stubber]:
    with Stubber(client("cloudformation")) as stub:
        yield stub
        stub.assert_no_pending_responses()


@pytest.fixture
def s3() -> Iterator[Stubber]:
    with Stubber(client("s3")) as stub:
        yield stub
        stub.assert_no_pending_responses()


def stack(template: dict[str, Any] = OLD, **fields: Any) -> Stack:
    given: dict[str, Any] = {"asset": None, "role_arn": None, "tags": {}, **fields}
    return Stack("FoundationStack", "x-FoundationStack", template, json.dumps(template), **given)


def deployed(stub: Stubber, status: str = "UPDATE_COMPLETE") -> None:
    parameters = [{"ParameterKey": "Read", "ParameterValue": "/fmblocks/x/vpc-id", "ResolvedValue": "vpc-1"}]
    found = {"StackName": "x", "CreationTime": NOW, "StackStatus": status, "Parameters": parameters}
    stub.add_response("describe_stacks", {"Stacks": [found]}, {"StackName": "x-FoundationStack"})


def template(stub: Stubber, body: Any = OLD) -> None:
    asked = {"StackName": "x-FoundationStack", "TemplateStage": "Original"}
    stub.add_response("get_template", {"TemplateBody": body if isinstance(body, str) else json.dumps(body)}, asked)


def created(stub: Stubber, **given: Any) -> None:
    asked = {
        "StackName": "x-FoundationStack",
        "ChangeSetName": ANY,
        "ChangeSetType": "UPDATE",
        "Description": ANY,
        "Capabilities": ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"],
        "Parameters": [{"ParameterKey": "Read", "UsePreviousValue": True}],
        "TemplateBody": ANY,
        **given,
    }
    stub.add_response("create_change_set", {}, {key: value for key, value in asked.items() if value is not None})


def described(stub: Stubber, status: str, *changes: dict[str, Any], **more: Any) -> None:
    now = [{"ParameterKey": "Read", "ParameterValue": "/fmblocks/x/vpc-id", "ResolvedValue": "vpc-2"}]
    told = [{"Type": "Resource", "ResourceChange": change} for change in changes]
    asked: dict[str, Any] = {"StackName": "x-FoundationStack", "ChangeSetName": ANY}
    if token := more.pop("asked_token", None):
        asked["NextToken"] = token
    stub.add_response("describe_change_set", {"Status": status, "Changes": told, "Parameters": now, **more}, asked)


def deleted(stub: Stubber) -> None:
    stub.add_response("delete_change_set", {}, {"StackName": "x-FoundationStack", "ChangeSetName": ANY})


def changes(stub: Stubber, s3: Stubber, *told: dict[str, Any], new: dict[str, Any] = OLD) -> tuple[Change, ...]:
    deployed(stub)
    template(stub)
    created(stub)
    described(stub, "CREATE_COMPLETE", *told)
    deleted(stub)
    (found,) = ask(stub, s3, stack(new))
    return found.changes


def ask(stub: Stubber, s3: Stubber, *stacks: Stack) -> list[StackChange]:
    clients: Any = stub.client, s3.client
    return look(stacks, lambda _: Clients(*clients), pause=lambda _: None)


def test_the_answer_is_read_page_by_page_and_the_change_set_goes(cloudformation: Stubber, s3: Stubber) -> None:
    deployed(cloudformation)
    template(cloudformation)
    created(cloudformation, Tags=[{"Key": "team", "Value": "research"}])
    described(cloudformation, "CREATE_IN_PROGRESS")
    add = {"Action": "Add", "LogicalResourceId": "A", "ResourceType": "AWS::S3::Bucket"}
    remove = {"Action": "Remove", "LogicalResourceId": "B", "ResourceType": "AWS::S3::Bucket"}
    described(cloudformation, "CREATE_COMPLETE", add, NextToken="more")
    described(cloudformation, "CREATE_COMPLETE", remove, asked_token="more")
    deleted(cloudformation)
    (found,) = ask(cloudformation, s3, stack(tags={"team": "research"}))
    assert found.changes == (Change("A", "AWS::S3::Bucket", Action.ADD), Change("B", "AWS::S3::Bucket", Action.REMOVE))
    assert found.inputs == (Input("Read", "/fmblocks/x/vpc-id", "vpc-1", "vpc-2"),)
    assert found.old == OLD


@pytest.mark.parametrize(
    "reason", ["The submitted information didn't contain changes.", "No updates are to be performed."]
)
def test_a_change_set_without_changes(cloudformation: Stubber, s3: Stubber, reason: str) -> None:
    deployed(cloudformation)
    template(cloudformation)
    created(cloudformation)
    described(cloudformation, "FAILED", StatusReason=reason)
    deleted(cloudformation)
    (found,) = ask(cloudformation, s3, stack())
    assert found.changes == ()


def test_a_change_set_that_fails_is_deleted_too(cloudformation: Stubber, s3: Stubber) -> None:
    deployed(cloudformation)
    template(cloudformation)
    created(cloudformation)
    described(cloudformation, "FAILED", StatusReason="Parameter Read failed to resolve")
    deleted(cloudformation)
    with pytest.raises(GuardError, match="makes no change set: Parameter Read failed to resolve"):
        ask(cloudformation, s3, stack())


@pytest.mark.parametrize("status", ["REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE"])
def test_a_stack_that_holds_nothing_is_new(cloudformation: Stubber, s3: Stubber, status: str) -> None:
    deployed(cloudformation, status)
    (found,) = ask(cloudformation, s3, stack())
    assert found.old is None


def test_a_stack_that_does_not_exist_is_new(cloudformation: Stubber, s3: Stubber) -> None:
    cloudformation.add_client_error("describe_stacks", "ValidationError", "Stack with id x does not exist", 400)
    (found,) = ask(cloudformation, s3, stack())
    assert found == StackChange("FoundationStack", None, OLD)


def test_a_stack_that_is_being_updated_is_waited_for_by_the_user(cloudformation: Stubber, s3: Stubber) -> None:
    deployed(cloudformation, "UPDATE_IN_PROGRESS")
    with pytest.raises(GuardError, match="x-FoundationStack is in UPDATE_IN_PROGRESS: wait"):
        ask(cloudformation, s3, stack())


def test_a_refusal_is_not_taken_for_absence(cloudformation: Stubber, s3: Stubber) -> None:
    cloudformation.add_client_error("describe_stacks", "AccessDenied", "not authorized")
    with pytest.raises(GuardError, match="x-FoundationStack: AccessDenied: not authorized"):
        ask(cloudformation, s3, stack())


def test_a_throttled_creation_is_told(cloudformation: Stubber, s3: Stubber) -> None:
    deployed(cloudformation)
    template(cloudformation)
    cloudformation.add_client_error("create_change_set", "LimitExceededException", "too many change sets")
    with pytest.raises(GuardError, match="LimitExceededException: too many change sets"):
        ask(cloudformation, s3, stack())


def test_a_template_in_yaml_is_somebody_elses(cloudformation: Stubber, s3: Stubber) -> None:
    deployed(cloudformation)
    template(cloudformation, "Resources:\n  A: {}")
    with pytest.raises(GuardError, match="is not JSON: it was not deployed by the CDK CLI"):
        ask(cloudformation, s3, stack())


def test_a_long_template_goes_where_the_cli_puts_it(cloudformation: Stubber, s3: Stubber) -> None:
    long = {**OLD, "Description": "x" * 52000}
    deployed(cloudformation)
    template(cloudformation)
    url = "https://s3.us-west-2.amazonaws.com/assets/hash.json"
    created(cloudformation, TemplateBody=None, TemplateURL=url)
    described(cloudformation, "CREATE_COMPLETE")
    deleted(cloudformation)
    s3.add_response("put_object", {}, {"Bucket": "assets", "Key": "hash.json", "Body": ANY})
    ask(cloudformation, s3, stack(long, asset=Asset("assets", "hash.json", None)))


def test_a_long_template_without_a_bucket(cloudformation: Stubber, s3: Stubber) -> None:
    deployed(cloudformation)
    template(cloudformation)
    with pytest.raises(GuardError, match="too long to send"):
        ask(cloudformation, s3, stack({**OLD, "Description": "x" * 52000}))


def modify(id: str, kind: str, replacement: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {
        "Action": "Modify",
        "LogicalResourceId": id,
        "ResourceType": kind,
        "Replacement": replacement,
        "Details": list(details),
    }


def detail(
    name: str, recreation: str, evaluation: str = "Static", entity: str = "", source: str = ""
) -> dict[str, Any]:
    found = {
        "Target": {"Attribute": "Properties", "Name": name, "RequiresRecreation": recreation},
        "Evaluation": evaluation,
        "ChangeSource": source or "DirectModification",
    }
    return {**found, "CausingEntity": entity} if entity else found


FS = "AWS::FSx::FileSystem"


def test_true_and_conditional_are_told_apart(cloudformation: Stubber, s3: Stubber) -> None:
    assert changes(
        cloudformation,
        s3,
        modify("A", FS, "True", detail("SubnetIds", "Always"), detail("StorageCapacity", "Never")),
        modify("B", "AWS::EC2::VPC", "Conditional", detail("InstanceTenancy", "Conditionally")),
        modify("C", FS, "False", detail("StorageCapacity", "Never")),
        {"Action": "Dynamic", "LogicalResourceId": "D", "ResourceType": FS},
    ) == (
        Change("A", FS, Action.MODIFY, Replacement.YES, ("SubnetIds",)),
        Change("B", "AWS::EC2::VPC", Action.MODIFY, Replacement.MAYBE, ("InstanceTenancy",)),
        Change("C", FS, Action.MODIFY),
        Change("D", FS, Action.MODIFY, Replacement.MAYBE, ("an action that CloudFormation cannot foretell",)),
    )


def test_a_new_key_policy_replaces_nothing(cloudformation: Stubber, s3: Stubber) -> None:
    """CloudFormation says Conditional of whatever names the ARN of a key that is changed in place."""
    follows = detail("KmsKeyId", "Always", "Dynamic", "Key.Arn", "ResourceAttribute")
    found = changes(
        cloudformation,
        s3,
        modify("Key", "AWS::KMS::Key", "False", detail("KeyPolicy", "Never")),
        modify("Fs", FS, "Conditional", follows),
    )
    assert found[1] == Change("Fs", FS, Action.MODIFY)


@pytest.mark.parametrize(
    ("key", "attribute", "source"),
    [
        (modify("Key", "AWS::KMS::Key", "True", detail("KeySpec", "Always")), "Key.Arn", "ResourceAttribute"),
        (modify("Key", "AWS::KMS::Key", "False", detail("KeyPolicy", "Never")), "Key.Whatever", "ResourceAttribute"),
        (modify("Key", "AWS::KMS::Key", "False", detail("KeyPolicy", "Never")), "Read", "ParameterReference"),
        (modify("Key", "AWS::KMS::Key", "False", detail("KeyPolicy", "Never")), "Gone.Arn", "ResourceAttribute"),
    ],
    ids=["replaced", "an attribute that is no name", "a parameter", "a resource that is not there"],
)
def test_what_may_change_stays_a_maybe(
    cloudformation: Stubber, s3: Stubber, key: dict[str, Any], attribute: str, source: str
) -> None:
    follows = detail("KmsKeyId", "Always", "Dynamic", attribute, source)
    found = changes(cloudformation, s3, key, modify("Fs", FS, "Conditional", follows))
    cause = f"KmsKeyId, which follows {attribute.split('.')[0]}"
    assert found[1] == Change("Fs", FS, Action.MODIFY, Replacement.MAYBE, (cause,))


def test_what_the_schemas_omit_is_added(cloudformation: Stubber, s3: Stubber) -> None:
    deployed(cloudformation)
    old, new = ({"Resources": {"Fs": {"Type": FS, "Properties": {"StorageType": kind}}}} for kind in ("SSD", "HDD"))
    template(cloudformation, old)
    created(cloudformation, Parameters=[])
    described(cloudformation, "CREATE_COMPLETE", modify("Fs", FS, "False", detail("StorageType", "Never")))
    deleted(cloudformation)
    (found,) = ask(cloudformation, s3, stack(new))
    assert found.changes == (Change("Fs", FS, Action.MODIFY, Replacement.YES, ("StorageType",)),)


def test_stacks_that_left_the_app(cloudformation: Stubber) -> None:
    deployed(cloudformation)
    cloudformation.add_client_error("describe_stacks", "ValidationError", "Stack with id b does not exist", 400)
    asked: Any = cloudformation.client
    assert left_behind(asked, ["x-FoundationStack", "b"]) == ["x-FoundationStack"]


ROLE = "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/deploy"


def test_an_assembly_is_read_in_the_order_of_deployment(tmp_path: Path) -> None:
    def artifact(name: str, *dependencies: str, environment: str) -> dict[str, Any]:
        (tmp_path / f"{name}.template.json").write_text(json.dumps({"Description": name}))
        properties = {"templateFile": f"{name}.template.json", "stackName": f"x-{name}", "assumeRoleArn": ROLE}
        return {
            "type": "aws:cloudformation:stack",
            "environment": environment,
            "properties": properties,
            "dependencies": [*dependencies, f"{name}.assets"],
        }

    manifest = {
        "artifacts": {
            "A": artifact("A", "B", environment="aws://unknown-account/unknown-region"),
            "B": artifact("B", environment="aws://111122223333/us-west-2"),
            "B.assets": {"type": "cdk:asset-manifest"},
            "Tree": {"type": "cdk:tree"},
        }
    }
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    place = {
        "bucketName": "assets-${AWS::AccountId}-${AWS::Region}",
        "objectKey": "b.json",
        "assumeRoleArn": "arn:publish",
    }
    other = {"source": {"path": "asset.zip"}, "destinations": {"d": place}}
    files = {"one": other, "two": {"source": {"path": "B.template.json"}, "destinations": {"d": place}}}
    (tmp_path / "B.assets.json").write_text(json.dumps({"files": files}))
    pseudo = {"Partition": "aws-cn", "AccountId": "444455556666", "Region": "cn-north-1"}
    b, a = assembly.read(tmp_path, pseudo)
    assert (b.name, b.stack_name, b.role_arn) == ("B", "x-B", "arn:aws-cn:iam::444455556666:role/deploy")
    assert b.asset == Asset("assets-444455556666-cn-north-1", "b.json", "arn:publish")
    assert (a.name, a.asset) == ("A", None)
    assert a.template == {"Description": "A"}


def test_patience_ends(cloudformation: Stubber, s3: Stubber, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_sets, "_PATIENCE_SECONDS", -1)
    deployed(cloudformation)
    template(cloudformation)
    created(cloudformation)
    described(cloudformation, "CREATE_IN_PROGRESS")
    deleted(cloudformation)
    with pytest.raises(GuardError, match="is still CREATE_IN_PROGRESS"):
        ask(cloudformation, s3, stack())


def test_a_change_set_that_is_still_being_made_is_deleted_later(cloudformation: Stubber, s3: Stubber) -> None:
    deployed(cloudformation)
    template(cloudformation)
    created(cloudformation)
    described(cloudformation, "CREATE_COMPLETE")
    cloudformation.add_client_error("delete_change_set", "InvalidChangeSetStatus", "in progress")
    deleted(cloudformation)
    ask(cloudformation, s3, stack())


def test_what_cannot_be_deleted_hides_no_error(
    cloudformation: Stubber, s3: Stubber, caplog: pytest.LogCaptureFixture
) -> None:
    deployed(cloudformation)
    template(cloudformation)
    created(cloudformation)
    described(cloudformation, "FAILED", StatusReason="no")
    cloudformation.add_client_error("delete_change_set", "AccessDenied", "no")
    with pytest.raises(GuardError, match="makes no change set: no"):
        ask(cloudformation, s3, stack())
    assert "of x-FoundationStack could not be deleted: do it by hand" in caplog.text


def test_tags_that_replace_have_no_name(cloudformation: Stubber, s3: Stubber) -> None:
    kind = "AWS::EC2::PlacementGroup"
    tags = {"Target": {"Attribute": "Tags", "RequiresRecreation": "Always"}, "Evaluation": "Static"}
    (found,) = changes(cloudformation, s3, modify("G", kind, "True", tags))
    assert found == Change("G", kind, Action.MODIFY, Replacement.YES, ("Tags",))


def test_a_replacement_without_a_reason_is_believed(cloudformation: Stubber, s3: Stubber) -> None:
    (found,) = changes(cloudformation, s3, modify("B", "AWS::S3::Bucket", "True"))
    assert found.replacement is Replacement.YES
    assert found.causes == ("a reason that CloudFormation does not name",)


def test_who_follows_what_stays_stays_too(cloudformation: Stubber, s3: Stubber) -> None:
    kind = "AWS::FSx::DataRepositoryAssociation"
    new = {**OLD, "Resources": {"Key": KEY, "Fs": {"Type": FS}, "Link": {"Type": kind}}}
    found = changes(
        cloudformation,
        s3,
        modify("Key", "AWS::KMS::Key", "False", detail("KeyPolicy", "Never")),
        modify("Fs", FS, "Conditional", detail("KmsKeyId", "Always", "Dynamic", "Key.Arn", "ResourceAttribute")),
        modify("Link", kind, "Conditional", detail("FileSystemId", "Always", "Dynamic", "Fs", "ResourceReference")),
        new=new,
    )
    assert [one.replacement for one in found] == [Replacement.NO] * 3
