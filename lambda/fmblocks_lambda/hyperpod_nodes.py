"""Waits until a HyperPod cluster is as far as what comes next needs it.

With continuous provisioning a cluster is in service before its first node is; add-ons that run on its nodes, and whose
installation fails without one, wait here. So do objects of its Karpenter, whose kinds come some time after the cluster.
CloudFormation has no resource for either.
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
    """Say whether as many nodes run as are waited for, and whether Karpenter is there where it is.

    Raises:
        RuntimeError: Karpenter failed; the deployment ends with that.
    """
    if event["RequestType"] == "Delete":
        return {"IsComplete": True}
    properties = event["ResourceProperties"]
    arn, client = properties["ClusterArn"], sagemaker or boto3.client("sagemaker", config=_RETRIES)
    if properties["Karpenter"] == "true":
        status = client.describe_cluster(ClusterName=arn).get("AutoScaling", {}).get("Status")
        if status == "Failed":
            raise RuntimeError(f"the autoscaling of {arn} failed")
        if status != "InService":
            return {"IsComplete": False}
    return {"IsComplete": _nodes_run(arn, int(properties["Nodes"]), client)}


def _nodes_run(arn: str, wanted: int, client: SageMakerClient) -> bool:
    running = 0
    pages = client.get_paginator("list_cluster_nodes").paginate(ClusterName=arn) if wanted else ()
    for page in pages:
        running += sum(one["InstanceStatus"]["Status"] == "Running" for one in page["ClusterNodeSummaries"])
        if running >= wanted:
            return True
    return running >= wanted
