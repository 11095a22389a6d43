"""Wall time and peak memory of the default app against an empty Python CDK app with the same cdk.json, as ratios.

Run it with ``make bench``: byte code is compiled first, both apps take turns in one run, and the medians are compared.
Python and Node are counted together. Goals: 2.0 for time, 1.5 for memory.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).parent.parent
ROUNDS = 5
GOALS = {"wall time": 2.0, "peak memory": 1.5}
# As empty as the validation of cdk.json lets a stack be: one without any resource is refused.
EMPTY = """\
import aws_cdk as cdk

app = cdk.App()
cdk.CfnWaitConditionHandle(cdk.Stack(app, "Empty"), "Nothing")
app.synth()
"""


def main() -> None:
    """Measure and print."""
    subprocess.run([sys.executable, "-m", "compileall", "-q", "constructs", "stacks", "lambda"], cwd=ROOT, check=True)
    context = json.dumps(json.loads((ROOT / "cdk.json").read_text())["context"])
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.py"
        empty.write_text(EMPTY)
        measured: dict[str, list[tuple[float, float]]] = {"empty": [], "default": []}
        for _ in range(ROUNDS + 1):
            for name, app in (("empty", empty), ("default", ROOT / "app.py")):
                measured[name].append(_measure(app, Path(folder) / "out", context))
    for index, (what, unit) in enumerate((("wall time", "s"), ("peak memory", "MiB"))):
        # The first round warms the disk.
        empty_value, default_value = (
            statistics.median(run[index] for run in measured[name][1:]) for name in ("empty", "default")
        )
        ratio = default_value / empty_value
        verdict = "within" if ratio <= GOALS[what] else "MISSES"
        print(
            f"{what}: default {default_value:.2f} {unit}, empty {empty_value:.2f} {unit}, "
            f"ratio {ratio:.2f} ({verdict} the goal of {GOALS[what]})"
        )


def _measure(app: Path, out: Path, context: str) -> tuple[float, float]:
    """Seconds, and MiB of Python and Node together at their highest."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"CDK_OUTDIR": str(out), "CDK_CONTEXT_JSON": context}
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-P", str(app)], cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
    family = psutil.Process(process.pid)
    peak = 0.0
    while process.poll() is None:
        try:
            members = [family, *family.children(recursive=True)]
            peak = max(peak, sum(member.memory_info().rss for member in members) / 2**20)
        except psutil.Error:
            pass
        time.sleep(0.02)
    if process.returncode:
        raise SystemExit(f"{app} failed")
    return time.perf_counter() - start, peak


if __name__ == "__main__":
    main()
