"""Waits until nodes of a HyperPod cluster run.

With continuous provisioning a cluster is in service before its first node is; add-ons that run on its nodes, and whose
installation fails without one, wait here. CloudFormation has no resource for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_sagemaker.client import SageMakerClient

_RETRIES = Config(retries={"mode": "standard", "max_attempts": 10})


def on_event(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Begin to wait: there is nothing to make, and nothing to delete."""
    return {"PhysicalResourceId": event["ResourceProperties"]["ClusterArn"]}


def is_complete(event: dict[str, Any], _context: object, *, sagemaker: SageMakerClient | None = None) -> dict[str, Any]:
    """Say whether as many nodes run as are waited for."""
    if event["RequestType"] == "Delete":
        return {"IsComplete": True}
    wanted, running = int(event["ResourceProperties"]["Count"]), 0
    client = sagemaker or boto3.client("sagemaker", config=_RETRIES)
    pages = client.get_paginator("list_cluster_nodes").paginate(ClusterName=event["ResourceProperties"]["ClusterArn"])
    for page in pages:
        running += sum(one["InstanceStatus"]["Status"] == "Running" for one in page["ClusterNodeSummaries"])
        if running >= wanted:
            return {"IsComplete": True}
    return {"IsComplete": False}
