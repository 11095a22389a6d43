"""EKS and what CDK applies to its clusters.

There is no Kubernetes behind it: nothing is started, neither here nor on the host. ministack keeps the records of
clusters and node groups, which ``aws eks`` shows; the types below are checked by CloudFormation's schemas, manifests by
those of Kubernetes, and kinds that a chart brings by ours, once that chart is there.
"""

from __future__ import annotations

import functools
import io
import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

from fmblocks.local.server.engine import (
    Attributes,
    Created,
    Handler,
    Properties,
    call_ec2,
    call_eks,
    call_iam,
    checked,
    eks_cluster,
    environment,
    register,
    stored,
    unique,
    without_containers,
)
from fmblocks.local.server.schema_types import Record, live, validate

_MANIFEST, _CHART = "Custom::AWSCDK-EKS-KubernetesResource", "Custom::AWSCDK-EKS-HelmChart"
_VALUE = "Custom::AWSCDK-EKS-KubernetesObjectValue"
# Stands for what a HyperPod cluster brings that starts its nodes with Karpenter.
_HYPERPOD_KARPENTER = "hyperpod-karpenter"
# Which charts bring the kinds of an API group.
_BROUGHT_BY = {
    "kueue.x-k8s.io": ("kueue",),
    "karpenter.sh": ("karpenter-crd", _HYPERPOD_KARPENTER),
    "karpenter.k8s.aws": ("karpenter-crd",),
    "karpenter.sagemaker.amazonaws.com": (_HYPERPOD_KARPENTER,),
    "leaderworkerset.x-k8s.io": ("lws",),
    "keda.sh": ("keda",),
    "inference.sagemaker.aws.amazon.com": ("amazon-sagemaker-hyperpod-inference",),
}
# What HyperPod's inference operator looks for before it is installed, and what it brings itself. Source: SageMaker AI
# Developer Guide, *Setting up your HyperPod clusters for model deployment*.
_INFERENCE = "amazon-sagemaker-hyperpod-inference"
_INFERENCE_NEEDS = ("cert-manager", "metrics-server", "aws-mountpoint-s3-csi-driver", "aws-fsx-csi-driver")
_INFERENCE_KEYS = frozenset(
    {
        "alb", "executionRoleArn", "hyperpodClusterArn", "inferenceGateway", "inferenceOperator",
        "jumpstartGatedModelDownloadRoleArn", "keda", "tlsCertificateS3Bucket",
    }
)  # fmt: skip
# (account, Region, cluster) → release → chart's properties
_CHARTS: dict[tuple[str, str, str], dict[str, Properties]] = {}
# (account, Region, cluster) → manifest → kinds of its objects
_KINDS: dict[tuple[str, str, str], dict[str, set[str]]] = {}
# (account, Region, cluster) → security group
_GROUPS: dict[tuple[str, str, str], str] = {}


def install() -> None:
    """Register the types."""
    without_containers()
    checked(
        "AWS::EKS::Cluster",
        create=lambda properties: _check("AWS::EKS::Cluster", properties),
        update=_check_version,
        created=_make_group,
        deleted=_forget,
    )
    checked(
        "AWS::EKS::Nodegroup",
        create=lambda properties: _check("AWS::EKS::Nodegroup", properties),
        update=lambda _id, properties: _check("AWS::EKS::Nodegroup", properties),
    )
    register("AWS::EKS::Addon", Handler(_create_add_on, _delete_add_on, _update_add_on, ("ClusterName", "AddonName")))
    register(
        "AWS::EKS::AccessEntry", Handler(_let_in, _let_out, _change_entry, ("ClusterName", "PrincipalArn", "Type"))
    )
    register(
        "AWS::EKS::PodIdentityAssociation",
        Handler(_associate, _dissociate, _associate_again, ("ClusterName", "Namespace", "ServiceAccount")),
    )
    register("AWS::IAM::OIDCProvider", Handler(_trust, _distrust, create_only=("Url",)))
    register(_MANIFEST, Handler(_apply, _take_away, _apply_again))
    register(_VALUE, Handler(_look, lambda _id, _properties: None, lambda id, _old, new: (id, _look(new)[1])))
    register(_CHART, Handler(_release, _uninstall, lambda id, _old, new: _upgrade(id, new)))


