"""The Python environment that the local AWS runs in."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

_LOCK = Path(__file__).with_name("requirements.lock")
_VARIABLE = "FMBLOCKS_LOCAL_PYTHON"


def find_python(say: Callable[[str], None]) -> Path:
    """The interpreter that has ministack.

    In this order: what FMBLOCKS_LOCAL_PYTHON names; the running one, when ``fmblocks[local]`` is installed in it; the
    environment ``.venv-local`` beside the running one; the same, made now from the hashed lock that ships here.
    """
    if given := os.environ.get(_VARIABLE):
        return Path(given)
    if importlib.util.find_spec("ministack") is not None:
        return Path(sys.executable)
    folder = Path(sys.prefix).parent / ".venv-local"
    python = folder / "bin" / "python"
    if not python.exists():
        say(f"making an environment for the local AWS in {folder} (once)")
        venv.create(folder, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--require-hashes", "--requirement", str(_LOCK)]
        subprocess.run(install, check=True)
    return python
