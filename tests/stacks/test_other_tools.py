"""What CDK's own validation, cfn-lint and cdk-nag say about every example and form."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from cdk_nag import AwsSolutionsChecks
from cfnlint.api import lint_file
from cfnlint.config import ManualArgs

from fmblocks.project import Project
from fmblocks_stacks.assembly import build
from tests.conftest import CHARTS
from tests.stacks.accepted import LINT, NAG
from tests.stacks.conftest import EXAMPLES, Synthesized


def _nag(file: Path, context: dict[str, Any]) -> list[tuple[str, str]]:
    app = cdk.App(context=context)
    build(app, [Project.load(file, charts=CHARTS)])
    return [
        (violation.rule_name, str(resource.construct_path))
        for stack in app.node.children
        if isinstance(stack, cdk.Stack)
        for violation in AwsSolutionsChecks(stack).validate_scope(stack).violations
        for resource in violation.violating_resources
    ]


def test_cdk_nag_finds_what_is_accepted_and_nothing_else(root: Path, cdk_context: dict[str, Any]) -> None:
    found = [finding for name in EXAMPLES for finding in _nag(root / "projects" / name, cdk_context)]

    def accepts(row: tuple[str, str, str], finding: tuple[str, str]) -> bool:
        return bool(re.fullmatch(row[0], finding[0]) and re.fullmatch(row[1], finding[1]))

    assert [finding for finding in found if not any(accepts(row, finding) for row in NAG)] == []
    assert [row for row in NAG if not any(accepts(row, finding) for finding in found)] == []


def test_cfn_lint_finds_what_is_accepted_and_nothing_else(synthesized: Synthesized) -> None:
    (stack,) = [one for one in synthesized.app.node.children if one.node.id == "FoundationStack"]
    assert isinstance(stack, cdk.Stack)
    region = "us-west-2" if cdk.Token.is_unresolved(stack.region) else stack.region
    for name in synthesized.templates:
        found = lint_file(synthesized.folder / f"{name}.template.json", ManualArgs(regions=[region]))
        left = [
            f"{match.rule.id} {match.message}"
            for match in found
            if not any(match.rule.id == rule and re.search(text, match.message) for rule, text, _ in LINT)
        ]
        assert left == []


def test_cdk_validation_has_nothing_but_our_own_warning(synthesized: Synthesized) -> None:
    file = synthesized.folder / "validation-report.json"
    reports = json.loads(file.read_text())["pluginReports"] if file.exists() else []
    assert {violation["ruleName"] for report in reports for violation in report["violations"]} <= {
        "Annotation::fmblocks:FMB-11",
        "Annotation::fmblocks:HP-12",
    }
    suppressed = [violation for report in reports for violation in report.get("suppressedViolations", [])]
    assert {violation["ruleName"] for violation in suppressed} <= {"E3644", "F3006", "W3010"}


def test_wrong_templates_do_not_pass_cdk_validation(cdk_context: dict[str, Any]) -> None:
    """The flag of cdk.json is on: without it the check above could not fail."""
    app = cdk.App(context=cdk_context)
    cdk.CfnResource(cdk.Stack(app, "S"), "R", type="AWS::S3::Bucket", properties={"BucketNmae": "x"})
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()


def test_every_example_is_tested(root: Path) -> None:
    assert {file.name for file in (root / "projects").glob("*.yaml")} == set(EXAMPLES)
    assert json.loads((root / "cdk.json").read_text())["context"]["project"] == "projects/trial-g6.yaml"
