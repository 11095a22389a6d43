"""Compares a folder of weights with its manifest before a server loads them.

Runs in the server's own image: standard library, Python 3.8 and later. Usage: verify_model.py FOLDER. It reads every
byte, which also brings files of a Lustre link from S3 before the server asks for them one by one.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

NAME = "fmblocks-model.json"
CHUNK = 16 * 1024 * 1024


def wrong(folder: str, name: str, told: dict[str, object]) -> str | None:
    """What is wrong with a file; None when nothing is."""
    path = os.path.join(folder, name)
    if os.path.relpath(path, folder).startswith(os.pardir):
        return f"{name}: leaves the folder"
    try:
        size = os.path.getsize(path)
        if size != told["bytes"]:
            return f"{name}: {size} bytes, and the manifest says {told['bytes']}"
        digest = hashlib.sha256()
        with open(path, "rb") as opened:
            while True:
                chunk = opened.read(CHUNK)
                if not chunk:
                    break
                digest.update(chunk)
    except OSError as error:
        return f"{name}: {error.strerror or error}"
    if digest.hexdigest() != told["sha256"]:
        return f"{name}: sha256 {digest.hexdigest()}, and the manifest says {told['sha256']}"
    return None


def present(folder: str) -> list[str]:
    """Every file below a folder, save hidden ones: servers load what they find."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if not one.startswith(".")]
        found += [os.path.relpath(os.path.join(place, one), folder) for one in names if not one.startswith(".")]
    return [one.replace(os.sep, "/") for one in found]


def main(folder: str) -> int:
    """Check every file; 0 when all are as the manifest says."""
    try:
        with open(os.path.join(folder, NAME), encoding="utf-8") as opened:
            manifest = json.load(opened)
        files = manifest["files"]
        if manifest["format"] != 1 or not files:
            raise ValueError("another format, or no files")
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"{folder}: no manifest to check by: {error}", file=sys.stderr)
        return 1
    with ThreadPoolExecutor(min(32, os.cpu_count() or 1)) as pool:
        found = [text for text in pool.map(lambda one: wrong(folder, one, files[one]), sorted(files)) if text]
    strange = sorted(set(present(folder)) - set(files) - {NAME})
    wrongs = len(found)
    found += [f"{one}: is not in the manifest" for one in strange]
    for text in found:
        print(text, file=sys.stderr)
    print(f"{folder}: {len(files) - wrongs} of {len(files)} files are as the manifest says")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
