"""Tags of what a resource makes, where CDK's tag aspects do not reach."""

from __future__ import annotations

import aws_cdk as cdk
import jsii


@jsii.implements(cdk.IStableAnyProducer)
class TagSpecifications:
    """EC2's tag specifications of some kinds of resource, with every tag that is added until the synth.

    Args:
        tags: where aspects put them.
        kinds: as EC2 names them, for example ``instance``.
        own: tags that are there in any case.
    """

    def __init__(self, tags: cdk.TagManager, *kinds: str, own: dict[str, str] | None = None) -> None:
        self._tags = tags
        self._kinds = kinds
        self._own = own or {}

    def produce(self) -> list[dict[str, object]] | None:
        """The specifications, or nothing without tags."""
        every = {**self._own, **self._tags.tag_values()}
        tags = [{"key": key, "value": value} for key, value in sorted(every.items())]
        return [{"resourceType": kind, "tags": tags} for kind in self._kinds] if tags else None


@jsii.implements(cdk.IStableAnyProducer)
class RegistryTags:
    """Tags as a type without a class in aws-cdk-lib takes them, with every tag that is added until the synth.

    Args:
        tags: where aspects put them.
    """

    def __init__(self, tags: cdk.TagManager) -> None:
        self._tags = tags

    def produce(self) -> list[dict[str, object]] | None:
        """Keys and values, or nothing without tags."""
        return [{"Key": key, "Value": value} for key, value in sorted(self._tags.tag_values().items())] or None
