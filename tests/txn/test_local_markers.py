"""Markers in partitions of this broker: real logs, and callbacks to the group coordinator."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.clock import ManualClock
from broker.errors import ApiError, ErrorCode
from broker.log.config import LogConfig
from broker.log.manager import LogManager
from broker.model import LeaderAndIsr, TopicPartition, Uuid
from broker.records.control import ControlRecordType, read_end_transaction_marker
from broker.replica.partition import Partition
from broker.replica.purgatory import Purgatory
from broker.topic_names import OFFSETS_TOPIC
from broker.txn.local_markers import LocalMarkers
from broker.txn.storage import TxnMarker

DATA = TopicPartition("t", 0)
OFFSETS = TopicPartition(OFFSETS_TOPIC, 2)
MISSING = TopicPartition("t", 9)
COMMIT = TxnMarker(producer_id=7, producer_epoch=1, coordinator_epoch=4, commit=True)


class Broker:
    """Two partitions led by this broker, and the callbacks to the group coordinator."""

    def __init__(self, directory: Path, isr: tuple[int, ...] = (1,)) -> None:
        self.loading: set[int] = set()
        self.told: list[Any] = []
        self.partitions = {}
        self.purgatory = Purgatory()
        self.logs = LogManager([directory], lambda topic: LogConfig())
        self.logs.startup()
        state = LeaderAndIsr(1, 0, isr, isr)
        for name in (DATA, OFFSETS):
            log = self.logs.get_or_create(name, Uuid.random(), is_new=True)
            self.partitions[name] = Partition(name, Uuid.ZERO, 1, log, LeaderAndIsr(-1, -1, (), ()))
            self.partitions[name].become_leader_or_follower(state)
        self.markers = LocalMarkers(
            self,  # type: ignore[arg-type]
            ManualClock(1_700_000_000_000),
            timeout_ms=10,
            offsets_are_loading=self.loading.__contains__,
            on_offsets_completed=lambda *what: self.told.append(what),
        )

    def find(self, topic: str, index: int) -> Partition:
        try:
            return self.partitions[TopicPartition(topic, index)]
        except KeyError:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) from None


@pytest.fixture
def broker(log_dir: Path) -> Iterator[Broker]:
    broker = Broker(log_dir)
    yield broker
    broker.logs.shutdown()


async def test_marker_is_appended_to_every_local_partition(broker: Broker) -> None:
    results = await broker.markers.write_markers(COMMIT, [DATA, MISSING])
    assert results == {
        DATA: ErrorCode.NONE,
        MISSING: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    (segment,) = broker.partitions[DATA].log.segments
    ((_, batch),) = segment.log.batches()
    ((_, timestamp, key, value, _),) = batch.record_tuples()
    marker = read_end_transaction_marker(key, value)
    assert marker == (ControlRecordType.COMMIT, 4)
    assert (batch.header.producer_id, batch.header.producer_epoch) == (7, 1)
    assert timestamp == 1_700_000_000_000
    assert broker.told == []


async def test_group_coordinator_is_notified_of_markers_in_the_offsets_topic(
    broker: Broker,
) -> None:
    assert await broker.markers.write_markers(COMMIT, [OFFSETS, DATA]) == {
        OFFSETS: ErrorCode.NONE,
        DATA: ErrorCode.NONE,
    }
    assert broker.told == [(7, [2], True)]


async def test_marker_for_a_loading_offsets_partition_is_retried(broker: Broker) -> None:
    broker.loading.add(2)
    first = await broker.markers.write_markers(COMMIT, [OFFSETS])
    assert first == {OFFSETS: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert (broker.told, broker.partitions[OFFSETS].log.log_end_offset) == ([], 0)
    broker.loading.clear()
    assert await broker.markers.write_markers(COMMIT, [OFFSETS]) == {OFFSETS: ErrorCode.NONE}
    assert broker.told == [(7, [2], True)]


async def test_marker_of_a_former_coordinator_is_rejected(broker: Broker) -> None:
    await broker.markers.write_markers(COMMIT, [DATA])
    older = COMMIT._replace(coordinator_epoch=3)
    assert await broker.markers.write_markers(older, [DATA]) == {
        DATA: ErrorCode.TRANSACTION_COORDINATOR_FENCED
    }


async def test_marker_that_is_not_replicated_in_time_times_out(tmp_path: Path) -> None:
    broker = Broker(tmp_path, isr=(1, 2))
    assert await broker.markers.write_markers(COMMIT, [DATA]) == {DATA: ErrorCode.REQUEST_TIMED_OUT}
    broker.logs.shutdown()
