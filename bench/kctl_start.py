"""How long kctl takes to say something, beside the Python interpreter alone."""

import subprocess
import sys
from collections.abc import Iterator

from bench.report import Comparison, median_seconds


def run() -> Iterator[Comparison]:
    """`kctl --help` against an empty Python program: what we add to what cannot be avoided."""
    ours = _milliseconds("-m", "kctl", "--help")
    nothing = _milliseconds("-c", "")
    yield Comparison("kctl --help", ours, nothing, "python -c ''", "ms")
    yield Comparison("kctl --help", ours, 250, "limit", "ms", goal=1)


def _milliseconds(*args: str) -> float:
    command = [sys.executable, *args]
    return 1000 * median_seconds(lambda: subprocess.run(command, capture_output=True, check=True))
