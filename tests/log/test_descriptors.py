"""Too many open files: the log releases descriptors and no directory goes offline."""

import logging
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker.clock import ManualClock
from broker.errors import ApiError, ErrorCode
from broker.log.config import LogConfig
from broker.log.descriptors import DESCRIPTORS
from broker.log.environment import LogEnvironment
from broker.log.maintenance import LogMaintenance
from broker.log.manager import LogManager
from broker.model import TopicPartition
from tests.log.support import NOW_MS, UnflushedDisk, batch, values_of


def num_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """Lower the process's limit so that `count` more descriptors can be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
    taken = [os.open(os.devnull, os.O_RDONLY) for _ in range(highest + 1 - num_descriptors())]
    resource.setrlimit(resource.RLIMIT_NOFILE, (num_descriptors() + count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in taken:
            os.close(fd)


@contextmanager
def no_descriptors_left() -> Iterator[None]:
    with descriptors_left(10):
        taken = []
        try:
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            pass
        try:
            yield
        finally:
            for fd in taken:
                os.close(fd)


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogManager]:
    DESCRIPTORS._warned_at = -1e9
    environment = LogEnvironment(UnflushedDisk(), ManualClock(NOW_MS))
    manager = LogManager([tmp_path], lambda topic: LogConfig(index_interval_bytes=0), environment)
    manager.startup()
    yield manager
    manager.shutdown()


def partition(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


def test_new_partitions_hold_no_descriptors(logs: LogManager) -> None:
    before = num_descriptors()
    for number in range(50):
        logs.get_or_create(partition(number))
    assert num_descriptors() <= before


def test_retention_leaves_no_descriptors_open(logs: LogManager) -> None:
    for number in range(20):
        logs.get_or_create(partition(number)).append_as_leader(batch("x"), 0)
    LogMaintenance(logs).release_idle_files()
    LogMaintenance(logs).release_idle_files()
    before = num_descriptors()
    LogMaintenance(logs).delete_expired()
    assert num_descriptors() <= before


def test_more_partitions_in_use_than_descriptors_take_turns(
    logs: LogManager, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), descriptors_left(25):
        for number in range(100):
            logs.get_or_create(partition(number))
        for value in ("a", "b", "c"):
            for number in range(100):
                logs.get_or_create(partition(number)).append_as_leader(batch(value), 0)
        for number in range(100):
            assert values_of(logs.logs[partition(number)]) == ["a", "b", "c"]
        LogMaintenance(logs).checkpoint_recovery_points()
    assert logs.offline_dirs == []
    warnings = [record for record in caplog.records if "too many open files" in record.message]
    assert len(warnings) == 1


def test_without_any_descriptor_appends_fail_retriably_and_nothing_goes_offline(
    logs: LogManager, tmp_path: Path
) -> None:
    log = logs.get_or_create(partition(0))
    log.append_as_leader(batch("kept"), 0)
    log.release_files()
    with no_descriptors_left():
        with pytest.raises(ApiError) as refused:
            log.append_as_leader(batch("refused"), 0)
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        with pytest.raises(ApiError):
            log.read(0, 1000)
    assert logs.offline_dirs == []
    assert log.append_as_leader(batch("next"), 0).first_offset == 1
    assert values_of(log) == ["kept", "next"]
    log.flush(include_active=True)
    assert log.recovery_point == 2


def test_checkpoints_are_written_from_the_reserve(logs: LogManager, tmp_path: Path) -> None:
    log = logs.get_or_create(partition(0))
    log.append_as_leader(batch("kept"), 0)
    log.flush(include_active=True)
    log.release_files()
    with no_descriptors_left():
        LogMaintenance(logs).checkpoint_recovery_points()
    checkpoint = tmp_path / "recovery-point-offset-checkpoint"
    assert checkpoint.read_text().splitlines() == ["0", "1", "orders 0 1"]
    assert logs.offline_dirs == []


def test_a_flush_that_found_no_descriptor_is_made_up_for(logs: LogManager) -> None:
    log = logs.get_or_create(partition(0))
    log.append_as_leader(batch("a"), 0)
    log.release_files()
    with no_descriptors_left(), pytest.raises(ApiError):
        log.flush(include_active=True)
    assert log.recovery_point == 0
    assert log.segments.active.take_unflushed()
