"""All logs of a broker, in one or more log directories (Kafka's LogManager).

The life cycle of logs: loading at start, creation, moves between directories, deletion, closing.
Periodic work on them is in `maintenance`.

A directory whose disk fails goes offline: its logs are removed here, those of other directories
stay online. `on_dir_offline` is called from the thread that met the failure; the broker shuts down
if no directory is left.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from heapq import heapify, heapreplace
from pathlib import Path
from typing import NamedTuple, TypeVar

from broker.errors import ApiError, CorruptRecord, ErrorCode
from broker.log.checkpoints import CorruptCheckpoint
from broker.log.config import CleanerConfig, LogConfig
from broker.log.descriptors import DESCRIPTORS, is_out_of_descriptors
from broker.log.dir_checkpoints import DirCheckpoints
from broker.log.environment import LogEnvironment
from broker.log.layout import DELETE_DIR, FUTURE_DIR, STRAY_DIR, marked_dir_name
from broker.log.log_cleaner import LogCleaner
from broker.log.log_dir import LogDir
from broker.log.partition_log import PartitionLog
from broker.log.recovery import FROM_SCRATCH, load_log
from broker.metrics.histogram import Histogram
from broker.model import TopicPartition, Uuid

logger = logging.getLogger(__name__)

ConfigOf = Callable[[str], LogConfig]

_CREATING_THREADS = 4


_LOADING_THREADS = 4
_FEW_LOGS = 50
"""Up to this number logs are loaded one after the other."""

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


def _map_in_threads(
    function: Callable[[ItemT], ResultT], items: Sequence[ItemT]
) -> Iterator[ResultT]:
    """As `map`, in threads if there are many items: loading a log mostly waits for the disk."""
    if len(items) <= _FEW_LOGS:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(_LOADING_THREADS, "log-loader") as threads:
        yield from threads.map(function, items)


def _ignore(log_dir: Path) -> None:
    """The default `on_dir_offline`."""


class NewLog(NamedTuple):
    """A log to create."""

    partition: TopicPartition
    topic_id: Uuid | None
    leader_epoch: int
    """The epoch from which it is led here; -1 on a follower."""


class LogManager:
    """Creates, finds, moves and deletes logs.

    Field `cleaner`: compacts logs. Invariant: paused for a partition whose log is deleted or moved.
    Field `checkpoints`: writes the checkpoints of the directories.
    Field `_logs`, `_future_logs`: by partition. Invariant: all of them are in online directories.
    Field `_to_delete`: logs in `-delete` directories, and when each was put there.
    Field `_config_of`: gives a topic's configuration when a log is loaded or created.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        config_of: ConfigOf,
        environment: LogEnvironment | None = None,
        cleaner: CleanerConfig | None = None,
        on_dir_offline: Callable[[Path], None] = _ignore,
    ) -> None:
        base = environment or LogEnvironment()
        self._env = LogEnvironment(base.fs, base.clock, base.producer_state, self.dir_failed)
        self._config_of = config_of
        self._on_dir_offline = on_dir_offline
        self._dirs = {path.absolute(): LogDir(path.absolute(), self._env) for path in paths}
        self.cleaner = LogCleaner(cleaner or CleanerConfig(), self._env.fs)
        self.checkpoints = DirCheckpoints(self._dirs, self._logs_in, self.cleaner, self.dir_failed)
        self._lock = threading.RLock()  # creation and deletion
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._future_logs: dict[TopicPartition, PartitionLog] = {}
        self._to_delete: list[tuple[int, PartitionLog]] = []

    @property
    def flush_times(self) -> Histogram:
        """How long flushes of logs took."""
        return self._env.flush_times

    # --- directories ---------------------------------------------------------------------------

    @property
    def online_dirs(self) -> list[LogDir]:
        """The directories that are online."""
        return [log_dir for log_dir in self._dirs.values() if log_dir.is_online]

    @property
    def offline_dirs(self) -> list[Path]:
        """The directories that failed."""
        return [path for path, log_dir in self._dirs.items() if not log_dir.is_online]

    def dir_failed(self, path: Path, error: OSError) -> None:
        """Take a directory offline, with all logs in it; any thread may call this, repeatedly.

        A full disk (ENOSPC) counts as failed, as in Kafka. Too many open files do not: the
        operation is repeated later.
        """
        if is_out_of_descriptors(error):
            DESCRIPTORS.warn(error)
            return
        log_dir = self._dirs.get(path)
        if log_dir is None or not log_dir.is_online:
            return
        log_dir.is_online = False
        logger.error("log directory offline dir=%s: %s", path, error)
        for logs in (self._logs, self._future_logs):
            for partition, log in list(logs.items()):
                if log.log_dir == path:
                    logs.pop(partition, None)
                    log.go_offline()
        log_dir.unlock()
        self._on_dir_offline(path)

    # --- start and stop ------------------------------------------------------------------------

    def startup(self) -> None:
        """Open every directory and load every log; a directory that fails goes offline.

        BlockingIOError if another broker owns one; OSError if not a single directory works.
        """
        DESCRIPTORS.reclaim = self.release_files
        DESCRIPTORS.fill_reserve()
        for path, log_dir in self._dirs.items():
            try:
                log_dir.open()
                self._load(log_dir)
            except BlockingIOError:
                raise
            except OSError as error:
                if is_out_of_descriptors(error):  # without all logs the broker must not start
                    raise
                self.dir_failed(path, error)
        if not self.online_dirs:
            names = ", ".join(map(str, self._dirs))
            raise OSError(f"none of the log directories works: {names}")

    def _load(self, log_dir: LogDir) -> None:
        directories = log_dir.partition_directories()
        how = "after a clean shutdown" if log_dir.was_clean else "recovering"
        logger.info("loading %s logs %s dir=%s", len(directories), how, log_dir.path)
        wanted = [item for item in directories if not item[0].name.endswith(STRAY_DIR)]
        configs = {name.topic: self._config_of(name.topic) for _, name in wanted}

        def load(item: tuple[Path, TopicPartition]) -> PartitionLog | None:
            path, partition = item
            config = configs[partition.topic]
            try:
                return load_log(path, partition, config, self._env, log_dir.load_from(partition))
            except (CorruptCheckpoint, CorruptRecord) as error:
                # Costs this partition, not the directory.
                logger.error("partition offline partition=%s: %s", partition, error)
                return None

        for log in _map_in_threads(load, wanted):
            if log is None:
                continue
            if log.directory.name.endswith(DELETE_DIR):
                self._to_delete.append((self._env.clock.now_ms(), log))
            else:
                self._add(log)

    def _add(self, log: PartitionLog) -> None:
        logs = self._future_logs if log.is_future else self._logs
        other = logs.setdefault(log.partition, log)
        if other is not log:
            raise ApiError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{log.partition} is both in {other.directory} and {log.directory}: a directory "
                "failed while the replica was moved; delete the one that is not wanted",
            )

    def shutdown(self, broker_epoch: int = -1) -> None:
        """Flush and close all logs, and mark the directories clean where that worked."""
        for log_dir in self.online_dirs:
            logs = self._logs_in(log_dir.path)
            try:
                for log in logs:
                    log.flush(include_active=True)
                    log.close()
                log_dir.checkpoint_recovery_points(logs)
                log_dir.checkpoint_log_start_offsets(logs)
                log_dir.mark_clean(broker_epoch)
            except (ApiError, OSError) as error:
                logger.error("unclean shutdown dir=%s: %s", log_dir.path, error)
            log_dir.unlock()
        DESCRIPTORS.empty_reserve()

    # --- logs ----------------------------------------------------------------------------------

    @property
    def logs(self) -> Mapping[TopicPartition, PartitionLog]:
        """Every current log; future logs are not included."""
        return self._logs

    @property
    def future_logs(self) -> Mapping[TopicPartition, PartitionLog]:
        """The logs that are being moved to another directory."""
        return self._future_logs

    def get(self, partition: TopicPartition, *, is_future: bool = False) -> PartitionLog | None:
        """The partition's log, if it is here and its directory online."""
        return (self._future_logs if is_future else self._logs).get(partition)

    def all_logs(self) -> list[PartitionLog]:
        """Every log, current and future."""
        return [*self._logs.values(), *self._future_logs.values()]

    def _logs_in(self, path: Path) -> list[PartitionLog]:
        return [log for log in self.all_logs() if log.log_dir == path]

    def get_or_create(
        self,
        partition: TopicPartition,
        topic_id: Uuid | None = None,
        *,
        is_new: bool = False,
        is_future: bool = False,
        log_dir: Path | None = None,
    ) -> PartitionLog:
        """The partition's log; created in `log_dir`, or where the fewest logs are, if missing.

        Unless the partition `is_new`, KAFKA_STORAGE_ERROR while a directory is offline: the log
        may be there. A future log needs a `log_dir` that is not the current one's.
        """
        with self._lock:
            log = self.get(partition, is_future=is_future)
            if log is None:
                if self.offline_dirs and not is_new:
                    raise _storage_error(f"{partition} may be in {self.offline_dirs}, offline")
                log = self._create(partition, is_future, log_dir)
            if topic_id is not None:
                log.assign_topic_id(topic_id)
            return log

    def create_all(self, logs: Iterable[NewLog], *, is_new: bool) -> None:
        """Create the logs of many partitions, with one flush for all.

        Threads overlap the waits for the file system. If a directory fails, its logs are created
        in the others, one by one. KAFKA_STORAGE_ERROR, after all others were created, if one cannot
        be created anywhere.
        """
        if self.offline_dirs and not is_new:
            raise _storage_error(f"the logs may be in {self.offline_dirs}, offline")

        def make(place: tuple[TopicPartition, LogDir]) -> None:
            partition, log_dir = place
            _, topic_id, leader_epoch = wanted[partition]
            with self._env.fs.leaving_out_syncs(), suppress(OSError, ApiError):
                log = self._make(partition, log_dir, str(partition))
                if topic_id is not None:
                    log.assign_topic_id(topic_id)
                log.assign_epoch_start_offset(leader_epoch, log.log_end_offset)
                log.flush_leader_epochs()  # here it costs no sync of its own

        with self._lock:
            wanted = {log.partition: log for log in logs if log.partition not in self._logs}
            places = self._spread(wanted)
            with ThreadPoolExecutor(_CREATING_THREADS) as threads:
                list(threads.map(make, places))
            self._sync({log_dir for _, log_dir in places})
            failed: ApiError | None = None
            for partition, topic_id, leader_epoch in wanted.values():
                try:
                    log = self.get_or_create(partition, topic_id, is_new=is_new)
                    log.assign_epoch_start_offset(leader_epoch, log.log_end_offset)
                except ApiError as error:  # the others must still get their logs
                    failed = error
            if failed is not None:
                raise failed

    def _spread(self, partitions: Iterable[TopicPartition]) -> list[tuple[TopicPartition, LogDir]]:
        """Assign each to the directory that has the fewest logs by then."""
        counts = [(len(self._logs_in(d.path)), n, d) for n, d in enumerate(self.online_dirs)]
        heapify(counts)
        places = []
        for partition in partitions:
            if not counts:
                raise _storage_error(f"{partition}: no log directory is available")
            count, number, log_dir = counts[0]
            heapreplace(counts, (count + 1, number, log_dir))
            places.append((partition, log_dir))
        return places

    def _sync(self, dirs: Iterable[LogDir]) -> None:
        for log_dir in dirs:
            try:
                self._env.fs.sync_file_system(log_dir.path)
            except OSError as error:
                self.dir_failed(log_dir.path, error)

    def _create(
        self, partition: TopicPartition, is_future: bool, wanted: Path | None
    ) -> PartitionLog:
        current = self._logs.get(partition)
        if is_future and (wanted is None or (current and current.log_dir == wanted.absolute())):
            raise ValueError(f"{partition}: a future log needs another log directory")
        name = marked_dir_name(partition, FUTURE_DIR) if is_future else str(partition)
        for log_dir in self._candidates(wanted):
            with suppress(OSError):
                return self._make(partition, log_dir, name)
        raise _storage_error(f"{partition}: no log directory is available")

    def _make(self, partition: TopicPartition, log_dir: LogDir, name: str) -> PartitionLog:
        """Create a log in a directory; after an OSError the directory is offline.

        KAFKA_STORAGE_ERROR if the partition's own files are corrupt.
        """
        path = log_dir.path / name
        try:
            self._env.fs.make_directory(path)
            config = self._config_of(partition.topic)
            log = load_log(path, partition, config, self._env, FROM_SCRATCH)
        except CorruptCheckpoint as error:
            raise _storage_error(str(error)) from error
        except OSError as error:
            self.dir_failed(log_dir.path, error)
            raise
        self._add(log)
        logger.info("created log partition=%s dir=%s", partition, log_dir.path)
        return log

    def _candidates(self, wanted: Path | None) -> list[LogDir]:
        if wanted is None and len(self._dirs) == 1:
            return self.online_dirs
        if wanted is None:
            return sorted(self.online_dirs, key=lambda log_dir: len(self._logs_in(log_dir.path)))
        log_dir = self._dirs.get(wanted.absolute())
        if log_dir is None:
            raise ApiError(ErrorCode.LOG_DIR_NOT_FOUND, f"{wanted} is not a log directory")
        return [log_dir] if log_dir.is_online else []

    def update_config(self, topic: str) -> None:
        """Apply the topic's changed configuration."""
        config = self._config_of(topic)
        for log in self.all_logs():
            if log.partition.topic == topic:
                log.update_config(config)

    def delete(
        self, partition: TopicPartition, *, is_future: bool = False, is_stray: bool = False
    ) -> PartitionLog | None:
        """Delete a log: its directory is renamed to `-delete` now and removed after the delay.

        A stray one (not assigned to this broker) is only renamed. None if there is no such log;
        KAFKA_STORAGE_ERROR if it may be in an offline directory.
        """
        log = self._take_away(partition, is_future=is_future, is_stray=is_stray)
        if log is not None:
            self.checkpoints.remove([log], are_cleaned=not is_future)
        return log

    def delete_all(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, ApiError]:
        """Delete many logs and write the checkpoints once; returns the errors."""
        failed: dict[TopicPartition, ApiError] = {}
        gone: list[PartitionLog] = []
        for partition in partitions:
            try:
                log = self._take_away(partition)
            except ApiError as error:
                failed[partition] = error
            else:
                gone += [log] if log else []
        self.checkpoints.remove(gone)
        return failed

    def _take_away(
        self, partition: TopicPartition, *, is_future: bool = False, is_stray: bool = False
    ) -> PartitionLog | None:
        with self._lock, self.cleaner.paused(partition):
            log = (self._future_logs if is_future else self._logs).pop(partition, None)
            if log is None:
                if self.offline_dirs:
                    raise _storage_error(f"{partition} may be in {self.offline_dirs}, offline")
                return None
            log.rename_directory(marked_dir_name(partition, STRAY_DIR if is_stray else DELETE_DIR))
            if not is_stray:
                self._to_delete.append((self._env.clock.now_ms(), log))
            return log

    def replace_current_with_future(self, partition: TopicPartition) -> None:
        """Make the future log, which has caught up, the current one, and delete the old one."""
        with self._lock, self.cleaner.paused(partition):
            current, future = self._logs.get(partition), self._future_logs.get(partition)
            if current is None or future is None:
                raise _storage_error(f"{partition}: current or future log is offline")
            future.rename_directory(str(partition))
            future.update_high_watermark(current.high_watermark)
            del self._future_logs[partition]
            self._logs[partition] = future
            with future.storing("write the cleaner checkpoint"):
                self.cleaner.move_checkpoint(partition, current.log_dir, future.log_dir)
            current.rename_directory(marked_dir_name(partition, DELETE_DIR))
            self._to_delete.append((self._env.clock.now_ms(), current))
            self.checkpoints.remove([current], are_cleaned=False)

    @contextmanager
    def truncating(self, partition: TopicPartition) -> Iterator[None]:
        """Pause cleaning of a partition while its logs are truncated; then lower their checkpoints.

        Without this, the cleaner could put back a segment that was truncated meanwhile, and the
        checkpoints would still cover the truncated offsets when new records have taken them: after
        a crash those would not be checked, and the cleaner would take them for clean.

        Waits for a running cleaning of the partition to abort. The caller holds no lock of a log,
        because the cleaner may need it for that.
        """
        found = (self._logs.get(partition), self._future_logs.get(partition))
        logs = [log for log in found if log is not None]
        points = [log.recovery_point for log in logs]
        with self.cleaner.paused(partition):
            yield
            for log in logs:
                self.checkpoints.lower_cleaner_offset(log)
        moved_back = {
            log.log_dir
            for log, point in zip(logs, points, strict=True)
            if log.recovery_point < point
        }
        self.checkpoints.write_recovery_points(moved_back)

    def take_due_deletes(self) -> list[PartitionLog]:
        """The logs in `-delete` directories whose delay has passed; the caller deletes them.

        Those in a directory that has failed since are dropped: the next start finds them.
        """
        now_ms = self._env.clock.now_ms()
        waiting, self._to_delete = self._to_delete, []
        due = []
        for since_ms, log in waiting:
            if now_ms - since_ms < log.config.file_delete_delay_ms:
                self._to_delete.append((since_ms, log))
            elif self._dirs[log.log_dir].is_online:
                due.append(log)
        return due

    def release_files(self) -> None:
        """Release the descriptors of all logs that are not in use at this moment."""
        for log in self.all_logs():
            log.release_files()


def _storage_error(message: str) -> ApiError:
    return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, message)