def _check(kind: str, properties: Properties) -> None:
    validate(kind, properties)


def _check_version(name: str, properties: Properties) -> None:
    """EKS goes up by one minor version at a time, and never down."""
    _check("AWS::EKS::Cluster", properties)
    cluster, wanted = eks_cluster(name), properties.get("Version")
    if cluster is None or wanted is None:
        return
    now, then = (int(str(version).split(".")[1]) for version in (cluster["version"], wanted))
    if then not in (now, now + 1):
        raise ValueError(f"Unsupported Kubernetes minor version update from {cluster['version']} to {wanted}")


def _make_group(name: str, properties: Properties, attributes: Attributes) -> None:
    """The cluster's own security group, a real one: rules name it."""
    subnet = properties["ResourcesVpcConfig"]["SubnetIds"][0]
    vpc = call_ec2("DescribeSubnets", SubnetId__1=subnet).findtext(".//vpcId")
    answer = call_ec2(
        "CreateSecurityGroup",
        GroupName=f"eks-cluster-sg-{name}-{unique(8)}",
        GroupDescription="EKS created security group",
        VpcId=vpc,
    )
    group = answer.findtext(".//groupId") or ""
    cluster = eks_cluster(name)
    assert cluster is not None
    cluster["resourcesVpcConfig"].update(clusterSecurityGroupId=group, vpcId=vpc)
    cluster["certificateAuthority"]["data"] = "bm8gY2x1c3Rlcg=="
    attributes["ClusterSecurityGroupId"] = group
    attributes["CertificateAuthorityData"] = cluster["certificateAuthority"]["data"]
    _GROUPS[*environment(), name] = group


def _forget(name: str) -> None:
    _CHARTS.pop((*environment(), name), None)
    _KINDS.pop((*environment(), name), None)
    if group := _GROUPS.pop((*environment(), name), None):
        call_ec2("DeleteSecurityGroup", GroupId=group)


def _create_add_on(properties: Properties) -> Created:
    typed = validate("AWS::EKS::Addon", properties)
    cluster, name = typed["ClusterName"], typed["AddonName"]
    _parsed(typed)
    if name.startswith("amazon-sagemaker-hyperpod-") and not any(True for _ in _hyperpod_on(cluster)):
        raise ValueError(f"{name} cannot be installed: no HyperPod cluster has nodes in {cluster}")
    if name == _INFERENCE:
        _check_inference(cluster, json.loads(typed.get("ConfigurationValues", "{}")))
    answer = call_eks("_create_addon", cluster, _camel(typed))
    return f"{cluster}|{name}", {"Arn": answer["addon"]["addonArn"]}


def _update_add_on(id: str, _old: Properties, new: Properties) -> Created:
    typed = validate("AWS::EKS::Addon", new)
    _parsed(typed)
    cluster, name = id.split("|")
    call_eks("_update_addon", cluster, name, _camel(typed))
    return id, {"Arn": call_eks("_describe_addon", cluster, name)["addon"]["addonArn"]}


def _parsed(add_on: Properties) -> None:
    """EKS reads configuration values as JSON or YAML; ours are JSON."""
    try:
        json.loads(add_on.get("ConfigurationValues", "{}"))
    except ValueError as error:
        raise ValueError(f"ConfigurationValue provided in request is not supported: {error}") from None


def _check_inference(cluster: str, values: dict[str, Any]) -> None:
    """What the operator refuses to be installed with, or without."""
    there = set(_add_ons_of(cluster))
    if missing := [one for one in _INFERENCE_NEEDS if one not in there]:
        raise ValueError(f"{_INFERENCE} fails to install: {', '.join(missing)} is missing")
    if unknown := sorted(set(values) - _INFERENCE_KEYS):
        raise ValueError(f"ConfigurationValue provided in request is not supported: {', '.join(unknown)}")
    role, bucket = values.get("executionRoleArn", ""), values.get("tlsCertificateS3Bucket", "")
    if not role.split("/")[-1].startswith("SageMakerHyperPodInference"):
        raise ValueError(f"executionRoleArn {role}: the role's name does not begin SageMakerHyperPodInference")
    if not bucket.startswith("hyperpod-tls-"):
        raise ValueError(f"tlsCertificateS3Bucket {bucket}: AWS's policy writes to hyperpod-tls… only")
    if "keda" in charts_of(cluster) and values.get("keda", {}).get("enabled"):
        raise ValueError("keda: another one is installed already, and external metrics have one server")


