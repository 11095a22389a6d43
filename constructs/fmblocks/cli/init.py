"""``fmblocks init``: a first app."""

from __future__ import annotations

import json
from pathlib import Path

from fmblocks.catalog import zone_id_prefix

_APP = '''"""The CDK app of this project; fmblocks reads the project file that cdk.json names."""

from fmblocks_stacks.app import main

main()
'''
_PROJECT = """\
# fmblocks validate {file} checks this file; docs/project-file.md of fmblocks lists every key.
name: "{name}"
region: "{region}"
network:
  availability_zones: ["{zone}"]
storage:
  lustre:
    deployment_type: scratch_2
    capacity_gib: 1200
training:
  node_groups:
    - {{name: controller, role: controller, instance_type: m5.xlarge, count: 1, ebs_volume_gib: 100}}
    - {{name: compute, role: compute, instance_type: "{instance_type}", count: {count}}}
"""


def first_files(name: str, region: str, zone: str | None, instance_type: str, count: int) -> dict[str, str]:
    """What ``init`` writes, by file name."""
    file = f"{name}.yaml"
    flags = json.loads(Path(__file__).with_name("feature_flags.json").read_text(encoding="utf-8"))
    settings = {"app": "python -P app.py", "context": {**flags, "project": file}}
    project = _PROJECT.format(
        file=file,
        name=name,
        region=region,
        zone=zone or f"{zone_id_prefix(region)}-az1",
        instance_type=instance_type,
        count=count,
    )
    return {"app.py": _APP, "cdk.json": json.dumps(settings, indent=2) + "\n", file: project}
