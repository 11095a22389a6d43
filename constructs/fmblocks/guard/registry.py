"""Which properties of a resource cannot change in place.

``create_only.json`` holds what CloudFormation's registry schemas say; ``make docs`` writes it from the schemas that
cfn-lint ships, and a test compares the two.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path

# What the schema of a type omits: FSx's UpdateFileSystem takes none of these, so that CloudFormation replaces the file
# system or fails. A test derives them from botocore's model of the API: what it takes at creation only. StorageType
# stands in UpdateFileSystem for FSx for Windows.
NOT_UPDATABLE: Mapping[str, tuple[str, ...]] = {
    "AWS::FSx::FileSystem": (
        "StorageType",
        "LustreConfiguration/CopyTagsToBackups",
        "LustreConfiguration/DeploymentType",
        "LustreConfiguration/DriveCacheType",
        "LustreConfiguration/EfaEnabled",
        "LustreConfiguration/ExportPath",
        "LustreConfiguration/ImportPath",
        "LustreConfiguration/ImportedFileChunkSize",
        "OpenZFSConfiguration/DeploymentType",
        "OpenZFSConfiguration/EndpointIpAddressRange",
        "OpenZFSConfiguration/PreferredSubnetId",
        "OpenZFSConfiguration/RootVolumeConfiguration",
    ),
}


def always(resource_type: str) -> tuple[str, ...]:
    """Paths whose change replaces a resource of this type, ``Outer/Inner`` with ``*`` for items of a list."""
    return tuple(_schemas().get(resource_type, {}).get("always", ()))


def sometimes(resource_type: str) -> tuple[str, ...]:
    """Paths whose change may replace it."""
    return tuple(_schemas().get(resource_type, {}).get("sometimes", ()))


@functools.cache
def _schemas() -> dict[str, dict[str, list[str]]]:
    text = Path(__file__).with_name("create_only.json").read_text(encoding="utf-8")
    found: dict[str, dict[str, list[str]]] = json.loads(text)
    return found