def _add_ons_of(cluster: str) -> list[str]:
    found: list[str] = call_eks("_list_addons", cluster, {})["addons"]
    return found


def _delete_add_on(id: str, _properties: Properties) -> None:
    cluster, name = id.split("|")
    left = set().union(*_KINDS.get((*environment(), cluster), {}).values())
    if name == _INFERENCE and "InferenceEndpointConfig" in left:
        raise ValueError(f"{name} goes before its endpoints, whose finalizers nobody would answer")
    call_eks("_delete_addon", *id.split("|"))


def _let_in(properties: Properties) -> Created:
    typed = validate("AWS::EKS::AccessEntry", properties)
    answer = call_eks("_create_access_entry", typed["ClusterName"], _camel(typed))
    return f"{typed['PrincipalArn']}|{typed['ClusterName']}", {
        "AccessEntryArn": answer["accessEntry"]["accessEntryArn"]
    }


def _change_entry(id: str, _old: Properties, new: Properties) -> Created:
    typed = validate("AWS::EKS::AccessEntry", new)
    principal, cluster = id.split("|")
    call_eks("_update_access_entry", cluster, principal, _camel(typed))
    found = call_eks("_describe_access_entry", cluster, principal)
    return id, {"AccessEntryArn": found["accessEntry"]["accessEntryArn"]}


def _let_out(id: str, _properties: Properties) -> None:
    principal, cluster = id.split("|")
    call_eks("_delete_access_entry", cluster, principal)


def _associate(properties: Properties) -> Created:
    typed = validate("AWS::EKS::PodIdentityAssociation", properties)
    answer = call_eks("_create_pod_identity_association", typed["ClusterName"], _camel(typed))["association"]
    id, arn = answer["associationId"], answer["associationArn"]
    return f"{typed['ClusterName']}|{id}", {"AssociationArn": arn, "AssociationId": id}


def _associate_again(id: str, _old: Properties, new: Properties) -> Created:
    typed = validate("AWS::EKS::PodIdentityAssociation", new)
    cluster, association = id.split("|")
    call_eks("_update_pod_identity_association", cluster, association, _camel(typed))
    found = call_eks("_describe_pod_identity_association", cluster, association)["association"]
    return id, {"AssociationArn": found["associationArn"], "AssociationId": association}


def _dissociate(id: str, _properties: Properties) -> None:
    call_eks("_delete_pod_identity_association", *id.split("|"))


def _trust(properties: Properties) -> Created:
    typed = validate("AWS::IAM::OIDCProvider", properties)
    clients = {f"ClientIDList.member.{at}": one for at, one in enumerate(typed.get("ClientIdList", []), start=1)}
    answer = call_iam("_create_oidc_provider", {"Url": typed["Url"], **clients})
    arn = answer.findtext(".//OpenIDConnectProviderArn") or ""
    return arn, {"Arn": arn}


def _distrust(arn: str, _properties: Properties) -> None:
    call_iam("_delete_oidc_provider", {"OpenIDConnectProviderArn": arn})


def _camel(value: Any) -> Any:
    """As EKS's API spells it, with tags as a mapping."""
    if not isinstance(value, dict):
        return [_camel(item) for item in value] if isinstance(value, list) else value
    found = {key[:1].lower() + key[1:]: _camel(item) for key, item in value.items() if key != "Tags"}
    if isinstance(tags := value.get("Tags"), list):
        found["tags"] = {one["Key"]: one["Value"] for one in tags}
    return found


def _apply(properties: Properties) -> Created:
    _check_manifest(properties)
    id = f"{properties['ClusterName']}/{unique(12)}"
    _remember(id, properties)
    return id, {}


