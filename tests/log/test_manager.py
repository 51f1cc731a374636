"""LogManager: several directories, clean and unclean shutdowns, deletion, moves."""

import errno
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from broker.clock import ManualClock
from broker.errors import ApiError, ErrorCode
from broker.log.checkpoints import MetaProperties, read_offsets
from broker.log.config import CleanerConfig, LogConfig
from broker.log.environment import LogEnvironment
from broker.log.files import FileSystem
from broker.log.maintenance import LogMaintenance
from broker.log.manager import LogManager
from broker.log.offsets import FetchIsolation
from broker.log.truncation import truncate_fully_and_start_at, truncate_to
from broker.model import TopicPartition, Uuid
from tests.log.support import (
    GOLDEN,
    NOW_MS,
    BreakingDisk,
    UnflushedDisk,
    batch,
    golden_copy,
    keyed,
    open_log,
    values_of,
)

ORDERS = TopicPartition("orders", 0)
OTHER = TopicPartition("other", 3)
MEMORY = CleanerConfig(dedupe_buffer_size=24 * 1_000)


class Broker:
    """A log manager with its clock, configuration and failed directories."""

    def __init__(
        self, *paths: Path, config: LogConfig | None = None, fs: FileSystem | None = None
    ) -> None:
        self.clock = ManualClock(NOW_MS)
        self.config = config or LogConfig()
        self.offline: list[Path] = []
        environment = LogEnvironment(fs or UnflushedDisk(), self.clock)
        self.logs = LogManager(
            paths, lambda topic: self.config, environment, MEMORY, self.offline.append
        )
        self.maintenance = LogMaintenance(self.logs)
        self.logs.startup()


