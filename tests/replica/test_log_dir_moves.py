"""A replica moves between log directories while it is written to, and loses nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from broker.errors import ApiError, ErrorCode
from broker.log.config import LogConfig
from broker.log.manager import LogManager
from broker.model import LeaderAndIsr, TopicPartition, Uuid
from broker.replica import log_dir_moves
from broker.replica.acks import wait_while
from broker.replica.log_dir_moves import LogDirMoves
from broker.replica.partition import Partition
from tests.log.support import batch, everything, values_of

NAME = TopicPartition("orders", 0)
TOPIC_ID = Uuid(b"the topic's id..")
LED = LeaderAndIsr(leader=1, leader_epoch=0, isr=(1,), replicas=(1,))


class Broker:
    """The logs of two directories and one partition, which begins in the first."""

    def __init__(self, directory: Path) -> None:
        self.first, self.second = directory / "first", directory / "second"
        self.logs = LogManager([self.first, self.second], lambda _: LogConfig(segment_bytes=2000))
        self.logs.startup()
        log = self.logs.get(NAME) or self.logs.get_or_create(NAME, TOPIC_ID, log_dir=self.first)
        self.partition = Partition(NAME, TOPIC_ID, 1, log, LeaderAndIsr(-1, -1, (), ()))
        self.partition.become(LED)
        self.moves = LogDirMoves(self.logs, {NAME: self.partition})

    def append(self, *values: str) -> None:
        """One batch."""
        self.partition.append_as_leader(batch(*values))

    async def arrived(self, log_dir: Path) -> None:
        """Wait until the replica is in `log_dir`."""
        await wait_while(
            lambda partition, _: partition.log.log_dir != log_dir, [(self.partition, 0)], 20
        )
        assert self.partition.log.log_dir == log_dir


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    """With fifty records, in several segments."""
    made = Broker(tmp_path)
    for number in range(50):
        made.append(f"value {number}")
    return made


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run it in an event loop."""
    asyncio.run(_coroutine(scenario))


async def _coroutine(scenario: Callable[[], Awaitable[None]]) -> None:
    await scenario()


def test_moved_replica_is_the_same_in_the_other_directory(broker: Broker) -> None:
    before = broker.partition.log
    content = everything(before)

    async def scenario() -> None:
        broker.moves.begin(NAME, broker.second)
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


def test_what_is_written_during_the_move_moves_too(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_dir_moves, "_CHUNK_BYTES", 100)

    async def scenario() -> None:
        broker.moves.begin(NAME, broker.second)
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
        broker.moves.begin(NAME, broker.second)
        await broker.arrived(broker.second)

    run(scenario)
    log = broker.partition.log
    assert (log.log_start_offset, log.log_end_offset) == (3, 7)
    assert log.segments.first.base_offset == 0


def test_move_goes_on_after_a_restart(broker: Broker, tmp_path: Path) -> None:
    content = everything(broker.partition.log)

    async def begin() -> None:
        broker.moves.begin(NAME, broker.second)
        await broker.moves.stop()

    run(begin)
    broker.logs.shutdown()
    restarted = Broker(tmp_path)

    async def go_on() -> None:
        assert restarted.partition.log.log_dir == restarted.first
        restarted.moves.resume(restarted.partition)
        await restarted.arrived(restarted.second)

    run(go_on)
    assert everything(restarted.partition.log) == content


def test_future_log_that_is_longer_than_the_current_one_is_cut(
    broker: Broker, tmp_path: Path
) -> None:
    future = broker.logs.get_or_create(NAME, TOPIC_ID, is_future=True, log_dir=broker.second)
    while not log_dir_moves._copy_chunk(broker.partition.log, future):
        pass
    broker.partition.log.truncate_to(20)  # as a crash would

    async def scenario() -> None:
        broker.moves.resume(broker.partition)
        broker.append("new")
        await broker.arrived(broker.second)

    run(scenario)
    expected = [f"value {number}" for number in range(20)]
    assert values_of(broker.partition.log) == [*expected, "new"]


def test_move_back_gives_the_future_log_up(broker: Broker) -> None:
    async def scenario() -> None:
        broker.moves.begin(NAME, broker.second)
        broker.moves.begin(NAME, broker.first)
        assert broker.logs.get(NAME, is_future=True) is None
        await broker.moves.stop()

    run(scenario)
    assert broker.partition.log.log_dir == broker.first
    broker.append("still written to")


def test_segments_that_became_smaller_do_not_stop_the_move(broker: Broker) -> None:
    content = everything(broker.partition.log)

    async def scenario() -> None:
        broker.moves.begin(NAME, broker.second)
        future = broker.logs.get(NAME, is_future=True)
        assert future is not None
        future.update_config(LogConfig(segment_bytes=500))
        await broker.arrived(broker.second)

    run(scenario)
    assert everything(broker.partition.log) == content


def test_failed_copy_leaves_the_replica_where_it_is(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> bool:
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")

    monkeypatch.setattr(log_dir_moves, "_copy_chunk", fail)

    async def scenario() -> None:
        broker.moves.begin(NAME, broker.second)
        await asyncio.gather(*broker.moves._tasks.values())

    run(scenario)
    assert "replica could not be moved partition=orders-0: the disk is full" in caplog.text
    assert broker.partition.log.log_dir == broker.first


@pytest.mark.parametrize(
    ("name", "destination", "code"),
    [
        (NAME, "third", ErrorCode.LOG_DIR_NOT_FOUND),
        (TopicPartition("x" * 215, 0), "second", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TopicPartition("none", 0), "second", ErrorCode.REPLICA_NOT_AVAILABLE),
    ],
)
def test_move_that_cannot_be_is_refused(
    broker: Broker, tmp_path: Path, name: TopicPartition, destination: str, code: ErrorCode
) -> None:
    with pytest.raises(ApiError) as refused:
        broker.moves.begin(name, tmp_path / destination)
    assert refused.value.code == code


def test_partition_that_is_not_here_yet_has_its_directory_remembered(broker: Broker) -> None:
    absent = TopicPartition("later", 0)
    with pytest.raises(ApiError):
        broker.moves.begin(absent, broker.second)
    assert broker.moves.preferred == {absent: broker.second}


def test_move_takes_the_time_that_its_rate_allows(broker: Broker) -> None:
    async def scenario() -> None:
        size = broker.partition.log.size_in_bytes
        broker.moves.limit = size  # a second's worth, and the rate is counted by whole seconds
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        for number in range(200):
            broker.append(f"value {number}")
        broker.moves.begin(NAME, broker.second)
        await broker.arrived(broker.second)
        assert loop.time() - started_s > 2

    run(scenario)
