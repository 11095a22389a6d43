"""A project file read as text: every scalar stays what the user typed, and every key knows its line.

YAML 1.1 turns ``off`` into False, ``012345670123`` into an octal number and ``1.30`` into 1.3, and lets the second of
two equal keys win in silence. So the file is composed into nodes and the values are built here: only true, false and
null are special, and a duplicate key is an error. See docs/adr/0003-yaml-loader.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import yaml

from fmblocks.findings import Finding, FindingsError, Severity

Value: TypeAlias = "str | bool | list[Value] | dict[str, Value] | None"
Location: TypeAlias = tuple[str | int, ...]

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C loader reads 15 kB in 10 ms instead of 50
_SPECIAL: Mapping[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}
_MERGE = "<<"
_PLAIN = (None, "")  # how the Python and the C loader mark a scalar without quotes
# Aliases may repeat a node many times over; a file that unfolds to more than this is a mistake or an attack.
_LARGEST = 100_000


@dataclass
class Document:
    """The values of a file, and the line of each of them."""

    file: str
    values: dict[str, Value] = field(default_factory=dict)
    lines: dict[Location, int] = field(default_factory=dict)

    def line(self, location: Location) -> int | None:
        """The line of ``location``, or of the nearest thing around it that stands in the file."""
        while location and location not in self.lines:
            location = location[:-1]
        return self.lines.get(location, 1)


def read(path: Path) -> Document:
    """Read a project file.

    Raises:
        FindingsError: the file is missing, unreadable, no YAML, or holds a duplicate key, a tag or a merge key.
    """
    document = Document(str(path))
    if path.exists() and not path.is_file() and not path.is_dir():
        raise _fault(document, None, "is not a file", "give a YAML file")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise _fault(document, None, "there is no such file", "check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = "is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror or str(error)
        raise _fault(document, None, f"cannot be read: {reason}", "give a YAML file") from None
    try:
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        raise _syntax(document, error) from None
    except RecursionError:
        raise _fault(document, None, "is nested too deeply", "a project file needs fewer than 20 levels") from None
    if root is None:
        raise _fault(document, 1, "the file is empty", "begin with name: and network:")
    if not isinstance(root, yaml.MappingNode):
        raise _fault(document, _line(root), "the file is not a mapping of keys to values", "begin with name: <project>")
    findings: list[Finding] = []
    _Builder(document, findings).mapping(root, (), ())
    if findings:
        raise FindingsError(findings)
    return document


class _Builder:
    def __init__(self, document: Document, findings: list[Finding]) -> None:
        self.document = document
        self.findings = findings
        self.count = 0

    def mapping(self, node: yaml.MappingNode, location: Location, around: tuple[int, ...]) -> dict[str, Value]:
        values: dict[str, Value] = {} if location else self.document.values
        first: dict[str, int] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.fault(key, location, "a key must be plain text", "write key: value")
                continue
            name = str(key.value)
            if name == _MERGE and key.style in _PLAIN:
                self.fault(key, location, "merge keys (<<) are not read", "write the keys out")
                continue
            here = (*location, name)
            if name in first:
                hint = "keep one of the two"
                self.fault(key, here, f"the key stands twice, first in line {first[name]}", hint)
                continue
            first[name] = _line(key)
            self.document.lines[here] = _line(key)
            values[name] = self.value(value, here, around)
        return values

    def value(self, node: yaml.Node, location: Location, around: tuple[int, ...]) -> Value:
        self.count += 1
        if self.count > _LARGEST:
            self.fault(node, location, f"the file unfolds to more than {_LARGEST} values", "use fewer aliases")
            raise FindingsError(self.findings)
        if id(node) in around:
            self.fault(node, location, "an alias contains itself", "write the value out")
            return None
        inside = (*around, id(node))
        if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
            return self.mapping(node, location, inside)
        if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            return [self.item(item, (*location, index), inside) for index, item in enumerate(node.value)]
        if not isinstance(node, yaml.ScalarNode) or not node.tag.startswith("tag:yaml.org,2002:"):
            self.fault(node, location, f"the tag {node.tag} is not read", "write the value itself")
            return None
        text = str(node.value)
        return _SPECIAL.get(text, text) if node.style in _PLAIN else text

    def item(self, node: yaml.Node, location: Location, around: tuple[int, ...]) -> Value:
        self.document.lines[location] = _line(node)
        return self.value(node, location, around)

    def fault(self, node: yaml.Node, location: Location, message: str, hint: str) -> None:
        self.findings += _fault(self.document, _line(node), message, hint, location).findings


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def path_text(location: Location) -> str:
    """A location as a user would write it: ``training.node_groups[2].count``."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _fault(document: Document, line: int | None, message: str, hint: str, location: Location = ()) -> FindingsError:
    finding = Finding("SHAPE", Severity.ERROR, path_text(location), message, hint, document.file, line)
    return FindingsError([finding])


def _syntax(document: Document, error: yaml.YAMLError) -> FindingsError:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be parsed"
    line = mark.line + 1 if mark else None
    if isinstance(error, yaml.composer.ComposerError) and "single document" in str(error):
        return _fault(document, line, "the file holds more than one YAML document", "keep one project in a file")
    if "\\t" in problem or "cannot start any token" in problem:
        problem += " (a tab?)"
    return _fault(document, line, f"YAML syntax: {problem}", "check indentation, colons and quotes near this line")
