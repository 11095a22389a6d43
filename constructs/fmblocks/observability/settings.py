"""What a project file says about its metrics."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from fmblocks.settings import Settings, WholeNumber


class Prometheus(Settings):
    """The Amazon Managed Service for Prometheus workspace."""

    FOREIGN: ClassVar = {
        "workspace_arn": "this version creates the workspace; the constructs import one",
    }

    retention_days: Annotated[WholeNumber, Field(description="days that samples are kept")] = 150


class Observability(Settings):
    """Metrics of a project."""

    FOREIGN: ClassVar = {
        "grafana": "this version has no Grafana workspace yet: leave the key out",
        "alerts": "this version has no alerts yet: leave the key out",
        "projects": "this version has no shared foundations yet: leave the key out",
    }

    prometheus: Prometheus = Prometheus()
