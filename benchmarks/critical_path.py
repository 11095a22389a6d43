"""The longest chain of slow resources that wait for each other, for each example.

Run it with ``make bench``. It counts steps, not minutes: for most of them AWS names none. TrainingStack waits for all
of FoundationStack and CapacityStack, so that their chains stand one behind the other. What is slow beside a chain
starts while it is made.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from fmblocks.guard.templates import references

ROOT = Path(__file__).parent.parent
# What CloudFormation waits for, which is machines or a service's own workflow; everything else is an entry in a table.
SLOW = {
    "AWS::AutoScaling::AutoScalingGroup": "fleet",
    "AWS::EC2::NatGateway": "NAT gateway",
    "AWS::EC2::VPCEndpoint": "endpoint",
    "AWS::EKS::Addon": "add-on",
    "AWS::EKS::Cluster": "EKS control plane",
    "AWS::EKS::Nodegroup": "node group",
    "AWS::FSx::DataRepositoryAssociation": "association",
    "AWS::FSx::FileSystem": "file system",
    "AWS::PCS::Cluster": "PCS controller",
    "AWS::PCS::ComputeNodeGroup": "node group",
    "AWS::RDS::DBCluster": "database",
    "AWS::RDS::DBInstance": "database instance",
    "AWS::SageMaker::Cluster": "HyperPod cluster",
    "Custom::AWSCDK-EKS-HelmChart": "chart",
    "Custom::HyperPodReady": "first node of HyperPod",
}
Resources = Mapping[str, Mapping[str, Any]]


def main() -> None:
    """Print the chains."""
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    for project in sorted((ROOT / "projects").glob("*.yaml")):
        with tempfile.TemporaryDirectory() as out:
            told = json.dumps({**context, "project": str(project), "charts": str(ROOT / "tests/charts")})
            environment = {**os.environ, "CDK_OUTDIR": out, "CDK_CONTEXT_JSON": told}
            subprocess.run([sys.executable, "app.py"], cwd=ROOT, env=environment, check=True, stderr=subprocess.DEVNULL)
            print(f"\n{project.stem}")
            for stack in ("FoundationStack", "CapacityStack", "TrainingStack"):
                file = Path(out) / f"{stack}.template.json"
                if file.exists():
                    _print(stack, json.loads(file.read_text()).get("Resources", {}))


def _print(stack: str, resources: Resources) -> None:
    longest = chain(resources)
    beside = [id for id, one in resources.items() if one["Type"] in SLOW and id not in longest]
    shown = " → ".join(f"{SLOW[resources[id]['Type']]} {id}" for id in longest)
    print(f"  {stack}: {len(longest)} steps: {shown or 'nothing slow'}; {len(beside)} slow ones beside them")


def chain(resources: Resources) -> tuple[str, ...]:
    """The longest chain of slow resources, in the order of their creation."""

    @cache
    def ending_with(id: str) -> tuple[str, ...]:
        resource = resources[id]
        after = {one.target for one in references(resource.get("Properties"))}
        waits = resource.get("DependsOn", [])
        after |= {waits} if isinstance(waits, str) else set(waits)
        before = max((ending_with(one) for one in sorted(after) if one in resources), key=len, default=())
        return (*before, id) if resource["Type"] in SLOW else before

    return max((ending_with(id) for id in sorted(resources)), key=len, default=())


if __name__ == "__main__":
    main()
