"""Seeds of the simulation that run with every `make test`; `make simulate` runs many more.

Each seed runs in a process of its own: a replay needs fixed hashes and addresses.
"""

import subprocess
import sys

import pytest

SEEDS = [*range(1, 8), 24, 2025]
FAULT_S = 30


def run_seed(seed: int, fault_s: float = FAULT_S) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.simulation", "--seed", str(seed), "--quiet"]
    return subprocess.run(
        [*command, "--seconds", str(fault_s)],
        capture_output=True,
        text=True,
        timeout=290,
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", SEEDS)
def test_cluster_loses_nothing_and_recovers_from_every_fault(seed: int) -> None:
    done = run_seed(seed)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(300)
def test_same_seed_replays_the_same_run() -> None:
    first, second = run_seed(1000, 10), run_seed(1000, 10)
    assert first.returncode == 0, first.stdout + first.stderr
    assert first.stdout == second.stdout
