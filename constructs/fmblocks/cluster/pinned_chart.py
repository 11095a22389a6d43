"""How charts of ours are installed: in a pinned version, from a place, waited for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from fmblocks.cluster.images import Chart
from fmblocks.cluster.prepared import wait_until_ready

# Less than the 15 minutes of CDK's function, which would otherwise end without an answer: the stack waits an hour then.
_TIMEOUT = cdk.Duration.minutes(10)


def pinned_chart(
    scope: Construct,
    id: str,
    *,
    cluster: eks.ICluster | eks.Cluster,
    chart: Chart,
    namespace: str,
    registry: str | None,
    values: Mapping[str, Any] | None = None,
    skip_crds: bool | None = None,
) -> eks.HelmChart:
    """Install a chart as the release of its name, from ``registry`` where a project mirrors it."""
    made = eks.HelmChart(
        scope,
        id,
        cluster=cast(eks.ICluster, cluster),
        chart=chart.name,
        release=chart.name,
        repository=f"{registry.rstrip('/')}/{chart.name}" if registry else chart.repository,
        version=chart.version,
        namespace=namespace,
        values=values,
        skip_crds=skip_crds,
        # What follows is answered by webhooks and controllers of the chart.
        wait=True,
        timeout=_TIMEOUT,
    )
    wait_until_ready(made, cluster)
    return made
