"""Whether the security groups of EFA nodes are open to themselves: looked at when the app is synthesized."""

from __future__ import annotations

from collections.abc import Sequence

import jsii
from aws_cdk import aws_ec2 as ec2
from constructs import Construct, IValidation

from fmblocks._edge import suppressed
from fmblocks.findings import check
from fmblocks.network.efa_security_group import EfaSecurityGroup
from fmblocks.network.rules import SelfRules

_ALL = "-1"


@jsii.implements(IValidation)
class SelfRulesValidation:
    """Rule EFA-12, over groups that were made in this app; of imported ones nobody knows the rules.

    Rules are often added after whatever carries the group, so this waits for the synth.
    """

    def __init__(
        self, carrier: Construct, groups: Sequence[ec2.ISecurityGroup], *, one_is_enough: bool = False
    ) -> None:
        self._carrier = carrier
        self._one_is_enough = one_is_enough
        self._trusted = any(
            isinstance(group, EfaSecurityGroup) or not isinstance(group, ec2.SecurityGroup) for group in groups
        )
        self._groups = [
            group
            for group in groups
            if isinstance(group, ec2.SecurityGroup) and not isinstance(group, EfaSecurityGroup)
        ]

    def validate(self) -> list[str]:
        """What is wrong, in the words that CDK prints beside the construct's path."""
        seen = [_self_rules(group) for group in self._groups]
        if self._one_is_enough and (self._trusted or any(one.ingress and one.egress for one in seen)):
            return []
        found = check(
            ("EFA-12",),
            {"self_rules": seen},
            suppressed=suppressed(self._carrier),
        )
        return [str(finding) for finding in found]


def _self_rules(group: ec2.SecurityGroup) -> SelfRules:
    own = group.security_group_id
    ingress = egress = False
    for construct in group.node.root.node.find_all():  # rules may stand in the stack that uses the group
        if isinstance(construct, ec2.CfnSecurityGroupIngress):
            same = (construct.group_id, construct.source_security_group_id) == (own, own)
            ingress = ingress or (same and construct.ip_protocol == _ALL)
        elif isinstance(construct, ec2.CfnSecurityGroupEgress):
            same = (construct.group_id, construct.destination_security_group_id) == (own, own)
            egress = egress or (same and construct.ip_protocol == _ALL)
    return SelfRules(group.node.path, ingress, egress)
