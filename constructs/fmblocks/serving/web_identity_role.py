"""Roles that pods assume through the cluster's OpenID Connect provider."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct


def web_identity_role(
    scope: Construct,
    id: str,
    *,
    provider_arn: str,
    namespace: str,
    service_account: str,
    services: Sequence[str] = (),
    role_name: str | None = None,
) -> iam.Role:
    """A role for one service account (EKS User Guide, *IAM roles for service accounts*).

    The names of its conditions hold the issuer, which is known at deployment only: no key of a template's mapping can
    be, so the document is text.

    Args:
        scope: of the role.
        id: of the role.
        provider_arn: of the cluster's provider.
        namespace: of the service account.
        service_account: its name.
        services: service principals that assume it, too.
        role_name: default: chosen by CloudFormation.
    """
    issuer = cdk.Fn.select(1, cdk.Fn.split("oidc-provider/", provider_arn))
    pods = {
        "Effect": "Allow",
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Principal": {"Federated": "${Provider}"},
        "Condition": {
            "StringEquals": {
                "${Issuer}:aud": "sts.amazonaws.com",
                "${Issuer}:sub": f"system:serviceaccount:{namespace}:{service_account}",
            }
        },
    }
    others = [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": one}} for one in services]
    role = iam.Role(
        scope,
        id,
        assumed_by=iam.FederatedPrincipal(provider_arn, {}, "sts:AssumeRoleWithWebIdentity"),
        role_name=role_name,
    )
    text = json.dumps({"Version": "2012-10-17", "Statement": [pods, *others]})
    document = cdk.Fn.sub(text, {"Provider": provider_arn, "Issuer": issuer})
    cast(iam.CfnRole, role.node.default_child).add_property_override("AssumeRolePolicyDocument", document)
    return role