def test_clean_stop_and_start_keep_everything(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    topic_id = Uuid.random()
    log = broker.logs.get_or_create(ORDERS, topic_id)
    log.append_as_leader(batch("a", "b"), 0)
    broker.logs.shutdown()
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    again = Broker(tmp_path)
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    reopened = again.logs.get(ORDERS)
    assert reopened is not None
    assert (reopened.log_end_offset, reopened.recovery_point) == (2, 2)
    assert reopened.topic_id == topic_id
    assert again.logs.online_dirs[0].was_clean


def test_unclean_stop_recovers_from_the_recovery_point(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    log = broker.logs.get_or_create(ORDERS)
    log.append_as_leader(batch("a"), 0)
    log.roll()
    broker.maintenance.flush_dirty()
    broker.maintenance.checkpoint_recovery_points()
    log.append_as_leader(batch("b"), 0)
    path = log.segments.active.log.path
    path.write_bytes(path.read_bytes() + b"torn")
    broker.logs.online_dirs[0].unlock()
    again = Broker(tmp_path)
    reopened = again.logs.get(ORDERS)
    assert reopened is not None
    assert values_of(reopened) == ["a", "b"]
    assert read_offsets(tmp_path / "recovery-point-offset-checkpoint") == {ORDERS: 1}


def test_golden_directory_of_kafka_opens_as_it_was_left(tmp_path: Path) -> None:
    directory = golden_copy(GOLDEN / "magic2", tmp_path / "data")
    broker = Broker(directory)
    points = read_offsets(directory / "recovery-point-offset-checkpoint")
    assert len(broker.logs.logs) > 15
    for partition, log in broker.logs.logs.items():
        assert log.log_end_offset == points[partition]
    trimmed = broker.logs.logs[TopicPartition("trimmed", 0)]
    assert trimmed.log_start_offset == 321
    properties = broker.logs.online_dirs[0].meta_properties()
    assert properties is not None
    assert properties.broker_id == 0
    broker.logs.shutdown()
    expected = {p: o for p, o in points.items() if p in broker.logs.logs}
    assert read_offsets(directory / "recovery-point-offset-checkpoint") == expected
    starts = read_offsets(directory / "log-start-offset-checkpoint")
    assert starts == {TopicPartition("trimmed", 0): 321}


def test_two_brokers_cannot_share_a_directory(tmp_path: Path) -> None:
    """Locks of fcntl are per process, so the other broker is another process."""
    broker = Broker(tmp_path)
    child = os.fork()
    if not child:
        try:
            Broker(tmp_path)
        except BlockingIOError as error:
            os._exit(7 if ".lock" in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    broker.logs.shutdown()


def test_new_logs_go_where_the_fewest_are(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "a", tmp_path / "b")
    for number in range(6):
        broker.logs.get_or_create(TopicPartition("t", number))
    counts = [len(list((tmp_path / name).glob("t-*"))) for name in "ab"]
    assert counts == [3, 3]


def test_topic_id_of_another_topic_is_refused(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    broker.logs.get_or_create(ORDERS, Uuid.random())
    with pytest.raises(ApiError) as refused:
        broker.logs.get_or_create(ORDERS, Uuid.random())
    assert refused.value.code is ErrorCode.INCONSISTENT_TOPIC_ID


def test_meta_properties_are_read_back(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    (log_dir,) = broker.logs.online_dirs
    assert log_dir.meta_properties() is None
    log_dir.write_meta_properties(MetaProperties(5, "cluster"))
    assert log_dir.meta_properties() == MetaProperties(5, "cluster")


class TestFailingDirectory:
    def test_failing_directory_goes_offline_alone(self, tmp_path: Path) -> None:
        broker = Broker(tmp_path / "a", tmp_path / "b")
        bad = broker.logs.get_or_create(ORDERS, log_dir=tmp_path / "a")
        neighbour = broker.logs.get_or_create(TopicPartition("orders", 1), log_dir=tmp_path / "a")
        good = broker.logs.get_or_create(OTHER, log_dir=tmp_path / "b")
        bad.segments.active.log._fs = BreakingDisk(fails_at=1, error=errno.EIO)
        with pytest.raises(ApiError) as failed:
            bad.append_as_leader(batch("x"), 0)
        assert failed.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert broker.offline == [tmp_path / "a"]
        assert broker.logs.offline_dirs == [tmp_path / "a"]
        assert broker.logs.get(ORDERS) is None
        with pytest.raises(ApiError, match="offline"):
            neighbour.append_as_leader(batch("x"), 0)
        assert good.append_as_leader(batch("x"), 0).first_offset == 0
        broker.logs.shutdown()
        assert not (tmp_path / "a" / ".kafka_cleanshutdown").exists()
        assert (tmp_path / "b" / ".kafka_cleanshutdown").exists()

    def test_known_partition_is_not_made_again_elsewhere(self, tmp_path: Path) -> None:
        broker = Broker(tmp_path / "a", tmp_path / "b")
        log = broker.logs.get_or_create(ORDERS, log_dir=tmp_path / "a")
        log.segments.active.log._fs = BreakingDisk(fails_at=1)
        with pytest.raises(ApiError):
            log.append_as_leader(batch("x"), 0)
        for attempt in (broker.logs.get_or_create, broker.logs.delete):
            with pytest.raises(ApiError) as refused:
                attempt(ORDERS)
            assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        created = broker.logs.get_or_create(OTHER, is_new=True)
        assert created.log_dir == tmp_path / "b"

    def test_directory_that_cannot_be_opened_goes_offline(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("not a directory")
        broker = Broker(tmp_path / "a", tmp_path / "b")
        assert broker.offline == [tmp_path / "a"]

    def test_no_working_directory_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("not a directory")
        with pytest.raises(OSError, match="none of the log directories works"):
            Broker(tmp_path / "a")

    def test_unknown_directory_is_refused(self, tmp_path: Path) -> None:
        broker = Broker(tmp_path / "a")
        with pytest.raises(ApiError) as refused:
            broker.logs.get_or_create(ORDERS, log_dir=tmp_path / "z")
        assert refused.value.code is ErrorCode.LOG_DIR_NOT_FOUND

    def test_log_in_two_directories_is_an_error(self, tmp_path: Path) -> None:
        for name in "ab":
            open_log_in(tmp_path / name)
        with pytest.raises(ApiError, match=r"both in .*/a/orders-0 and .*/b/orders-0"):
            Broker(tmp_path / "a", tmp_path / "b")


def open_log_in(path: Path) -> None:
    path.mkdir()
    open_log(path / "orders-0").close()


class TestDeletion:
    def test_deleted_log_is_renamed_now_and_removed_after_the_delay(self, tmp_path: Path) -> None:
        broker = Broker(tmp_path, config=LogConfig(file_delete_delay_ms=60_000))
        broker.logs.get_or_create(ORDERS)
        broker.logs.get_or_create(OTHER)
        broker.maintenance.checkpoint_recovery_points()
        assert broker.logs.delete(ORDERS) is not None
        assert broker.logs.get(ORDERS) is None
        (marked,) = tmp_path.glob("orders-0.*-delete")
        assert read_offsets(tmp_path / "recovery-point-offset-checkpoint") == {OTHER: 0}
        broker.maintenance.delete_expired()
        assert marked.exists()
        broker.clock.advance(60_000)
        broker.maintenance.delete_expired()
        assert not marked.exists()
        assert broker.logs.delete(ORDERS) is None

    def test_deletion_is_finished_after_a_restart(self, tmp_path: Path) -> None:
        broker = Broker(tmp_path)
        broker.logs.get_or_create(ORDERS).append_as_leader(batch("x"), 0)
        broker.logs.delete(ORDERS)
        broker.logs.shutdown()
        again = Broker(tmp_path)
        assert again.logs.get(ORDERS) is None
        again.clock.advance(60_000)
        again.maintenance.delete_expired()
        assert not list(tmp_path.glob("orders-*"))

    def test_many_logs_are_deleted_at_once(self, tmp_path: Path) -> None:
        broker = Broker(tmp_path)
        names = [TopicPartition("orders", index) for index in range(5)]
        for name in (*names, OTHER):
            broker.logs.get_or_create(name)
        missing = TopicPartition("missing", 0)
        assert broker.logs.delete_all([*names, missing]) == {}
        assert len(list(tmp_path.glob("orders-*-delete"))) == 5
        assert read_offsets(tmp_path / "recovery-point-offset-checkpoint") == {OTHER: 0}

    def test_regression_two_who_checkpoint_at_once_do_not_take_the_directory_offline(
        self, tmp_path: Path
    ) -> None:
        broker = Broker(tmp_path)
        broker.logs.get_or_create(ORDERS)

        def again_and_again(_: int) -> None:
            for _ in range(100):
                broker.maintenance.checkpoint_log_start_offsets()

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(again_and_again, range(4)))
        assert broker.offline == []

    def test_stray_log_is_set_aside_and_never_removed(self, tmp_path: Path) -> None:
        broker = Broker(tmp_path)
        broker.logs.get_or_create(ORDERS)
        broker.logs.delete(ORDERS, is_stray=True)
        broker.clock.advance(10**9)
        broker.maintenance.delete_expired()
        broker.logs.shutdown()
        assert Broker(tmp_path).logs.get(ORDERS) is None
        assert len(list(tmp_path.glob("orders-0.*-stray"))) == 1

    def test_recreated_log_starts_empty(self, tmp_path: Path) -> None:
        broker = Broker(tmp_path)
        broker.logs.get_or_create(ORDERS).append_as_leader(batch("x"), 0)
        broker.logs.delete(ORDERS)
        assert broker.logs.get_or_create(ORDERS, is_new=True).log_end_offset == 0


class TestMoving:
    def test_future_log_takes_over_in_its_directory(self, tmp_path: Path) -> None:
        broker = Broker(tmp_path / "a", tmp_path / "b")
        current = broker.logs.get_or_create(ORDERS, log_dir=tmp_path / "a")
        current.append_as_leader(batch("x"), 0)
        current.update_high_watermark(1)
        future = broker.logs.get_or_create(ORDERS, is_future=True, log_dir=tmp_path / "b")
        was_future = future.is_future
        data = current.read(0, 1 << 20, FetchIsolation.LOG_END).records
        assert data is not None
        future.append_as_follower(data.read())
        broker.logs.replace_current_with_future(ORDERS)
        assert broker.logs.get(ORDERS) is future
        assert future.directory == tmp_path / "b" / "orders-0"
        assert future.high_watermark == 1
        assert (was_future, future.is_future) == (True, False)
        assert broker.logs.get(ORDERS, is_future=True) is None
        assert list((tmp_path / "a").glob("orders-0.*-delete"))
        broker.clock.advance(60_000)
        broker.maintenance.delete_expired()
        assert not list((tmp_path / "a").glob("orders-*"))

    def test_future_log_needs_another_directory(self, tmp_path: Path) -> None:
        broker = Broker(tmp_path / "a", tmp_path / "b")
        broker.logs.get_or_create(ORDERS, log_dir=tmp_path / "a")
        for wanted in (None, tmp_path / "a"):
            with pytest.raises(ValueError, match="another log directory"):
                broker.logs.get_or_create(ORDERS, is_future=True, log_dir=wanted)

    def test_unfinished_move_continues_after_a_restart(self, tmp_path: Path) -> None:
        broker = Broker(tmp_path / "a", tmp_path / "b")
        broker.logs.get_or_create(ORDERS, log_dir=tmp_path / "a")
        broker.logs.get_or_create(ORDERS, is_future=True, log_dir=tmp_path / "b")
        broker.logs.shutdown()
        again = Broker(tmp_path / "a", tmp_path / "b")
        assert again.logs.get(ORDERS) is not None
        assert again.logs.get(ORDERS, is_future=True) is not None


class TestMaintenance:
    def test_retention_runs_over_all_logs(self, tmp_path: Path) -> None:
        broker = Broker(tmp_path, config=LogConfig(retention_ms=1_000))
        log = broker.logs.get_or_create(ORDERS)
        log.append_as_leader(batch("x"), 0)
        log.update_high_watermark(1)
        broker.clock.advance(2_000)
        assert broker.maintenance.delete_expired() == 1
        broker.maintenance.checkpoint_log_start_offsets()
        assert read_offsets(tmp_path / "log-start-offset-checkpoint") == {}

    def test_compacted_logs_are_cleaned_until_none_is_dirty(self, tmp_path: Path) -> None:
        broker = Broker(tmp_path, config=LogConfig(cleanup_policy=frozenset({"compact"})))
        for partition in (ORDERS, OTHER):
            log = broker.logs.get_or_create(partition)
            for number in range(5):
                log.append_as_leader(keyed("same", f"v{number}"), 0)
            log.roll()
            log.update_high_watermark(5)
        assert broker.maintenance.clean() == 2
        assert broker.maintenance.clean() == 0
        assert values_of(broker.logs.logs[OTHER]) == ["v4"]
        checkpoint = tmp_path / "cleaner-offset-checkpoint"
        assert read_offsets(checkpoint) == {ORDERS: 5, OTHER: 5}
        with broker.logs.truncating(ORDERS):
            truncate_to(broker.logs.logs[ORDERS], 2)
        assert read_offsets(checkpoint)[ORDERS] == 0
        broker.logs.delete(OTHER)
        assert OTHER not in read_offsets(checkpoint)

    def test_truncation_writes_the_recovery_points(self, tmp_path: Path) -> None:
        broker = Broker(tmp_path)
        log = broker.logs.get_or_create(ORDERS)
        for _ in range(4):
            log.append_as_leader(batch("x"), 0)
        log.flush()
        with broker.logs.truncating(ORDERS):
            truncate_to(log, 2)
        points = tmp_path / "recovery-point-offset-checkpoint"
        assert read_offsets(points) == {ORDERS: 2}
        with broker.logs.truncating(ORDERS):
            truncate_fully_and_start_at(log, 50)
        assert read_offsets(points) == {ORDERS: 2}
        assert log.log_start_offset == 50

    def test_partition_is_not_cleaned_while_it_is_truncated(self, tmp_path: Path) -> None:
        broker = Broker(tmp_path, config=LogConfig(cleanup_policy=frozenset({"compact"})))
        log = broker.logs.get_or_create(ORDERS)
        for number in range(5):
            log.append_as_leader(keyed("same", f"v{number}"), 0)
        log.roll()
        log.update_high_watermark(5)
        with broker.logs.truncating(ORDERS):
            assert broker.maintenance.clean() == 0
        assert broker.maintenance.clean() == 1

    def test_changed_configuration_reaches_the_logs(self, tmp_path: Path) -> None:
        broker = Broker(tmp_path)
        log = broker.logs.get_or_create(ORDERS)
        log.append_as_leader(batch("x"), 0)
        broker.config = LogConfig(segment_bytes=100)
        broker.logs.update_config("orders")
        log.append_as_leader(batch("x"), 0)
        assert log.segments.base_offsets == (0, 1)

    def test_damaged_checkpoints_cost_a_recovery_and_no_data(self, tmp_path: Path) -> None:
        broker = Broker(tmp_path)
        broker.logs.get_or_create(ORDERS).append_as_leader(batch("x"), 0)
        broker.logs.shutdown()
        for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
            (tmp_path / name).write_text("nonsense\n\n\n")
        log = Broker(tmp_path).logs.get(ORDERS)
        assert log is not None
        assert values_of(log) == ["x"]

    def test_other_directories_are_left_alone(self, tmp_path: Path) -> None:
        (tmp_path / "lost+found").mkdir()
        (tmp_path / "notes").mkdir()
        broker = Broker(tmp_path)
        assert not broker.logs.logs
        shutil.rmtree(tmp_path / "notes")
