"""Every invariant of the simulation is seen to be broken where it is."""

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from broker.model import TopicPartition
from broker.records.control import ControlRecordType
from tests.simulation.clients import GroupConsumer, Violation
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.invariants import History, Leadership, Row
from tests.simulation.loop import SimulatedLoop

NAME, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
PRODUCER_ID = 7


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with closing(SimulatedLoop(random.Random(1))) as loop:
        yield History(SimulatedCluster(loop, random.Random(1), tmp_path), NAME.topic)


def rows(*values: str) -> list[Row]:
    """Records from offset 0 on; `commit` and `abort` are markers, `txn/…` transactional."""
    markers = {"commit": ControlRecordType.COMMIT, "abort": ControlRecordType.ABORT}
    return [
        Row(
            offset,
            b"" if value in markers else value.encode(),
            PRODUCER_ID,
            value in markers or value.startswith("txn"),
            markers.get(value),
        )
        for offset, value in enumerate(values)
    ]


def lead(
    history: History, *values: str, below: int, name: TopicPartition = NAME, is_newest: bool = True
) -> None:
    """Show a leader with these records, and with this high watermark."""
    leader = Leadership(high_watermark=below, rows=rows(*values))
    history.check_committed(name, leader, is_newest=is_newest)


def test_records_above_the_high_watermark_may_be_replaced(history: History) -> None:
    lead(history, "a/0", "a/1", below=1)
    lead(history, "a/0", "b/0", below=2)


def test_a_new_leader_without_a_committed_record_is_a_violation(history: History) -> None:
    lead(history, "a/0", "a/1", below=2)
    with pytest.raises(Violation, match="lost"):
        lead(history, "a/0", below=0)


def test_a_former_leader_may_lag_but_not_differ(history: History) -> None:
    lead(history, "a/0", "a/1", below=2)
    lead(history, "a/0", below=1, is_newest=False)
    with pytest.raises(Violation, match="lost"):
        lead(history, "b/0", below=1, is_newest=False)


def test_a_repeated_or_missing_record_is_a_violation(history: History) -> None:
    with pytest.raises(Violation, match="instead of number 1"):
        lead(history, "a/0", "a/0", below=2)
    with pytest.raises(Violation, match="instead of number 0"):
        lead(history, "a/1", below=1, name=OTHER)


def test_markers_that_disagree_are_a_violation(history: History) -> None:
    lead(history, "txn/3/0", "commit", below=2)
    with pytest.raises(Violation, match="txn/3 is torn"):
        lead(history, "txn/3/1", "abort", below=2, name=OTHER)


def test_a_commit_that_moves_back_is_a_violation(history: History) -> None:
    commits = [(NAME, 5), (OTHER, 1), (NAME, 4)]
    history.clients = [GroupConsumer(history.cluster, "consumer", "group", [NAME, OTHER], commits)]
    with pytest.raises(Violation, match="moved back from 5 to 4"):
        history.check()
