"""What the people of a team may do in Kubernetes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct, IDependable

from fmblocks._edge import fault, typed, unresolved
from fmblocks.cluster.prepared import wait_until_ready
from fmblocks.findings import FindingsError

_ALL = ("get", "list", "watch", "create", "update", "patch", "delete")
_SEE = ("get", "list", "watch")
# What training jobs are made of, and what people look at. Kinds: SageMaker AI Developer Guide, *Set up Kubernetes
# role-based access control*; HyperPod's training operator; Kueue; KubeRay; JobSet.
_IN_NAMESPACE: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("", ("pods", "configmaps", "secrets", "services", "persistentvolumeclaims", "serviceaccounts"), _ALL),
    ("", ("pods/log", "pods/status", "events", "resourcequotas"), _SEE),
    ("", ("pods/exec", "pods/portforward"), ("get", "create")),
    ("batch", ("jobs", "jobs/status"), _ALL),
    ("apps", ("deployments", "statefulsets"), _ALL),
    ("kubeflow.org", ("pytorchjobs", "pytorchjobs/status", "mpijobs", "mpijobs/status"), _ALL),
    ("sagemaker.amazonaws.com", ("hyperpodpytorchjobs", "hyperpodpytorchjobs/status"), _ALL),
    ("jobset.x-k8s.io", ("jobsets", "jobsets/status"), _ALL),
    ("ray.io", ("rayclusters", "rayjobs"), _ALL),
    ("kueue.x-k8s.io", ("workloads", "workloads/status", "localqueues"), _SEE),
)
# What has no namespace and tells people why their job waits.
_ABROAD: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("", ("nodes", "namespaces", "persistentvolumes"), _SEE),
    ("kueue.x-k8s.io", ("clusterqueues", "resourceflavors", "workloadpriorityclasses"), _SEE),
    ("scheduling.k8s.io", ("priorityclasses",), _SEE),
)


def team_group(team_name: str) -> str:
    """What the people of a team are in Kubernetes."""
    return f"fmblocks:team:{team_name}"


class TeamMembers(Construct):
    """An access entry for each person, with the groups they are in: somebody who changes teams keeps theirs.

    People need no policy of EKS beside it.

    Args:
        cluster: with access entries.
        members: names of teams by the ARN of an IAM role or user.

    Raises:
        FindingsError: an ARN is a token: access entries are named after them.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: eks.ICluster | eks.Cluster,
        members: Mapping[str, Sequence[str]],
    ) -> None:
        super().__init__(scope, id)
        for arn, teams in sorted(members.items()):
            if unresolved(arn):
                text = "is a token: the access entry could have no name that stays"
                raise FindingsError([fault("members", text, "write the ARN")])
            # After the ARN, which is the entry's name: two of one principal cannot be, not even for a moment.
            eks.CfnAccessEntry(
                self,
                hashlib.sha256(arn.encode()).hexdigest()[:8],
                cluster_name=cluster.cluster_name,
                principal_arn=arn,
                type="STANDARD",
                kubernetes_groups=[team_group(team) for team in teams],
            )


class TeamAccess(Construct):
    """A role in the team's namespace for its group: jobs, logs, shells in its own pods; and sight of nodes and queues.

    :class:`TeamMembers` says who is in the group. Nothing of other namespaces is given; what pods may do on a node is
    Kubernetes' own matter (*Pod Security Standards*), and a file system that is mounted is everybody's.

    Args:
        cluster: with a kubectl provider and access entries.
        team_name: of the group fmblocks:team:<name>.
        namespace: that exists once ``after`` is made.
        after: what makes the namespace. Default: it is there.

    Attributes:
        group_name: of the team's people.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: eks.ICluster | eks.Cluster,
        team_name: str,
        namespace: str,
        after: IDependable | None = None,
    ) -> None:
        super().__init__(scope, id)
        group = self.group_name = team_group(team_name)
        self.manifest = eks.KubernetesManifest(
            self,
            "Role",
            cluster=cast(eks.ICluster, cluster),
            manifest=[
                *_role("Role", f"fmblocks-team-{team_name}", namespace, group, _IN_NAMESPACE),
                *_role("ClusterRole", f"fmblocks-team-{team_name}", None, group, _ABROAD),
            ],
        )
        wait_until_ready(self.manifest, cluster)
        if after is not None:
            self.manifest.node.add_dependency(after)


def _role(
    kind: str,
    name: str,
    namespace: str | None,
    group: str,
    rules: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...],
) -> list[dict[str, Any]]:
    api = "rbac.authorization.k8s.io"
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return [
        {
            "apiVersion": f"{api}/v1",
            "kind": kind,
            "metadata": metadata,
            "rules": [
                {"apiGroups": [of], "resources": list(resources), "verbs": list(verbs)}
                for of, resources, verbs in rules
            ],
        },
        {
            "apiVersion": f"{api}/v1",
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": {"apiGroup": api, "kind": kind, "name": name},
            "subjects": [{"apiGroup": api, "kind": "Group", "name": group}],
        },
    ]
