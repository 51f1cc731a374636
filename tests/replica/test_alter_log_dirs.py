"""Replicas move between log directories while they are written to, and lose nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from broker.errors import ApiError, ErrorCode
from broker.log.config import LogConfig
from broker.log.manager import LogManager
from broker.log.truncation import truncate_to
from broker.model import LeaderAndIsr, TopicPartition, Uuid
from broker.replica import alter_log_dirs
from broker.replica.alter_log_dirs import ReplicaAlterLogDirsManager
from broker.replica.partition import Partition
from tests.log.support import batch, everything, values_of
from tests.net.support import until

NAME = TopicPartition("orders", 0)
TOPIC_ID = Uuid(b"the topic's id..")
LED = LeaderAndIsr(leader=1, leader_epoch=0, isr=(1,), replicas=(1,))


class Broker:
    """Two log directories, and one partition that is in the first of them."""

    def __init__(self, directory: Path) -> None:
        self.first, self.second = directory / "first", directory / "second"
        self.logs = LogManager([self.first, self.second], lambda _: LogConfig(segment_bytes=2000))
        self.logs.startup()
        log = self.logs.get(NAME) or self.logs.get_or_create(NAME, TOPIC_ID, log_dir=self.first)
        self.partition = Partition(NAME, TOPIC_ID, 1, log, LeaderAndIsr(-1, -1, (), ()))
        self.partition.become_leader_or_follower(LED)
        self.manager = ReplicaAlterLogDirsManager(self.logs, {NAME: self.partition})

    def append(self, *values: str) -> None:
        """Append one batch."""
        self.partition.append_as_leader(batch(*values))

    async def arrived(self, log_dir: Path) -> None:
        """Wait until the replica is in `log_dir`."""
        await until(lambda: self.partition.log.log_dir == log_dir)


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    """A broker whose partition has fifty records, in several segments."""
    made = Broker(tmp_path)
    for number in range(50):
        made.append(f"value {number}")
    return made


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario in an event loop."""
    asyncio.run(_coroutine(scenario))


async def _coroutine(scenario: Callable[[], Awaitable[None]]) -> None:
    await scenario()


def test_moved_replica_is_the_same_in_the_other_directory(broker: Broker) -> None:
    before = broker.partition.log
    content = everything(before)

    async def scenario() -> None:
        broker.manager.alter(NAME, broker.second)
        await broker.arrived(broker.second)

    run(scenario)
    log = broker.partition.log
    assert everything(log) == content
    assert log.directory == broker.second / "orders-0"
    assert (log.log_end_offset, log.high_watermark) == (50, 50)
    assert log.leader_epochs.entries == before.leader_epochs.entries
    assert broker.logs.get(NAME) is log
    assert broker.logs.get(NAME, is_future=True) is None
    assert [path.name[-7:] for path in broker.first.glob("orders-0*")] == ["-delete"]


def test_records_appended_during_the_move_are_moved_too(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alter_log_dirs, "_CHUNK_BYTES", 100)

    async def scenario() -> None:
        broker.manager.alter(NAME, broker.second)
        for number in range(50, 300):
            broker.append(f"value {number}")
            await asyncio.sleep(0)
        await broker.arrived(broker.second)
        broker.append("the last")

    run(scenario)
    expected = [f"value {number}" for number in range(300)]
    assert values_of(broker.partition.log) == [*expected, "the last"]


def test_log_start_offset_inside_a_batch_is_kept(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    broker.append(*"abcdef")
    broker.append("g")
    broker.partition.delete_records(3)

    async def scenario() -> None:
        broker.manager.alter(NAME, broker.second)
        await broker.arrived(broker.second)

    run(scenario)
    log = broker.partition.log
    assert (log.log_start_offset, log.log_end_offset) == (3, 7)
    assert log.segments.first.base_offset == 0


def test_move_continues_after_a_restart(broker: Broker, tmp_path: Path) -> None:
    content = everything(broker.partition.log)

    async def begin() -> None:
        broker.manager.alter(NAME, broker.second)
        await broker.manager.stop()

    run(begin)
    broker.logs.shutdown()
    restarted = Broker(tmp_path)

    async def go_on() -> None:
        assert restarted.partition.log.log_dir == restarted.first
        restarted.manager.resume(restarted.partition)
        await restarted.arrived(restarted.second)

    run(go_on)
    assert everything(restarted.partition.log) == content


def test_future_log_longer_than_the_current_one_is_truncated(
    broker: Broker, tmp_path: Path
) -> None:
    future = broker.logs.get_or_create(NAME, TOPIC_ID, is_future=True, log_dir=broker.second)
    while not alter_log_dirs._copy_chunk(broker.partition.log, future):
        pass
    truncate_to(broker.partition.log, 20)  # as a crash would

    async def scenario() -> None:
        broker.manager.resume(broker.partition)
        broker.append("new")
        await broker.arrived(broker.second)

    run(scenario)
    expected = [f"value {number}" for number in range(20)]
    assert values_of(broker.partition.log) == [*expected, "new"]


def test_move_back_deletes_the_future_log(broker: Broker) -> None:
    async def scenario() -> None:
        broker.manager.alter(NAME, broker.second)
        broker.manager.alter(NAME, broker.first)
        assert broker.logs.get(NAME, is_future=True) is None
        await broker.manager.stop()

    run(scenario)
    assert broker.partition.log.log_dir == broker.first
    broker.append("still written to")


def test_smaller_segment_bytes_do_not_stop_the_move(broker: Broker) -> None:
    content = everything(broker.partition.log)

    async def scenario() -> None:
        broker.manager.alter(NAME, broker.second)
        future = broker.logs.get(NAME, is_future=True)
        assert future is not None
        future.update_config(LogConfig(segment_bytes=500))
        await broker.arrived(broker.second)

    run(scenario)
    assert everything(broker.partition.log) == content


def test_replica_stays_where_it_is_if_the_copy_fails(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> bool:
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")

    monkeypatch.setattr(alter_log_dirs, "_copy_chunk", fail)

    async def scenario() -> None:
        broker.manager.alter(NAME, broker.second)
        await asyncio.gather(*broker.manager._tasks.values())

    run(scenario)
    assert "cannot move replica partition=orders-0: the disk is full" in caplog.text
    assert broker.partition.log.log_dir == broker.first


@pytest.mark.parametrize(
    ("name", "destination", "code"),
    [
        (NAME, "third", ErrorCode.LOG_DIR_NOT_FOUND),
        (TopicPartition("x" * 215, 0), "second", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TopicPartition("none", 0), "second", ErrorCode.REPLICA_NOT_AVAILABLE),
    ],
)
def test_impossible_move_is_refused(
    broker: Broker, tmp_path: Path, name: TopicPartition, destination: str, code: ErrorCode
) -> None:
    with pytest.raises(ApiError) as refused:
        broker.manager.alter(name, tmp_path / destination)
    assert refused.value.code == code


def test_directory_of_a_partition_that_is_not_here_yet_is_kept(broker: Broker) -> None:
    absent = TopicPartition("later", 0)
    with pytest.raises(ApiError):
        broker.manager.alter(absent, broker.second)
    assert broker.manager.preferred == {absent: broker.second}


def test_move_is_as_slow_as_its_rate(broker: Broker) -> None:
    async def scenario() -> None:
        size = broker.partition.log.size_in_bytes
        broker.manager.limit = (
            size  # the bytes of one second; the rate is measured in whole seconds
        )
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        for number in range(200):
            broker.append(f"value {number}")
        broker.manager.alter(NAME, broker.second)
        await broker.arrived(broker.second)
        assert loop.time() - started_s > 2

    run(scenario)
