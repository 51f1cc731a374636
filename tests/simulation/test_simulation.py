"""Seeds of the simulation that run with every `make test`; `make simulate` runs many more.

Each seed runs in a process of its own: a replay needs fixed hashes and addresses.

Bugs that were fixed are put back (`bugs`), to check that the seeds still find them.
"""

import subprocess
import sys

import pytest

from tests.simulation.bugs import BUGS

SEEDS = [*range(1, 8), 24, 2025, 5018, 5072, 10_076, 20_024]
"""Those after the first range have failed before; the last one with a bug put back."""
FAULT_S = 30
FOUND_BY = {
    "early-ack": ("acknowledged at offset", (1, 2, 3)),
    "high-watermark-stands": ("waited 5", (5, 9, 24, 25, 27, 37)),
    "isr-stuck": ("ISR", (20_011, 20_024, 20_031)),
    "isr-healed-by-timer": ("missed", (20_011, 20_024, 20_031)),
}
"""By bug: a part of what is found, and seeds that find it; the first of them alone is enough."""


def run_seed(
    seed: int, fault_s: float = FAULT_S, *options: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.simulation", "--seed", str(seed), "--quiet"]
    return subprocess.run(
        [*command, "--seconds", str(fault_s), *options],
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


@pytest.mark.timeout(900)
@pytest.mark.parametrize("bug", sorted(BUGS))
def test_a_bug_put_back_is_found(bug: str) -> None:
    problem, seeds = FOUND_BY[bug]
    found = (run_seed(seed, FAULT_S, "--bug", bug).stdout for seed in seeds)
    # A change of the brokers may turn one of the seeds into another course of events.
    assert any("FAILED" in line and problem in line for line in found)
