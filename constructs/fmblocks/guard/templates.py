"""What the step from one template to the next replaces and takes away, without asking AWS."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from fmblocks.guard.registry import NOT_UPDATABLE, always, sometimes

Template: TypeAlias = Mapping[str, Any]
_PARAMETER = "AWS::SSM::Parameter"
# Between a property and what it names, in the words of a cause.
FOLLOWS = ", which follows "


class Action(StrEnum):
    """What happens to a resource."""

    ADD = "add"
    MODIFY = "modify"
    REMOVE = "remove"


class Replacement(StrEnum):
    """Whether another resource takes its place."""

    NO = "no"
    MAYBE = "maybe"
    YES = "yes"

    def __or__(self, other: Replacement) -> Replacement:
        """The worse of the two."""
        return max(self, other, key=list(Replacement).index)


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to one resource, and because of which properties."""

    logical_id: str
    resource_type: str
    action: Action
    replacement: Replacement = Replacement.NO
    causes: tuple[str, ...] = ()

    def with_causes(self, other: Change) -> Change:
        """Both in one."""
        causes = (*self.causes, *(cause for cause in other.causes if cause not in self.causes))
        return Change(self.logical_id, self.resource_type, self.action, self.replacement | other.replacement, causes)


# The properties that are looked at, by type.
Paths: TypeAlias = Callable[[str], Mapping[str, Replacement]]


def every_path(resource_type: str) -> Mapping[str, Replacement]:
    """All that replaces: what the registry says, and what it omits."""
    return {
        **dict.fromkeys(sometimes(resource_type), Replacement.MAYBE),
        **dict.fromkeys(always(resource_type), Replacement.YES),
        **omitted_paths(resource_type),
    }


def omitted_paths(resource_type: str) -> Mapping[str, Replacement]:
    """What the registry omits."""
    return dict.fromkeys(NOT_UPDATABLE.get(resource_type, ()), Replacement.YES)


def compare(old: Template, new: Template, *, paths: Paths = every_path) -> list[Change]:
    """The changes from ``old`` to ``new``; those that follow from another resource's replacement are among them."""
    before, after = resources(old), resources(new)
    parameters = {*old.get("Parameters", {}), *new.get("Parameters", {})}
    found = {}
    for id in sorted(before.keys() | after.keys()):
        if id not in after:
            found[id] = Change(id, before[id]["Type"], Action.REMOVE)
        elif id not in before:
            found[id] = Change(id, after[id]["Type"], Action.ADD)
        elif before[id] != after[id]:
            found[id] = _modified(id, before[id], after[id], paths, parameters)
    return list(_cascaded(found, after).values())


def follow(template: Template, replaced: Collection[str]) -> list[Change]:
    """What else is replaced when the resources or parameters ``replaced`` get another value."""
    found = {id: Change(id, "", Action.MODIFY, Replacement.YES) for id in replaced}
    return [change for id, change in _cascaded(found, resources(template)).items() if id not in replaced]


def _modified(id: str, old: Template, new: Template, paths: Paths, parameters: Collection[str]) -> Change:
    if old["Type"] != new["Type"]:
        return Change(id, old["Type"], Action.MODIFY, Replacement.YES, ("Type",))
    change = Change(id, new["Type"], Action.MODIFY)
    if old.get("Condition") != new.get("Condition"):  # it may not be there any more
        change = Change(id, new["Type"], Action.MODIFY, Replacement.MAYBE, ("Condition",))
    for path, replacement in paths(new["Type"]).items():
        if _plain(before := at(old, path)) == _plain(after := at(new, path)):
            continue
        seen = not any(one.imported or one.target in parameters for one in references([before, after]))
        seen = seen and not any(_intrinsic(value) and "Ref" not in value for value in (before, after))
        certain = replacement if seen else Replacement.MAYBE
        change = change.with_causes(Change(id, new["Type"], Action.MODIFY, certain, (path,)))
    return change


def _cascaded(found: dict[str, Change], after: Mapping[str, Template]) -> dict[str, Change]:
    """A resource whose create-only property names a replaced one is replaced too, and so on."""
    while True:
        replaced = {id: change.replacement for id, change in found.items() if change.replacement is not Replacement.NO}
        before = dict(found)
        for id, resource in after.items():
            if id in found and found[id].action is Action.ADD:
                continue
            for path, replacement in every_path(resource["Type"]).items():
                for one in references(at(resource, path)):
                    if one.target not in replaced or one.target == id:
                        continue
                    worst = (
                        Replacement.MAYBE if Replacement.MAYBE in (replacement, replaced[one.target]) else replacement
                    )
                    cause = f"{path}{FOLLOWS}{one.target}"
                    change = found.get(id) or Change(id, resource["Type"], Action.MODIFY)
                    if cause not in change.causes and path not in change.causes:
                        added = Change(id, resource["Type"], Action.MODIFY, worst, (cause,))
                        found[id] = change.with_causes(added)
        if found == before:
            return found


