"""The waiter for nodes: every request CloudFormation and CDK's framework can send."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from fmblocks_lambda.hyperpod_nodes import _RETRIES, is_complete, on_event

ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"


@pytest.fixture
def sagemaker() -> Any:
    return boto3.client(
        "sagemaker", region_name="us-west-2", aws_access_key_id="x", aws_secret_access_key="x", config=_RETRIES
    )


@pytest.fixture
def stub(sagemaker: Any) -> Iterator[Stubber]:
    with Stubber(sagemaker) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


def event(kind: str, count: int = 1, *, karpenter: bool = False, **more: Any) -> dict[str, Any]:
    properties = {"ClusterArn": ARN, "Nodes": str(count), "Karpenter": "true" if karpenter else "false"}
    return {"RequestType": kind, "ResourceProperties": properties, **more}


def described(status: str | None) -> dict[str, Any]:
    scaling = {"AutoScaling": {"Mode": "Enable", "Status": status}} if status else {}
    return {"ClusterArn": ARN, "ClusterStatus": "InService", "InstanceGroups": [], **scaling}


def nodes(*states: str, token: str | None = None) -> dict[str, Any]:
    listed = [
        {
            "InstanceGroupName": "gpu",
            "InstanceId": f"i-{at:017x}",
            "InstanceType": "ml.p5.48xlarge",
            "LaunchTime": datetime.datetime(2026, 12, 1, tzinfo=datetime.UTC),
            "InstanceStatus": {"Status": state},
        }
        for at, state in enumerate(states)
    ]
    return {"ClusterNodeSummaries": listed, **({"NextToken": token} if token else {"NextToken": ""})}


@pytest.mark.parametrize("kind", ["Create", "Update", "Delete"])
def test_there_is_nothing_to_make(kind: str) -> None:
    """The id stays on every request, so that no update deletes anything."""
    assert on_event(event(kind), None) == {"PhysicalResourceId": ARN}


def test_without_nodes_it_waits(sagemaker: Any, stub: Stubber) -> None:
    stub.add_response("list_cluster_nodes", nodes(), {"ClusterName": ARN})
    assert is_complete(event("Create"), None, sagemaker=sagemaker) == {"IsComplete": False}


def test_a_node_that_comes_up_is_none_yet(sagemaker: Any, stub: Stubber) -> None:
    stub.add_response(
        "list_cluster_nodes", nodes("Pending", "DeepHealthCheckInProgress", "Failure"), {"ClusterName": ARN}
    )
    assert is_complete(event("Create"), None, sagemaker=sagemaker) == {"IsComplete": False}


def test_nodes_are_counted_over_pages(sagemaker: Any, stub: Stubber) -> None:
    stub.add_response("list_cluster_nodes", nodes("Running", "Pending", token="next"), {"ClusterName": ARN})
    stub.add_response("list_cluster_nodes", nodes("Running"), {"ClusterName": ARN, "NextToken": "next"})
    assert is_complete(event("Update", 2), None, sagemaker=sagemaker) == {"IsComplete": True}


def test_it_asks_no_more_than_it_has_to(sagemaker: Any, stub: Stubber) -> None:
    stub.add_response("list_cluster_nodes", nodes("Running", token="next"), {"ClusterName": ARN})
    assert is_complete(event("Create"), None, sagemaker=sagemaker) == {"IsComplete": True}


def test_karpenter_is_waited_for_before_nodes_are_counted(sagemaker: Any, stub: Stubber) -> None:
    for status, done in ((None, False), ("Creating", False), ("InService", True)):
        stub.add_response("describe_cluster", described(status), {"ClusterName": ARN})
        asked = event("Create", 0, karpenter=True)
        assert is_complete(asked, None, sagemaker=sagemaker) == {"IsComplete": done}


def test_a_karpenter_that_failed_ends_the_wait(sagemaker: Any, stub: Stubber) -> None:
    stub.add_response("describe_cluster", described("Failed"), {"ClusterName": ARN})
    with pytest.raises(RuntimeError, match="the autoscaling of arn:aws:sagemaker"):
        is_complete(event("Create", 0, karpenter=True), None, sagemaker=sagemaker)


def test_delete_waits_for_nothing(sagemaker: Any, stub: Stubber) -> None:
    """The cluster may be gone already, and every repeat says the same."""
    for _ in range(2):
        assert is_complete(event("Delete", PhysicalResourceId=ARN), None, sagemaker=sagemaker) == {"IsComplete": True}


def test_throttling_is_waited_out(sagemaker: Any, answer_with: Any) -> None:
    answers = [(400, b'{"__type": "ThrottlingException"}')] * 2 + [(200, b'{"ClusterNodeSummaries": []}')]
    answer_with(sagemaker, answers)
    assert is_complete(event("Create"), None, sagemaker=sagemaker) == {"IsComplete": False}
    assert answers == []


def test_what_goes_on_failing_is_said(sagemaker: Any, stub: Stubber) -> None:
    """It ends the deployment with AWS's words."""
    stub.add_client_error("list_cluster_nodes", "ResourceNotFound", "no such cluster", 400)
    with pytest.raises(ClientError, match="no such cluster"):
        is_complete(event("Create"), None, sagemaker=sagemaker)
