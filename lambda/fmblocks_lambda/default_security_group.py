"""Takes every rule off the default security group of a VPC.

A network interface that names no group lands in the default one, which allows everything between its members. Nothing
of ours uses it, so it is emptied. CloudFormation has no resource for its rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client

_RETRIES = Config(retries={"mode": "standard", "max_attempts": 10})


def on_event(event: dict[str, Any], _context: object, *, ec2: EC2Client | None = None) -> dict[str, Any]:
    """Handle one CloudFormation request.

    Create and Update empty the group; Delete leaves it empty: the VPC may be kept, and a VPC that is not takes the
    group with it.
    """
    group = event["ResourceProperties"]["SecurityGroupId"]
    if event["RequestType"] != "Delete":
        _empty(group, ec2 or boto3.client("ec2", config=_RETRIES))
    return {"PhysicalResourceId": group}


def _empty(group: str, ec2: EC2Client) -> None:
    ingress: list[str] = []
    egress: list[str] = []
    pages = ec2.get_paginator("describe_security_group_rules").paginate(
        Filters=[{"Name": "group-id", "Values": [group]}]
    )
    for page in pages:
        for rule in page["SecurityGroupRules"]:
            (egress if rule["IsEgress"] else ingress).append(rule["SecurityGroupRuleId"])
    if ingress:
        ec2.revoke_security_group_ingress(GroupId=group, SecurityGroupRuleIds=ingress)
    if egress:
        ec2.revoke_security_group_egress(GroupId=group, SecurityGroupRuleIds=egress)