def resources(template: Template) -> Mapping[str, Template]:
    """Logical id → resource."""
    found: Mapping[str, Template] = template.get("Resources", {})
    return found


def at(resource: Template, path: str) -> Any:
    """The value of a property; a list of values where the path goes through the items of a list."""
    value: Any = resource.get("Properties", {})
    parts = path.split("/")
    for index, part in enumerate(parts):
        if part == "*":
            rest = "/".join(parts[index + 1 :])
            return [at({"Properties": item}, rest) if rest else item for item in value or ()]
        if _intrinsic(value):
            return value  # what is behind a function nobody knows here: all of it is compared
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _intrinsic(value: object) -> bool:
    return isinstance(value, Mapping) and len(value) == 1 and next(iter(value)).startswith(("Fn::", "Ref"))


def _plain(value: object) -> object:
    """CloudFormation takes "1200" for a number and "true" for a truth."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, (int, float)) else value


@dataclass(frozen=True, slots=True)
class Reference:
    """A parameter or resource that a value names; ``imported`` is what another stack exports."""

    target: str
    attribute: str | None = None
    imported: bool = False


def references(value: object) -> Iterator[Reference]:
    """Everything that a value is made of and that can change without it."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == "Ref":
                yield Reference(str(inner))
            elif key == "Fn::GetAtt":
                target, _, attribute = (
                    ".".join(inner).partition(".") if isinstance(inner, list) else inner.partition(".")
                )
                yield Reference(target, attribute)
            elif key == "Fn::Sub":
                text = inner[0] if isinstance(inner, list) else inner
                for name in re.findall(r"\$\{([^!}][^}]*)\}", text):
                    target, _, attribute = name.partition(".")
                    yield Reference(target, attribute or None)
                yield from references(inner[1] if isinstance(inner, list) else None)
            elif key == "Fn::ImportValue":
                yield Reference(str(inner), imported=True)
                yield from references(inner)
            else:
                yield from references(inner)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)
    elif isinstance(value, str):
        for name in re.findall(r"\{\{resolve:[^}]+\}\}", value):
            yield Reference(name, imported=True)


def construct_path(template: Template, logical_id: str) -> str:
    """The path of the construct behind a resource, or its logical id where CDK has not written one."""
    path = resources(template).get(logical_id, {}).get("Metadata", {}).get("aws:cdk:path", logical_id)
    return str(path).removesuffix("/Resource")


def published(template: Template) -> dict[str, tuple[str, object]]:
    """Name → logical id and value of each SSM parameter that a template writes."""
    return {
        properties["Name"]: (id, properties.get("Value"))
        for id, resource in resources(template).items()
        if resource["Type"] == _PARAMETER and isinstance((properties := resource["Properties"]).get("Name"), str)
    }


def inputs(template: Template) -> dict[str, str]:
    """Template parameter → the SSM parameter that it reads; those that no resource names change nothing."""
    return {
        key: str(parameter.get("Default", ""))
        for key, parameter in _used_parameters(template).items()
        if str(parameter.get("Type", "")).startswith(f"{_PARAMETER}::Value<")
    }


def _used_parameters(template: Template) -> Mapping[str, Template]:
    named = {one.target for one in references(dict(resources(template)))}
    return {key: parameter for key, parameter in template.get("Parameters", {}).items() if key in named}


def unseen(old: Template, new: Template) -> list[str]:
    """What the comparison of two templates cannot look into, in words."""
    found = []
    read = sorted({*inputs(old).values(), *inputs(new).values()} - {""})
    if read:
        found.append(f"the values of {len(read)} SSM parameters: {', '.join(read)}")
    keys = {key for one in (old, new) for key in _used_parameters(one) if key not in inputs(one)}
    if keys:
        found.append(f"the values of {len(keys)} template parameters: {', '.join(sorted(keys))}")
    imports = sorted({one.target for one in references([dict(old), dict(new)]) if one.imported})
    if imports:
        found.append(f"{len(imports)} imported values and dynamic references: {', '.join(imports)}")
    if any(template.get("Mappings") for template in (old, new)):
        found.append("what changes in mappings")
    if any(template.get("Conditions") for template in (old, new)):
        found.append("which conditions hold")
    if any(template.get("Transform") for template in (old, new)):
        found.append("what transforms make of the template")
    return found
