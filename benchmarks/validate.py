"""Cold starts of `fmblocks validate` on every example: the median of ten, with compiled byte code. Goal: 0.5 s."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROUNDS = 10
GOAL_SECONDS = 0.5


def main() -> None:
    """Measure and print."""
    subprocess.run([sys.executable, "-m", "compileall", "-q", "constructs"], cwd=ROOT, check=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for file in sorted((ROOT / "projects").glob("*.yaml")):
        command = [str(Path(sys.executable).with_name("fmblocks")), "validate", str(file)]
        seconds = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            subprocess.run(command, env=environment, check=True, capture_output=True)
            seconds.append(time.perf_counter() - start)
        median = statistics.median(seconds)
        verdict = "within" if median <= GOAL_SECONDS else "MISSES"
        print(f"validate {file.name}: median {median:.2f} s ({verdict} the goal of {GOAL_SECONDS} s)")


if __name__ == "__main__":
    main()