def _remember(id: str, properties: Properties) -> None:
    kinds = {str(document.get("kind")) for document in json.loads(properties["Manifest"])}
    _KINDS.setdefault((*environment(), properties["ClusterName"]), {})[id] = kinds


def _take_away(id: str, properties: Properties) -> None:
    _KINDS.get((*environment(), properties["ClusterName"]), {}).pop(id, None)


def _apply_again(id: str, old: Properties, new: Properties) -> Created:
    _check_manifest(new)
    before = {_name(document): document for document in json.loads(old["Manifest"])}
    for document in json.loads(new["Manifest"]):
        check_change(before.get(_name(document)), document)
    _remember(id, new)
    return id, {}


def _name(document: dict[str, Any]) -> tuple[str, str, str]:
    metadata = document.get("metadata", {})
    return str(document.get("kind")), str(metadata.get("namespace", "")), str(metadata.get("name"))


# What Kubernetes never changes in an object: kind → parts of its spec.
_STAYS = {
    "PersistentVolume": ("csi", "volumeMode"),
    "PersistentVolumeClaim": ("accessModes", "storageClassName", "volumeName", "volumeMode", "resources"),
    "DaemonSet": ("selector",),
    "Deployment": ("selector",),
}


def check_change(old: dict[str, Any] | None, new: dict[str, Any]) -> None:
    """Refuse what the API server refuses of an object that is there.

    A claim on a static volume does not grow either: no class lets it.

    Raises:
        ValueError: with the part of the spec that stays.
    """
    if old is None:
        return
    kind, _, name = _name(new)
    if kind == "InferenceEndpointConfig" and _is_routed(old) != _is_routed(new):
        raise ValueError(f'The {kind} "{name}" is invalid: intelligentRoutingSpec cannot be added or taken away')
    for part in _STAYS.get(kind, ()):
        if old["spec"].get(part) != new["spec"].get(part):
            raise ValueError(f'The {kind} "{name}" is invalid: spec.{part}: Forbidden: is immutable after creation')


def _is_routed(endpoint: dict[str, Any]) -> bool:
    return bool((endpoint["spec"].get("intelligentRoutingSpec") or {}).get("enabled"))


def _check_manifest(properties: Properties) -> None:
    """What ``kubectl apply`` would say, object by object."""
    cluster = eks_cluster(properties["ClusterName"])
    if cluster is None:
        raise ValueError(f"No cluster found for name: {properties['ClusterName']}.")
    for document in json.loads(properties["Manifest"]):
        check_object(document, str(cluster["version"]), charts_of(properties["ClusterName"]))


def charts_of(cluster: str) -> Iterable[str]:
    """What brings kinds to a cluster: its charts and add-ons, and what stands for HyperPod's Karpenter."""
    found = [_name_of(one) for one in _CHARTS.get((*environment(), cluster), {}).values()] + _add_ons_of(cluster)
    started = any(one.properties.get("AutoScaling", {}).get("Mode") == "Enable" for one in _hyperpod_on(cluster))
    return [*found, _HYPERPOD_KARPENTER] if started else found


def _hyperpod_on(cluster: str) -> Iterable[Record]:
    """The HyperPod clusters whose nodes join a cluster."""
    for record in live("AWS::SageMaker::Cluster").values():
        arn = record.properties.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn", "")
        if arn.endswith(f":cluster/{cluster}"):
            yield record


def _name_of(release: Properties) -> str:
    return str(release["Chart"] if "Chart" in release else yaml.safe_load(_asset(release))["name"])


def _asset(release: Properties) -> bytes:
    """The Chart.yaml of a chart that came as an asset.

    Raises:
        ValueError: the asset holds none.
    """
    with zipfile.ZipFile(io.BytesIO(stored(release["ChartAssetURL"]))) as archive:
        try:
            return archive.read("Chart.yaml")
        except KeyError:
            raise ValueError(f"{release['Release']}: Chart.yaml file is missing") from None


def _look(properties: Properties) -> Created:
    """The value of an object: everything that is waited for is there at once."""
    if eks_cluster(properties["ClusterName"]) is None:
        raise ValueError(f"No cluster found for name: {properties['ClusterName']}.")
    return f"{properties['ClusterName']}/{properties['ObjectName']}", {"Value": "1"}


