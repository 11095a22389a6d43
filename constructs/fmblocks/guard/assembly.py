"""The stacks of a cloud assembly, in the order in which they are deployed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fmblocks.guard.templates import Template


@dataclass(frozen=True, slots=True)
class Asset:
    """Where the CDK CLI would put a stack's template."""

    bucket: str
    key: str
    role_arn: str | None


@dataclass(frozen=True, slots=True)
class Stack:
    """One stack of an assembly.

    Attributes:
        name: as the CDK CLI calls it.
        stack_name: as CloudFormation does.
        template: what would be deployed.
        body: its text.
        asset: where a template goes that is too long to be sent.
        role_arn: the role that deploys, of the bootstrap stack.
        tags: of the stack.
    """

    name: str
    stack_name: str
    template: Template
    body: str
    asset: Asset | None
    role_arn: str | None
    tags: Mapping[str, str]


def read(folder: Path, pseudo: Mapping[str, str]) -> list[Stack]:
    """The stacks, each after those it depends on.

    Args:
        folder: the assembly.
        pseudo: the values of AWS::Partition, AWS::AccountId and AWS::Region, which an app for any account leaves open.
    """
    artifacts = _json(folder / "manifest.json", pseudo)["artifacts"]
    stacks = {id: one for id, one in artifacts.items() if one["type"] == "aws:cloudformation:stack"}

    def ordered(ids: list[str], seen: set[str]) -> Iterator[str]:
        for id in ids:
            if id in stacks and id not in seen:
                seen.add(id)
                yield from ordered(stacks[id].get("dependencies", []), seen)
                yield id

    return [_stack(folder, id, stacks[id], pseudo) for id in ordered(sorted(stacks), set())]


def _json(file: Path, pseudo: Mapping[str, str]) -> Any:
    text = file.read_text(encoding="utf-8")
    for name, value in pseudo.items():
        text = text.replace(f"${{AWS::{name}}}", value)
    return json.loads(text)


def _stack(folder: Path, id: str, artifact: Mapping[str, Any], pseudo: Mapping[str, str]) -> Stack:
    properties = artifact["properties"]
    body = (folder / properties["templateFile"]).read_text(encoding="utf-8")
    return Stack(
        name=artifact.get("displayName", id),
        stack_name=properties.get("stackName", id),
        template=json.loads(body),
        body=body,
        asset=_asset(folder / f"{id}.assets.json", properties["templateFile"], pseudo),
        role_arn=properties.get("assumeRoleArn"),
        tags=properties.get("tags", {}),
    )


def _asset(manifest: Path, template: str, pseudo: Mapping[str, str]) -> Asset | None:
    files = _json(manifest, pseudo)["files"] if manifest.exists() else {}
    for file in files.values():
        if file["source"].get("path") == template:
            (place,) = file["destinations"].values()
            return Asset(place["bucketName"], place["objectKey"], place.get("assumeRoleArn"))
    return None
