"""What is in a folder of weights: sizes and digests, written before it is pushed and checked before it is served."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypedDict

# The check in containers, serving/jobs/verify_model.py, reads both.
NAME = "fmblocks-model.json"
FORMAT = 1
_CHUNK = 16 * 1024 * 1024


class File(TypedDict):
    """A file of a model."""

    sha256: str
    bytes: int


def describe(folder: Path) -> dict[str, File]:
    """Every file below ``folder`` by its path, save hidden ones and an earlier manifest.

    Raises:
        ValueError: nothing is there, or a link is that a copy would leave out.
    """
    found = [
        file
        for file in sorted(folder.rglob("*"))
        if file.name != NAME and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    ]
    # What a download that broke off leaves in a cache of Hugging Face: without it the version would be whole for ever.
    if lost := [file for file in found if file.is_symlink() and not file.is_file()]:
        named = ", ".join(file.relative_to(folder).as_posix() for file in lost[:5])
        raise ValueError(f"{named} in {folder}: a link to nothing, or to a folder; put the files there themselves")
    files = [file for file in found if file.is_file()]
    if not files:
        raise ValueError(f"{folder} holds no files")
    with ThreadPoolExecutor() as pool:  # hashing lets go of the interpreter
        return dict(zip((file.relative_to(folder).as_posix() for file in files), pool.map(_file, files), strict=True))


def text(files: Mapping[str, File]) -> str:
    """The manifest."""
    return json.dumps({"format": FORMAT, "files": dict(sorted(files.items()))}, indent=1) + "\n"


def differing(manifest: str, files: Mapping[str, File]) -> list[str]:
    """Which files a manifest tells of otherwise."""
    told = json.loads(manifest).get("files", {})
    return sorted(name for name in {*told, *files} if told.get(name) != files.get(name))


def _file(file: Path) -> File:
    digest, size = hashlib.sha256(), 0
    with file.open("rb") as opened:
        while chunk := opened.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return {"sha256": digest.hexdigest(), "bytes": size}
