"""Start-up time of kctl compared with the bare Python interpreter."""

import subprocess
import sys
from collections.abc import Iterator

from bench.report import Comparison, median_seconds


def run() -> Iterator[Comparison]:
    """Compare `kctl --help` with an empty Python program: the difference is kctl's own cost."""
    ours = _milliseconds("-m", "kctl", "--help")
    nothing = _milliseconds("-c", "")
    yield Comparison("kctl --help", ours, nothing, "python -c ''", "ms")
    yield Comparison("kctl --help", ours, 250, "limit", "ms", goal=1)


def _milliseconds(*args: str) -> float:
    command = [sys.executable, *args]
    return 1000 * median_seconds(lambda: subprocess.run(command, capture_output=True, check=True))
