"""A local AWS of its own for each test module, and the real CDK CLI."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from fmblocks.local import session
from tests.conftest import ROOT

FMBLOCKS = Path(sys.executable).with_name("fmblocks")


@dataclass(frozen=True)
class LocalAws:
    """A local AWS, its folder, and the account and Region that the project of the test names."""

    folder: Path
    account: str = "111122223333"
    region: str = "us-west-2"

    def run(self, *command: str, project: Path | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        """``fmblocks local run -- COMMAND`` from the checkout, without a terminal, as the account of a project."""
        whose = ["--project", str(project)] if project else []
        done = subprocess.run(
            [str(FMBLOCKS), "local", "run", *whose, "--", *command],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert not check or done.returncode == 0, done.stdout[-6000:]
        return done

    def cdk(self, verb: str, project: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """A command of the CDK CLI over a project."""
        output = ["--output", str(self.folder.parent / "cdk.out")]
        command = ["npx", "cdk", verb, *words, "-c", f"project={project}", "--progress", "events", *output]
        return self.run(*command, check=check)

    def deploy(self, project: Path, stack: str = "TrainingStack", *words: str, check: bool = True) -> str:
        """Deploy a stack and what it stands on; give back what the CLI said."""
        return self.cdk("deploy", project, stack, *words, check=check).stdout

    def destroy(self, project: Path, stack: str, *, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Destroy one stack."""
        return self.cdk("destroy", project, stack, "--force", check=check)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of ``fmblocks local``, as in a fresh account: an empty HOME, no AWS variables."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_", "HOME"))}
        home = self.folder.parent / "home"
        home.mkdir(exist_ok=True)
        return {**kept, "HOME": str(home), "FMBLOCKS_LOCAL_DIR": str(self.folder)}

    def client(self, service: str) -> Any:
        """A boto3 client of the account and Region."""
        os.environ["FMBLOCKS_LOCAL_DIR"] = str(self.folder)
        found = session.running()
        assert found is not None
        return boto3.Session().client(
            service,  # type: ignore[call-overload]
            endpoint_url=found.endpoint,
            region_name=self.region,
            aws_access_key_id=self.account,
            aws_secret_access_key="local",
        )

    def resources(self, stack: str) -> dict[str, tuple[str, str]]:
        """Logical id → type and physical id of what a stack holds."""
        pages = self.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=stack)
        return {
            found["LogicalResourceId"]: (found["ResourceType"], found["PhysicalResourceId"])
            for page in pages
            for found in page["StackResourceSummaries"]
            if found["ResourceStatus"] != "DELETE_COMPLETE"
        }

    def status(self, stack: str) -> str:
        """The status of a stack."""
        found = self.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
        return str(found["StackStatus"])

    def unlock(self, stack: str) -> None:
        """Switch termination protection off."""
        self.client("cloudformation").update_termination_protection(StackName=stack, EnableTerminationProtection=False)


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory, monkeypatch_module: pytest.MonkeyPatch) -> Iterator[LocalAws]:
    """A local AWS that lives as long as the module."""
    folder = tmp_path_factory.mktemp("aws") / "local"
    monkeypatch_module.setenv("FMBLOCKS_LOCAL_DIR", str(folder))
    local = LocalAws(folder)
    yield local
    subprocess.run([str(FMBLOCKS), "local", "down"], env=local.environment, check=True, capture_output=True)
    assert not folder.exists()


@pytest.fixture(scope="module")
def monkeypatch_module() -> Iterator[pytest.MonkeyPatch]:
    """monkeypatch, for a module."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch
