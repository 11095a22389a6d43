"""The bucket that goes with its stack: every request CloudFormation can send."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from fmblocks_lambda.emptied_bucket import _RETRIES, on_event


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


def event(kind: str, bucket: str = "mine") -> dict[str, Any]:
    return {"RequestType": kind, "ResourceProperties": {"Bucket": bucket}, "PhysicalResourceId": bucket}


def listed(*keys: str, markers: tuple[str, ...] = (), more: str | None = None) -> dict[str, Any]:
    page: dict[str, Any] = {
        "Versions": [{"Key": key, "VersionId": "v"} for key in keys],
        "DeleteMarkers": [{"Key": key, "VersionId": "m"} for key in markers],
    }
    return {**page, "IsTruncated": bool(more), **({"NextKeyMarker": more, "NextVersionIdMarker": "v"} if more else {})}


def deleted(*objects: tuple[str, str]) -> dict[str, Any]:
    return {"Bucket": "mine", "Delete": {"Objects": [{"Key": k, "VersionId": v} for k, v in objects], "Quiet": True}}


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_nothing_happens_before_the_deletion(s3: Any, stub: Stubber, kind: str) -> None:
    assert on_event(event(kind), None, s3=s3) == {"PhysicalResourceId": "mine"}


def test_another_bucket_is_another_resource(s3: Any, stub: Stubber) -> None:
    """So that CloudFormation asks for the former one to be emptied."""
    assert on_event(event("Update", "other"), None, s3=s3) == {"PhysicalResourceId": "other"}


def test_delete_takes_every_version_page_by_page(s3: Any, stub: Stubber) -> None:
    stub.add_response("list_object_versions", listed("a", more="a"), {"Bucket": "mine"})
    stub.add_response("delete_objects", {}, deleted(("a", "v")))
    again = {"Bucket": "mine", "KeyMarker": "a", "VersionIdMarker": "v"}
    stub.add_response("list_object_versions", listed("b", markers=("c",)), again)
    stub.add_response("delete_objects", {}, deleted(("b", "v"), ("c", "m")))
    assert on_event(event("Delete"), None, s3=s3) == {"PhysicalResourceId": "mine"}


def test_delete_again_finds_nothing(s3: Any, stub: Stubber) -> None:
    stub.add_response("list_object_versions", {"IsTruncated": False}, {"Bucket": "mine"})
    on_event(event("Delete"), None, s3=s3)


def test_a_bucket_that_is_gone_is_empty(s3: Any, stub: Stubber) -> None:
    stub.add_client_error("list_object_versions", "NoSuchBucket", "gone", 404)
    on_event(event("Delete"), None, s3=s3)


def test_half_done_is_told_and_finished_by_the_next_request(s3: Any, stub: Stubber) -> None:
    stub.add_response("list_object_versions", listed("a", "b"), {"Bucket": "mine"})
    left = {"Errors": [{"Key": "b", "Code": "InternalError"}]}
    stub.add_response("delete_objects", left, deleted(("a", "v"), ("b", "v")))
    with pytest.raises(RuntimeError, match=r"1 objects stay, the first: .*InternalError"):
        on_event(event("Delete"), None, s3=s3)
    stub.add_response("list_object_versions", listed("b"), {"Bucket": "mine"})
    stub.add_response("delete_objects", {}, deleted(("b", "v")))
    on_event(event("Delete"), None, s3=s3)


def test_a_refusal_is_not_hidden(s3: Any, stub: Stubber) -> None:
    stub.add_client_error("list_object_versions", "AccessDenied", "no", 403)
    with pytest.raises(ClientError, match="AccessDenied"):
        on_event(event("Delete"), None, s3=s3)


def test_throttling_is_waited_out(s3: Any, answer_with: Any) -> None:
    slow = b"<Error><Code>SlowDown</Code><Message/></Error>"
    empty = b"<ListVersionsResult><IsTruncated>false</IsTruncated></ListVersionsResult>"
    answers = [(503, slow), (503, slow), (200, empty)]
    answer_with(s3, answers)
    on_event(event("Delete"), None, s3=s3)
    assert answers == []
