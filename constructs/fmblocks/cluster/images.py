"""Images and charts that we install, each pinned, and where they come from.

Versions: the newest that public manifests of 2026-09 and 2026-10 name, as read for each of these projects: NVIDIA
k8s-device-plugin and dcgm-exporter, AWS Neuron, the EFA device plugin of EKS, the AWS Distro for OpenTelemetry,
Kueue, KubeRay, Karpenter, LeaderWorkerSet, KEDA.
"""

from __future__ import annotations

from typing import NamedTuple

import aws_cdk as cdk
from constructs import Construct

NVIDIA_PLUGIN = "nvcr.io/nvidia/k8s-device-plugin:v0.20.1"
NEURON_PLUGIN = "public.ecr.aws/neuron/neuron-device-plugin:2.32.0.0"
COLLECTOR = "public.ecr.aws/aws-observability/aws-otel-collector:v0.48.0"
# B300 needs 4.5.2-4.8.1.
DCGM_EXPORTER = "nvcr.io/nvidia/k8s/dcgm-exporter:4.5.2-4.8.1-ubuntu22.04"
# P6 needs v0.5.6 (rule EFA-21).
EFA_PLUGIN = "eks/aws-efa-k8s-device-plugin:v0.5.20"
# EKS's own registry: EKS User Guide, *View Amazon container image registries for Amazon EKS add-ons*.
_EKS_ACCOUNT = "602401143452"
_EKS_ACCOUNTS = {
    "af-south-1": "877085696533",
    "ap-east-1": "800184023465",
    "ap-south-2": "900889452093",
    "ap-southeast-3": "296578399912",
    "ap-southeast-4": "491585149902",
    "ap-southeast-5": "151610086707",
    "ap-southeast-6": "333609536671",
    "ap-southeast-7": "121268973566",
    "ca-west-1": "761377655185",
    "cn-north-1": "918309763551",
    "cn-northwest-1": "961992271922",
    "eu-central-2": "900612956339",
    "eu-south-1": "590381155156",
    "eu-south-2": "455263428931",
    "il-central-1": "066635153087",
    "me-central-1": "759879836304",
    "me-south-1": "558608220178",
    "us-gov-east-1": "151742754352",
    "us-gov-west-1": "013241004608",
}


class Chart(NamedTuple):
    """A Helm chart: where its project publishes it, its name, its version."""

    repository: str
    name: str
    version: str


KUEUE = Chart("oci://registry.k8s.io/kueue/charts/kueue", "kueue", "0.20.0")
KUEUE_IMAGE = "registry.k8s.io/kueue/kueue"
KUBE_RAY = Chart("https://ray-project.github.io/kuberay-helm/", "kuberay-operator", "1.7.1")
KUBE_RAY_IMAGE = "quay.io/kuberay/operator"
# The newest that public manifests name, and that runs on the Kubernetes versions with pinned add-ons.
LEADER_WORKER_SET = Chart("oci://registry.k8s.io/lws/charts/lws", "lws", "0.10.0")
LEADER_WORKER_SET_IMAGE = "registry.k8s.io/lws/lws"
# KEDA publishes no chart in a registry. Versions by Kubernetes: keda.sh, *KEDA on Kubernetes*.
KEDA = Chart("https://kedacore.github.io/charts", "keda", "2.21.0")
# The release of EKS's Amazon Linux images that Karpenter's nodes boot; managed node groups take EKS's own default.
NODE_IMAGE = "al2023@v20260930"
KARPENTER = Chart("oci://public.ecr.aws/karpenter/karpenter", "karpenter", "1.15.0")
# Its kinds as a chart of their own: Helm changes those inside of a chart never again.
KARPENTER_KINDS = Chart("oci://public.ecr.aws/karpenter/karpenter-crd", "karpenter-crd", KARPENTER.version)


def mirrored(image: str, registry: str | None) -> str:
    """An image where a project mirrors it: below the registry, without the host it was published at."""
    return f"{registry.rstrip('/')}/{image.split('/', 1)[1]}" if registry else image


def efa_plugin_image(scope: Construct) -> str:
    """EKS publishes it in a registry of each Region, which nodes reach without the internet.

    Where the Region is not known, that of most Regions.
    """
    region = cdk.Stack.of(scope).region
    return f"{_EKS_ACCOUNTS.get(region, _EKS_ACCOUNT)}.dkr.ecr.{region}.{cdk.Aws.URL_SUFFIX}/{EFA_PLUGIN}"
