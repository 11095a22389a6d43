"""The traps of this layout, each with the test that breaks when it comes back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("folder", ["constructs", "stacks", "lambda"])
def test_a_source_root_holds_one_package_and_no_init(root: Path, folder: str) -> None:
    entries = [path.name for path in (root / folder).iterdir() if path.name not in ("__pycache__", "README.md")]
    assert len(entries) == 1
    assert (root / folder / entries[0] / "__init__.py").is_file()


def test_constructs_is_the_package_from_pypi(root: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-c", "import constructs; print(constructs.__file__)"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert root / "constructs" not in Path(found.stdout.strip()).parents
    assert "site-packages" in found.stdout


def test_app_runs_by_hand(root: Path, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CDK_")}
    subprocess.run([sys.executable, "app.py"], cwd=root, env={**environment, "CDK_OUTDIR": str(tmp_path)}, check=True)
    assert "FoundationStack" in json.loads((tmp_path / "manifest.json").read_text())["artifacts"]


@pytest.mark.parametrize("module", ["default_security_group", "lifecycle_bundle"])
def test_handlers_import_without_cdk_and_without_the_library(root: Path, module: str) -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('aws_cdk', 'constructs', 'jsii', 'pydantic', 'fmblocks')));"
        f"import fmblocks_lambda.{module}"
    )
    subprocess.run(
        [sys.executable, "-P", "-c", code], env={**os.environ, "PYTHONPATH": str(root / "lambda")}, check=True
    )


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import fmblocks", ("aws_cdk", "jsii", "pydantic", "boto3")),
        ("import fmblocks.project", ("aws_cdk", "jsii", "boto3")),
        ("import fmblocks.cli.main", ("aws_cdk", "jsii", "boto3", "ministack", "rich")),
    ],
)
def test_imports_stay_light(statement: str, absent: tuple[str, ...]) -> None:
    code = f"import sys; {statement}; print(*(name for name in {absent!r} if name in sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""


def test_every_public_name_loads() -> None:
    import fmblocks

    assert sorted(fmblocks._HOMES) == fmblocks.__all__
    for name in fmblocks.__all__:
        assert getattr(fmblocks, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = fmblocks.Nothing


def test_locks_name_no_address(root: Path) -> None:
    locks = [
        *(root / "requirements").glob("*.lock"),
        *(root / "constructs").rglob("*.lock"),
        root / "package-lock.json",
    ]
    assert len(locks) == 4
    for lock in locks:
        text = lock.read_text()
        assert "http" not in text.replace('"url": "https://', "")
        assert "--index" not in text
        assert '"resolved"' not in text