def check_object(document: dict[str, Any], version: str, charts: Iterable[str]) -> None:
    """Refuse an object with an unknown kind or field.

    Args:
        document: the object.
        version: of Kubernetes, for example 1.35.
        charts: that are there; each may bring kinds.

    Raises:
        ValueError: with what is wrong and where.
    """
    api, kind = str(document.get("apiVersion")), str(document.get("kind"))
    name = f"{kind}/{document.get('metadata', {}).get('name')}"
    group = api.split("/")[0]
    if group in _BROUGHT_BY:
        if not set(_BROUGHT_BY[group]) & set(charts):
            raise ValueError(f'no matches for kind "{kind}" in version "{api}": ensure CRDs are installed first')
        schema = _custom_kinds().get(f"{api}/{kind}")
        if schema is None:
            raise ValueError(f'no matches for kind "{kind}" in version "{api}"')
        for error in jsonschema.Draft7Validator(schema).iter_errors(document):
            where = ".".join(str(part) for part in error.path)
            raise ValueError(f"{name} is invalid: {where}: {error.message}")
        for pod in _pods_in(document):
            check_object(pod, version, charts)
        return
    try:
        kubernetes_validate.validate(document, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        where = ".".join(str(part) for part in error.path)
        raise ValueError(f"{name} is invalid: {where}: {error.message}") from None
    except (kubernetes_validate.SchemaNotFoundError, kubernetes_validate.InvalidSchemaError):
        raise ValueError(f'no matches for kind "{kind}" in version "{api}"') from None


def _pods_in(document: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """The pods that a custom kind is made of, or parts of them, as pods."""
    spec, name = document["spec"], document["metadata"]["name"]
    if document["kind"] == "LeaderWorkerSet":
        template = spec["leaderWorkerTemplate"]
        for key in ("leaderTemplate", "workerTemplate"):
            if key in template:
                metadata = {"name": name, **template[key].get("metadata", {})}
                yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template[key]["spec"]}
    if document["kind"] == "InferenceEndpointConfig":
        worker, parts = spec["worker"], spec.get("kubernetes", {})
        container = {"name": "worker", "image": worker["image"], "resources": worker["resources"]}
        container |= {key: worker[key] for key in ("args", "command") if key in worker}
        container["env"] = worker.get("environmentVariables", [])
        inner = {
            "containers": [container],
            **{key: parts[key] for key in ("initContainers", "volumes") if key in parts},
        }
        if "nodeAffinity" in spec:
            inner["affinity"] = {"nodeAffinity": spec["nodeAffinity"]}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": inner}


@functools.cache
def _custom_kinds() -> dict[str, dict[str, Any]]:
    """Schemas of ours for the kinds that charts bring and our manifests use, by ``group/version/kind``."""
    text = Path(__file__).with_name("custom_kinds.json").read_text(encoding="utf-8")
    found: dict[str, dict[str, Any]] = json.loads(text)
    return found


def _release(properties: Properties) -> Created:
    cluster = properties["ClusterName"]
    _upgrade_release(cluster, properties)
    return f"{cluster}/{properties['Release']}", {}


def _upgrade(id: str, properties: Properties) -> Created:
    _upgrade_release(properties["ClusterName"], properties)
    return id, {}


def _upgrade_release(cluster: str, properties: Properties) -> None:
    if eks_cluster(cluster) is None:
        raise ValueError(f"No cluster found for name: {cluster}.")
    asset = "ChartAssetURL" in properties
    if asset:
        _asset(properties)
    for key in () if asset else ("Chart", "Version", "Repository"):
        if not properties.get(key):
            raise ValueError(f"{properties['Release']}: {key} is missing: a chart comes from a place, in a version")
    json.loads(properties.get("Values", "{}"))
    _CHARTS.setdefault((*environment(), cluster), {})[properties["Release"]] = properties


def _uninstall(id: str, _properties: Properties) -> None:
    cluster, release = id.rsplit("/", 1)
    _CHARTS.get((*environment(), cluster), {}).pop(release, None)
