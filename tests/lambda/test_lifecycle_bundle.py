"""The unpacking of lifecycle scripts: every request CloudFormation can send."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.response import StreamingBody
from botocore.stub import Stubber

from fmblocks_lambda.lifecycle_bundle import _RETRIES, on_event

BUCKET, PREFIX, OLD = "sagemaker-x", "aa11", "bb22"
STACK = "arn:aws:cloudformation:us-west-2:111122223333:stack/s/1"


def event(kind: str, prefix: str = PREFIX, bucket: str = BUCKET, **more: Any) -> dict[str, Any]:
    properties = {"Bucket": bucket, "Prefix": prefix, "SourceBucket": "assets", "SourceKey": f"{prefix}.zip"}
    return {
        "RequestType": kind,
        "StackId": STACK,
        "LogicalResourceId": "Scripts",
        "ResourceProperties": properties,
        **more,
    }


@pytest.fixture
def s3() -> Any:
    return boto3.client(
        "s3", region_name="us-west-2", aws_access_key_id="x", aws_secret_access_key="x", config=_RETRIES
    )


@pytest.fixture
def stub(s3: Any) -> Iterator[Stubber]:
    with Stubber(s3) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


@pytest.fixture
def owner() -> str:
    """The physical id of the bundle: it stands for stack, logical id and bucket."""
    return "bundle-" + hashlib.sha256(f"{STACK}|Scripts|{BUCKET}".encode()).hexdigest()[:32]


def archive(**files: str) -> StreamingBody:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as out:
        for name, text in files.items():
            out.writestr(name.replace("__", "/"), text)
    content = packed.getvalue()
    return StreamingBody(io.BytesIO(content), len(content))


def lists(stub: Stubber, prefix: str, *keys: str) -> None:
    found = {"Contents": [{"Key": key} for key in keys]} if keys else {}
    stub.add_response("list_objects_v2", found, {"Bucket": BUCKET, "Prefix": prefix})


def puts(stub: Stubber, key: str, body: bytes) -> None:
    stub.add_response("put_object", {}, {"Bucket": BUCKET, "Key": key, "Body": body})


def deletes(stub: Stubber, key: str) -> None:
    stub.add_response("delete_object", {}, {"Bucket": BUCKET, "Key": key})


def marker(prefix: str, owner: str) -> str:
    return f".fmblocks/bundles/{prefix}/{owner}"


def installs(stub: Stubber, owner: str, prefix: str = PREFIX) -> None:
    """What writing a prefix with one file asks for: the marker comes last."""
    lists(stub, marker(prefix, owner))
    stub.add_response("get_object", {"Body": archive(setup_sh="echo")}, {"Bucket": "assets", "Key": f"{prefix}.zip"})
    puts(stub, f"{prefix}/setup_sh", b"echo")
    puts(stub, marker(prefix, owner), b"")


def test_create_writes_every_file_and_then_the_marker(s3: Any, stub: Stubber, owner: str) -> None:
    lists(stub, marker(PREFIX, owner))
    packed = {"Body": archive(setup="a", lib__tools="b")}
    stub.add_response("get_object", packed, {"Bucket": "assets", "Key": f"{PREFIX}.zip"})
    puts(stub, f"{PREFIX}/setup", b"a")
    puts(stub, f"{PREFIX}/lib/tools", b"b")
    puts(stub, marker(PREFIX, owner), b"")
    assert on_event(event("Create"), None, s3=s3) == {"PhysicalResourceId": owner}


def test_an_update_adds_a_prefix_and_leaves_the_old_one(s3: Any, stub: Stubber, owner: str) -> None:
    installs(stub, owner)
    answer = on_event(event("Update", PhysicalResourceId=owner), None, s3=s3)
    assert answer == {"PhysicalResourceId": owner}  # the same: CloudFormation deletes nothing


def test_an_update_without_change_reads_no_asset(s3: Any, stub: Stubber, owner: str) -> None:
    """So does a roll-back: the asset it came from may be gone."""
    lists(stub, marker(PREFIX, owner), marker(PREFIX, owner))
    assert on_event(event("Update", PhysicalResourceId=owner), None, s3=s3) == {"PhysicalResourceId": owner}


def test_half_done_is_written_again(s3: Any, stub: Stubber, owner: str) -> None:
    """The first try ends before the marker; without it the prefix is not whole, and the second writes all of it."""
    packed = {"Body": archive(setup_sh="echo")}
    lists(stub, marker(PREFIX, owner))
    stub.add_response("get_object", packed, {"Bucket": "assets", "Key": f"{PREFIX}.zip"})
    puts(stub, f"{PREFIX}/setup_sh", b"echo")
    stub.add_client_error("put_object", "InternalError")
    with pytest.raises(ClientError, match="InternalError"):
        on_event(event("Create"), None, s3=s3)
    installs(stub, owner)
    assert on_event(event("Create"), None, s3=s3) == {"PhysicalResourceId": owner}


def test_another_bucket_is_another_resource(s3: Any, stub: Stubber, owner: str) -> None:
    stub.add_response("list_objects_v2", {}, None)
    stub.add_response("get_object", {"Body": archive(setup="a")}, None)
    stub.add_response("put_object", {}, None)
    stub.add_response("put_object", {}, None)
    answer = on_event(event("Update", bucket="sagemaker-y", PhysicalResourceId=owner), None, s3=s3)
    assert answer["PhysicalResourceId"] != owner


def test_delete_removes_what_it_wrote_and_nothing_else(s3: Any, stub: Stubber, owner: str) -> None:
    lists(stub, ".fmblocks/bundles/", marker(PREFIX, owner), marker(OLD, owner), marker("cc33", "bundle-other"))
    for prefix in (PREFIX, OLD):
        lists(stub, f"{prefix}/", f"{prefix}/setup.sh")
        deletes(stub, f"{prefix}/setup.sh")
        deletes(stub, marker(prefix, owner))
    assert on_event(event("Delete", PhysicalResourceId=owner), None, s3=s3) == {"PhysicalResourceId": owner}


def test_delete_leaves_a_prefix_that_another_bundle_uses(s3: Any, stub: Stubber, owner: str) -> None:
    lists(stub, ".fmblocks/bundles/", marker(PREFIX, "bundle-other"), marker(PREFIX, owner))
    deletes(stub, marker(PREFIX, owner))
    on_event(event("Delete", PhysicalResourceId=owner), None, s3=s3)


def test_delete_again_finds_nothing(s3: Any, stub: Stubber, owner: str) -> None:
    lists(stub, ".fmblocks/bundles/")
    on_event(event("Delete", PhysicalResourceId=owner), None, s3=s3)


def test_a_bucket_that_is_gone_is_no_error(s3: Any, stub: Stubber, owner: str) -> None:
    stub.add_client_error("list_objects_v2", "NoSuchBucket")
    assert on_event(event("Delete", PhysicalResourceId=owner), None, s3=s3) == {"PhysicalResourceId": owner}


def test_an_earlier_bucket_out_of_reach_is_left(
    s3: Any, stub: Stubber, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the bucket changes, the role of the function has moved on before CloudFormation cleans up."""
    monkeypatch.setenv("BUCKET", "sagemaker-new")
    stub.add_client_error("list_objects_v2", "AccessDenied")
    assert on_event(event("Delete", PhysicalResourceId=owner), None, s3=s3) == {"PhysicalResourceId": owner}


def test_a_refusal_is_not_hidden(s3: Any, stub: Stubber, owner: str) -> None:
    stub.add_client_error("list_objects_v2", "AccessDenied")
    with pytest.raises(ClientError, match="AccessDenied"):
        on_event(event("Delete", PhysicalResourceId=owner), None, s3=s3)


@pytest.mark.parametrize("name", ["../escape", "/etc/passwd", "a/../../b"])
def test_a_path_that_leaves_the_prefix_is_refused(s3: Any, stub: Stubber, owner: str, name: str) -> None:
    lists(stub, marker(PREFIX, owner))
    stub.add_response("get_object", {"Body": archive(**{name: "x"})}, None)
    with pytest.raises(ValueError, match="a path that leaves it"):
        on_event(event("Create"), None, s3=s3)


def test_throttling_is_waited_out(s3: Any, owner: str, answer_with: Any) -> None:
    slow = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
    answers = [(503, slow), (503, slow), (200, b"<ListBucketResult/>")]

    answer_with(s3, answers)
    on_event(event("Delete", PhysicalResourceId=owner), None, s3=s3)
    assert answers == []
