"""All faults for several minutes: `make chaos`.

CHAOS_SECONDS says for how long, CHAOS_SEED which faults in which order (printed with each run),
CHAOS_PACE_MS how long producers pause between two records (default 0.5; use 5 for an hour).
"""

import os
import random
from pathlib import Path

import pytest

from tests.chaos.faults import in_rounds
from tests.chaos.run import all_faults, run_chaos, stage

SECONDS = int(os.environ.get("CHAOS_SECONDS", "180"))
SEED = int(os.environ.get("CHAOS_SEED", "0")) or random.randrange(1, 1_000_000)


@pytest.mark.chaos
@pytest.mark.zk
@pytest.mark.timeout(SECONDS + 900)
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # kafka-python: failed connections
def test_no_guarantee_is_broken_by_any_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def say(line: str) -> None:
        with capsys.disabled():
            print(line, flush=True)

    say(f"\nCHAOS_SEED={SEED} CHAOS_SECONDS={SECONDS}")
    with stage(tmp_path, SEED) as place:
        run_chaos(place, in_rounds(all_faults(), place.random), SECONDS, say)
