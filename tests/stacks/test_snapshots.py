"""Whole templates of the reference projects: logical ids are a contract, and every change of one is looked at."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

from tests.stacks.conftest import EXAMPLES, Synthesize

BILLED = [("ec2-odcr.yaml", "CapacityStack")]
SERVING = [("serve-h100.yaml", "InferenceStack"), ("serve-disaggregated.yaml", "InferenceStack")]
BOTH = [("train-and-serve.yaml", stack) for stack in ("FoundationStack", "TrainingStack", "InferenceStack")]
ALONE = [example for example in EXAMPLES if example != "train-and-serve.yaml"]
ALWAYS = [
    *((example, "FoundationStack") for example in ALONE),
    *((example, "TrainingStack") for example in ALONE if not example.startswith("serve-")),
    *SERVING,
    *BOTH,
]


@pytest.mark.parametrize(("example", "stack"), [*ALWAYS, *BILLED])
def test_reference_templates(
    synthesize: Synthesize, root: Path, snapshot: SnapshotAssertion, example: str, stack: str
) -> None:
    text = json.dumps(synthesize(root / "projects" / example).templates[stack])
    # CDK's own framework and our handlers change their hashes without meaning for the template.
    masked = re.sub(r"[0-9a-f]{64}", "<hash>", re.sub(r'"v2:[^"]*"', '"<analytics>"', text))
    assert json.loads(masked) == snapshot.use_extension(JSONSnapshotExtension)
