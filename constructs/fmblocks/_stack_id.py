"""A part of names that is another one for a stack that is made again."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct


def end_of_stack_id(scope: Construct) -> str:
    """The last group of the UUID in the id of the stack around ``scope`` (a token)."""
    uuid = cdk.Fn.select(2, cdk.Fn.split("/", cdk.Stack.of(scope).stack_id))
    return cdk.Fn.select(4, cdk.Fn.split("-", uuid))
