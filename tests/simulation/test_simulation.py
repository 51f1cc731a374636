"""Seeds of the simulation that run with every `make test`; `make simulate` runs many more.

Each seed runs in a process of its own: a replay needs fixed hashes and addresses.

Two fixed bugs were reintroduced to check that the seeds find them. Seeds 2, 5, 6, 11 and 19 find a
high watermark that stands still after a clean stop (LIVE_BROKERS and TIMER do not re-evaluate it, a
follower outside of the ISR keeps the time it was caught up): a producer waits 5 s. Seed 4 finds an
ISR that is not expanded after an accepted proposal: the timer has to do it, and counts.
"""

import subprocess
import sys

import pytest

SEEDS = [*range(1, 8), 24, 2025, 5018, 5072, 10_076]
"""Those after the first range have failed before."""
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
