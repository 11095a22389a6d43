"""The app: project files in, stacks out."""

from __future__ import annotations

import glob
import importlib
import json
import os
import sys
import threading
from dataclasses import replace
from pathlib import Path

from fmblocks.findings import Finding, FindingsError, Severity
from fmblocks.project import LoadedProject, Project

# Warnings for `validate`, which checks more than this version builds; errors for a synth.
UNBUILT = ("FMB-23", "FMB-34")


def main() -> None:
    """Synthesize the stacks of the project that ``-c project=FILE`` names, or of all in ``-c projects=GLOB``.

    ``-c charts=FOLDER`` is where charts are that ``fmblocks chart pull`` fetched, instead of beside the files.

    Without either the project is the one that cdk.json names. Wrong files end with their findings on standard error
    and exit code 1; nothing is written then.
    """
    # Importing aws_cdk means waiting for Node to start; the project is read meanwhile.
    threading.Thread(target=importlib.import_module, args=("aws_cdk",)).start()
    try:
        context = _context()
        loaded, staged = _load(context)
        _refuse_unbuilt(loaded)
    except FindingsError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    from fmblocks_stacks.assembly import synthesize

    try:
        synthesize(loaded, staged=staged, context=context if "CDK_CONTEXT_JSON" not in os.environ else None)
    except FindingsError as error:  # what only constructs see: a kubectl that is not installed
        print(error, file=sys.stderr)
        sys.exit(1)


def _load(context: dict[str, object]) -> tuple[list[LoadedProject], bool]:
    pattern = context.get("projects")
    charts = Path(str(context["charts"])) if "charts" in context else None
    if pattern is None:
        return [Project.load(str(context.get("project", "project.yaml")), charts=charts)], False
    files = sorted(glob.glob(str(pattern)))
    if not files:
        raise FindingsError([_fault("projects", f"{pattern} matches no file", "check the pattern")])
    loaded: list[LoadedProject] = []
    wrong = []
    for file in files:
        try:
            loaded.append(Project.load(file, charts=charts))
        except FindingsError as error:
            wrong += error.findings
    first: dict[str, Path] = {}
    for one in loaded:
        if (name := one.project.name) in first:
            wrong.append(_fault("name", f"{name} is the name of {first[name]} and {one.path}", "rename one"))
        first.setdefault(name, one.path)
    if wrong:
        raise FindingsError(wrong)
    return loaded, True


def _refuse_unbuilt(projects: list[LoadedProject]) -> None:
    """What is only a warning for `validate` cannot be deployed."""
    found = [one for loaded in projects for one in loaded.findings if one.rule in UNBUILT]
    if found:
        raise FindingsError([replace(one, severity=Severity.ERROR) for one in found])


def _fault(path: str, message: str, hint: str) -> Finding:
    return Finding("SHAPE", Severity.ERROR, path, message, hint)


def _context() -> dict[str, object]:
    """The CDK context: from the CLI, or from cdk.json when the app is run by hand."""
    if overflow := os.environ.get("CONTEXT_OVERFLOW_LOCATION_ENV"):
        return {**json.loads(os.environ.get("CDK_CONTEXT_JSON", "{}")), **json.loads(Path(overflow).read_text())}
    if given := os.environ.get("CDK_CONTEXT_JSON"):
        return dict(json.loads(given))
    settings = Path("cdk.json")
    return dict(json.loads(settings.read_text()).get("context", {})) if settings.is_file() else {}
