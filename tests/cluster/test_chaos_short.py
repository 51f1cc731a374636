"""A few faults under load, as `make chaos` has them for minutes (tests/chaos)."""

from pathlib import Path

import pytest

from tests.chaos.faults import expire_controller, kill_leader, pause_leader
from tests.chaos.run import run_chaos, stage


@pytest.mark.timeout(180)
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # kafka-python: failed connections
def test_nothing_promised_is_broken_by_a_death_an_expiry_and_a_zombie(tmp_path: Path) -> None:
    with stage(tmp_path, seed=6, num_zookeepers=1) as place:
        run_chaos(place, (kill_leader, expire_controller, pause_leader), 60, print)
