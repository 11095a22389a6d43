"""What the people of a team may do in Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping
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


class TeamAccess(Construct):
    """An access entry for each member, and a role in the team's namespace: jobs, logs, shells in their own pods.

    Nothing of other teams, no nodes, no roles. Members need no policy of EKS beside it.

    Args:
        cluster: with a kubectl provider and access entries.
        team_name: of the group fmblocks:team:<name>, to which members belong.
        namespace: that exists once ``after`` is made.
        members: ARNs of IAM roles and users by a name that stays; each of one team only.
        after: what makes the namespace. Default: it is there.

    Attributes:
        entries: by member.

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
        team_name: str,
        namespace: str,
        members: Mapping[str, str],
        after: IDependable | None = None,
    ) -> None:
        super().__init__(scope, id)
        group = f"fmblocks:team:{team_name}"
        self.entries = {}
        for name, arn in sorted(members.items()):
            if unresolved(arn):
                text = "is a token: the access entry could have no name that stays"
                raise FindingsError([fault(f"members.{name}", text, "write the ARN")])
            self.entries[name] = eks.CfnAccessEntry(
                self,
                f"Member-{name}",
                cluster_name=cluster.cluster_name,
                principal_arn=arn,
                type="STANDARD",
                kubernetes_groups=[group],
            )
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
