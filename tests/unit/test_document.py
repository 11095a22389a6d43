"""Reading YAML as text, with lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fmblocks.document import path_text, read
from fmblocks.findings import FindingsError

Write = Callable[[str], Path]


def test_scalars_stay_text(project_file: Write) -> None:
    text = 'a: off\nb: 012345670123\nc: 1.30\nd: 1:05:00\ne: 2026-12-01\nf: true\ng: "true"\nh: null\ni:\nj: ""\n'
    assert read(project_file(text)).values == {
        "a": "off",
        "b": "012345670123",
        "c": "1.30",
        "d": "1:05:00",
        "e": "2026-12-01",
        "f": True,
        "g": "true",
        "h": None,
        "i": None,
        "j": "",
    }


def test_lines_are_known(project_file: Write) -> None:
    document = read(project_file("a:\n  b:\n    - x\n    - c: 1\n"))
    assert document.line(("a", "b", 0)) == 3
    assert document.line(("a", "b", 1, "c")) == 4
    assert document.line(("a", "b", 1, "missing")) == 4
    assert document.line(("nowhere",)) == 1


def test_aliases_repeat_a_value(project_file: Write) -> None:
    assert read(project_file("a: &x {b: 1}\nc: *x\n")).values == {"a": {"b": "1"}, "c": {"b": "1"}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ":1: error [SHAPE] the file is empty"),
        ("# nothing\n", ":1: error [SHAPE] the file is empty"),
        ("- a\n", ":1: error [SHAPE] the file is not a mapping"),
        ("just text", ":1: error [SHAPE] the file is not a mapping"),
        ("a: 1\nb: 2\na: 3\n", ":3: error [SHAPE] a: the key stands twice, first in line 1"),
        ("a: {b: 1, b: 2}", ":1: error [SHAPE] a.b: the key stands twice"),
        ("a: [1,\nb: 2", "YAML syntax"),
        ("a: 1\n\tb: 2\n", ":2: error [SHAPE] YAML syntax"),
        ("a: !Ref b", "a: the tag !Ref is not read"),
        ("a: !!python/object:os.system {}", "is not read"),
        ("a: 1\n---\nb: 1\n", "more than one YAML document"),
        ("a: {<<: {b: 1}}", "merge keys (<<) are not read"),
        ("a: &x [*x]", "a[0]: an alias contains itself"),
        ("? [a, b]\n: c\n", "a key must be plain text"),
        ("a: \x07", "YAML syntax"),
        ("a: " + "[" * 5000, "YAML syntax"),
    ],
)
def test_what_is_no_project_file_is_said_with_its_line(project_file: Write, text: str, said: str) -> None:
    with pytest.raises(FindingsError) as caught:
        read(project_file(text))
    assert said in str(caught.value)


def test_a_file_that_unfolds_without_end_is_refused(project_file: Write) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(FindingsError, match="unfolds to more than 100000 values"):
        read(project_file("\n".join(levels)))


def test_unreadable_files(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"name: caf\xe9\n")
    for path, said in (
        (tmp_path / "none.yaml", "there is no such file"),
        (tmp_path, "cannot be read: Is a directory"),
        (tmp_path / "latin.yaml", "is not UTF-8 text"),
    ):
        with pytest.raises(FindingsError, match=said):
            read(path)


def test_a_byte_order_mark_is_no_key(tmp_path: Path) -> None:
    (tmp_path / "bom.yaml").write_bytes(b"\xef\xbb\xbfname: x\n")
    assert read(tmp_path / "bom.yaml").values == {"name": "x"}


def test_paths_read_as_written() -> None:
    assert path_text(("training", "node_groups", 2, "count")) == "training.node_groups[2].count"
