"""What tests of constructs stand on."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2

import fmblocks as fm


@pytest.fixture
def stack(cdk_context: dict[str, Any]) -> cdk.Stack:
    app = cdk.App(context=cdk_context)
    return cdk.Stack(app, "S", env=cdk.Environment(account="111122223333", region="us-west-2"))


@pytest.fixture
def vpc(stack: cdk.Stack) -> ec2.Vpc:
    # Two zones without asking AWS for their names.
    return ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2a", "us-west-2b"])


@pytest.fixture
def fabric(stack: cdk.Stack, vpc: ec2.Vpc) -> fm.EfaSecurityGroup:
    return fm.EfaSecurityGroup(stack, "Fabric", vpc=vpc)
