"""HyperPod's own chart on an EKS cluster: health agents, and what restarts jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from fmblocks._edge import check_arguments, instance_types, typed
from fmblocks.catalog import normalise
from fmblocks.cluster import rules
from fmblocks.cluster.add_ons import laid_over
from fmblocks.cluster.dependency_chart import dependencies
from fmblocks.cluster.prepared import wait_until_ready
from fmblocks.compute import rules as compute_rules  # noqa: F401  registers FMB-09

_RELEASE, _NAMESPACE = "hyperpod-dependencies", "kube-system"


class HyperPodDependencies(Construct):
    """The chart that HyperPod asks for before its first node, from a folder that ``fmblocks chart pull`` fetched.

    What it switches on follows from the types of the groups. Off are: device plugins, whose lists of types there miss
    new ones (:class:`DevicePlugins` selects by labels); cert-manager, which is an add-on of every :class:`EksCluster`;
    operators of inference, GPU sharing and Ray endpoints; roles and bindings, which teams bring. It is not waited for:
    its agents run on nodes of HyperPod, which wait for it.

    Source: SageMaker AI Developer Guide, *Install packages on the Amazon EKS cluster using Helm*.

    Args:
        cluster: with a kubectl provider.
        path: the chart's folder, with the charts it is made of.
        types: the instance types of HyperPod's groups.
        training_operator: whether HyperPod's add-on of that name runs jobs; Kubeflow's operator is off then.
            Default: False.
        values: laid over ours; keys that the chart does not have are refused. Default: none.

    Attributes:
        chart: the release.
        values: what it gets.

    Raises:
        FindingsError: rules FMB-09, FMB-23, FMB-100.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: eks.ICluster | eks.Cluster,
        path: str | Path,
        types: Sequence[str],
        training_operator: bool = False,
        values: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(scope, id)
        known, kinds = instance_types(self), []
        for name in sorted(set(map(normalise, types))):
            check_arguments(self, ("FMB-09",), {"instance_type": name, "types": known})
            kinds.append(known[name])
        # Without its folder nothing can be told about it, so what is only advice in a project file is refused here.
        if not (Path(path) / "Chart.yaml").is_file():
            rules.refuse_without_chart(str(path))
        parts = dependencies(Path(path))
        region = cdk.Stack.of(self).region
        accelerated = any(kind.accelerator_count for kind in kinds)
        switches = {
            "cert-manager": False,
            "training-operators": not training_operator,
            "nvidia-device-plugin": False,
            "aws-efa-k8s-device-plugin": False,
            "neuron-device-plugin": False,
            "health-monitoring-agent": accelerated,
            # It brings the namespace that the others use.
            "deep-health-check": True,
            "job-auto-restart": True,
            "cluster-role-and-bindings": False,
            "namespaced-role-and-bindings": False,
            "team-role-and-bindings": False,
            "hyperpod-inference-operator": False,
            "gpu-operator": False,
            "hyperpod-ray-endpoint-operator": False,
        }
        ours: dict[str, Any] = {}
        for part, on in switches.items():
            # A part whose switch is nowhere set is on: Helm, *Tags and Condition fields in dependencies*.
            if condition := parts.get(part):
                _set(ours, condition, on)
        if accelerated and "health-monitoring-agent" in parts:
            # It looks for the Region on nodes, which are not there yet, and falls back to one whose image may not be.
            _set(ours, "health-monitoring-agent.region", region)
            _set(ours, "global.region", region)
        self.values = laid_over(ours, values or {})
        told = {"chart": str(path), "chart_values": _without_tokens(self.values)}
        check_arguments(self, ("FMB-100",), told, names={"kubernetes.dependency_chart": "values"})
        asset = assets.Asset(self, "Folder", path=str(path))
        self.chart = eks.HelmChart(
            self,
            "Chart",
            cluster=cast(eks.ICluster, cluster),
            chart_asset=asset,
            release=_RELEASE,
            namespace=_NAMESPACE,
            values=self.values,
            wait=False,
        )
        wait_until_ready(self.chart, cluster)


def _set(values: dict[str, Any], path: str, value: object) -> None:
    *way, last = path.split(".")
    for step in way:
        values = values.setdefault(step, {})
    values[last] = value


def _without_tokens(values: Mapping[str, object]) -> dict[str, object]:
    """The keys alone: what they are set to may be known at deployment only."""
    return {key: _without_tokens(value) if isinstance(value, Mapping) else None for key, value in values.items()}
