"""The lock on the default security group: every request CloudFormation can send."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from fmblocks_lambda.default_security_group import _RETRIES, on_event

GROUP = "sg-0aaa"


@pytest.fixture
def ec2() -> Any:
    return boto3.client(
        "ec2", region_name="us-west-2", aws_access_key_id="x", aws_secret_access_key="x", config=_RETRIES
    )


@pytest.fixture
def stub(ec2: Any) -> Iterator[Stubber]:
    with Stubber(ec2) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


def event(kind: str, group: str = GROUP, **more: Any) -> dict[str, Any]:
    return {"RequestType": kind, "ResourceProperties": {"SecurityGroupId": group}, **more}


def rules(*found: tuple[str, bool], token: str | None = None) -> dict[str, Any]:
    listed = [{"SecurityGroupRuleId": id, "IsEgress": egress} for id, egress in found]
    return {"SecurityGroupRules": listed, **({"NextToken": token} if token else {})}


WHICH = {"Filters": [{"Name": "group-id", "Values": [GROUP]}]}


def test_create_empties_the_group_page_by_page(ec2: Any, stub: Stubber) -> None:
    stub.add_response("describe_security_group_rules", rules(("sgr-1", False), token="next"), WHICH)
    stub.add_response("describe_security_group_rules", rules(("sgr-2", True)), {**WHICH, "NextToken": "next"})
    gone: dict[str, Any] = {"Return": True}
    stub.add_response("revoke_security_group_ingress", gone, {"GroupId": GROUP, "SecurityGroupRuleIds": ["sgr-1"]})
    stub.add_response("revoke_security_group_egress", gone, {"GroupId": GROUP, "SecurityGroupRuleIds": ["sgr-2"]})
    assert on_event(event("Create"), None, ec2=ec2) == {"PhysicalResourceId": GROUP}


def test_half_done_is_finished(ec2: Any, stub: Stubber) -> None:
    """The first try took the inbound rule away and then failed."""
    stub.add_response("describe_security_group_rules", rules(("sgr-2", True)), WHICH)
    stub.add_response(
        "revoke_security_group_egress", {"Return": True}, {"GroupId": GROUP, "SecurityGroupRuleIds": ["sgr-2"]}
    )
    on_event(event("Create"), None, ec2=ec2)


def test_an_empty_group_is_left_alone(ec2: Any, stub: Stubber) -> None:
    stub.add_response("describe_security_group_rules", rules(), WHICH)
    answer = on_event(event("Update", PhysicalResourceId=GROUP), None, ec2=ec2)
    assert answer == {"PhysicalResourceId": GROUP}


def test_another_group_is_another_resource(ec2: Any, stub: Stubber) -> None:
    """So CloudFormation deletes the former one, which does nothing."""
    stub.add_response(
        "describe_security_group_rules", rules(), {"Filters": [{"Name": "group-id", "Values": ["sg-0b"]}]}
    )
    answer = on_event(event("Update", "sg-0b", PhysicalResourceId=GROUP), None, ec2=ec2)
    assert answer == {"PhysicalResourceId": "sg-0b"}


def test_delete_calls_nothing_twice(ec2: Any, stub: Stubber) -> None:
    for _ in range(2):
        assert on_event(event("Delete", PhysicalResourceId=GROUP), None, ec2=ec2) == {"PhysicalResourceId": GROUP}


def test_a_refusal_is_not_hidden(ec2: Any, stub: Stubber) -> None:
    stub.add_client_error("describe_security_group_rules", "UnauthorizedOperation", "no")
    with pytest.raises(ClientError, match="UnauthorizedOperation"):
        on_event(event("Create"), None, ec2=ec2)


def test_throttling_is_waited_out(ec2: Any, answer_with: Any) -> None:
    throttled = b"<Response><Errors><Error><Code>RequestLimitExceeded</Code><Message/></Error></Errors></Response>"
    empty = b"<DescribeSecurityGroupRulesResponse><securityGroupRuleSet/></DescribeSecurityGroupRulesResponse>"
    answers = [(503, throttled), (503, throttled), (200, empty)]

    answer_with(ec2, answers)
    on_event(event("Create"), None, ec2=ec2)
    assert answers == []
