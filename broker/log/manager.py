"""All logs of a broker, in one or more log directories (Kafka's LogManager).

Background work is plain methods (`flush_dirty`, `delete_expired`, `clean`, the checkpoints): the
server calls them from its threads, tests call them after turning the clock.

A directory whose disk fails goes offline alone: its logs are gone from here, the others go on. The
broker is told through `on_dir_offline`, from whichever thread met the failure, and stops itself if
no directory is left.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from heapq import heapify, heapreplace
from pathlib import Path

from broker.errors import ApiError, ErrorCode
from broker.log.config import CleanerConfig, LogConfig
from broker.log.environment import LogEnvironment
from broker.log.layout import DELETE_DIR, FUTURE_DIR, STRAY_DIR, marked_dir_name
from broker.log.log_cleaner import LogCleaner
from broker.log.log_dir import LogDir
from broker.log.partition_log import PartitionLog
from broker.log.recovery import FROM_SCRATCH, load_log
from broker.log.retention import delete_old_segments
from broker.model import TopicPartition, Uuid

logger = logging.getLogger(__name__)

ConfigOf = Callable[[str], LogConfig]

_CREATING_THREADS = 4


def _ignore(log_dir: Path) -> None:
    """Nobody wants to hear of offline directories."""


class LogManager:
    """Creates, finds, maintains and deletes logs.

    Field `_logs`, `_future_logs`: by partition. Invariant: all of them are in online directories.
    Field `_to_delete`: logs in `-delete` directories, and since when.
    Field `config_of`: the topic's configuration, asked when a log is loaded or created.
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
        self._cleaner_config = cleaner or CleanerConfig()
        self.cleaner = LogCleaner(self._cleaner_config, self._env.fs)
        self._lock = threading.RLock()  # creation and deletion
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._future_logs: dict[TopicPartition, PartitionLog] = {}
        self._to_delete: list[tuple[int, PartitionLog]] = []

    # --- directories ---------------------------------------------------------------------------

    @property
    def online_dirs(self) -> list[LogDir]:
        """The directories that work."""
        return [log_dir for log_dir in self._dirs.values() if log_dir.is_online]

    @property
    def offline_dirs(self) -> list[Path]:
        """The directories that failed."""
        return [path for path, log_dir in self._dirs.items() if not log_dir.is_online]

    def dir_failed(self, path: Path, error: OSError) -> None:
        """Take a directory offline, with all logs in it; any thread, the first time counts."""
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
        for path, log_dir in self._dirs.items():
            try:
                log_dir.open()
                self._load(log_dir)
            except BlockingIOError:
                raise
            except OSError as error:
                self.dir_failed(path, error)
        if not self.online_dirs:
            names = ", ".join(map(str, self._dirs))
            raise OSError(f"none of the log directories works: {names}")

    def _load(self, log_dir: LogDir) -> None:
        directories = log_dir.partition_directories()
        how = "after a clean stop" if log_dir.was_clean else "recovering"
        logger.info("loading %s logs %s dir=%s", len(directories), how, log_dir.path)
        for path, partition in directories:
            if path.name.endswith(STRAY_DIR):
                continue
            config = self._config_of(partition.topic)
            log = load_log(path, partition, config, self._env, log_dir.load_from(partition))
            if path.name.endswith(DELETE_DIR):
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
                logger.error("unclean stop dir=%s: %s", log_dir.path, error)
            log_dir.unlock()

    # --- logs ----------------------------------------------------------------------------------

    @property
    def logs(self) -> Mapping[TopicPartition, PartitionLog]:
        """Every log, future ones apart."""
        return self._logs

    @property
    def future_logs(self) -> Mapping[TopicPartition, PartitionLog]:
        """The logs on their way to another directory."""
        return self._future_logs

    def get(self, partition: TopicPartition, *, is_future: bool = False) -> PartitionLog | None:
        """The partition's log, if it is here and its directory online."""
        return (self._future_logs if is_future else self._logs).get(partition)

    def _all_logs(self) -> list[PartitionLog]:
        return [*self._logs.values(), *self._future_logs.values()]

    def _logs_in(self, path: Path) -> list[PartitionLog]:
        return [log for log in self._all_logs() if log.log_dir == path]

    def get_or_create(
        self,
        partition: TopicPartition,
        topic_id: Uuid | None = None,
        *,
        is_new: bool = False,
        is_future: bool = False,
        log_dir: Path | None = None,
    ) -> PartitionLog:
        """The partition's log, made if there is none, in `log_dir` or where the fewest logs are.

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

    def create_all(
        self,
        partitions: Iterable[TopicPartition],
        topic_id: Uuid | None,
        leader_epoch: int,
        *,
        is_new: bool,
    ) -> None:
        """Make the logs of many partitions, led from `leader_epoch` on, with one flush for all.

        Threads overlap what the file system does; where a directory fails, what was to go there is
        made elsewhere, one by one. KAFKA_STORAGE_ERROR if there is no elsewhere.
        """
        if self.offline_dirs and not is_new:
            raise _storage_error(f"the logs may be in {self.offline_dirs}, offline")

        def make(place: tuple[TopicPartition, LogDir]) -> None:
            partition, log_dir = place
            with self._env.fs.leaving_out_syncs(), suppress(OSError):
                log = self._make(partition, log_dir, str(partition))
                if topic_id is not None:
                    log.assign_topic_id(topic_id)
                log.assign_epoch_start_offset(leader_epoch, log.log_end_offset)
                log.flush_leader_epochs()  # here it costs no sync of its own

        with self._lock:
            wanted = [partition for partition in partitions if partition not in self._logs]
            places = self._spread(wanted)
            with ThreadPoolExecutor(_CREATING_THREADS) as threads:
                list(threads.map(make, places))
            self._sync({log_dir for _, log_dir in places})
            for partition in wanted:
                log = self.get_or_create(partition, topic_id, is_new=is_new)
                log.assign_epoch_start_offset(leader_epoch, log.log_end_offset)

    def _spread(self, partitions: Iterable[TopicPartition]) -> list[tuple[TopicPartition, LogDir]]:
        """Where each goes: always to the directory that has the fewest by then."""
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
        """Make a log in a directory; OSError if it cannot be, and the directory is offline."""
        path = log_dir.path / name
        try:
            self._env.fs.make_directory(path)
            config = self._config_of(partition.topic)
            log = load_log(path, partition, config, self._env, FROM_SCRATCH)
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
        """The topic's configuration changed: ask for it again."""
        config = self._config_of(topic)
        for log in self._all_logs():
            if log.partition.topic == topic:
                log.update_config(config)

    def delete(
        self, partition: TopicPartition, *, is_future: bool = False, is_stray: bool = False
    ) -> PartitionLog | None:
        """Take a log away: its directory is renamed now and removed after the delay.

        A stray one (nobody assigned it here) is only renamed. None if there is no such log;
        KAFKA_STORAGE_ERROR if it may be in an offline directory.
        """
        log = self._take_away(partition, is_future=is_future, is_stray=is_stray)
        if log is not None:
            self._forget([log], are_cleaned=not is_future)
        return log

    def delete_all(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, ApiError]:
        """As `delete`, of many, with their checkpoints written once; why some could not be."""
        failed: dict[TopicPartition, ApiError] = {}
        gone: list[PartitionLog] = []
        for partition in partitions:
            try:
                log = self._take_away(partition)
            except ApiError as error:
                failed[partition] = error
            else:
                gone += [log] if log else []
        self._forget(gone)
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

    def _forget(self, gone: Iterable[PartitionLog], *, are_cleaned: bool = True) -> None:
        """Take logs out of the checkpoints of their directories."""
        by_dir: dict[Path, list[PartitionLog]] = {}
        for log in gone:
            by_dir.setdefault(log.log_dir, []).append(log)
        for path, listed in by_dir.items():
            log_dir, logs = self._dirs[path], self._logs_in(path)
            compacted = [log for log in listed if are_cleaned and log.config.is_compacted]
            try:
                if compacted:
                    forgotten = {log.partition: None for log in compacted}
                    self.cleaner.update_checkpoint(path, forgotten)
                log_dir.checkpoint_recovery_points(logs)
                log_dir.checkpoint_log_start_offsets(logs)
            except OSError as error:
                self.dir_failed(log_dir.path, error)

    def replace_current_with_future(self, partition: TopicPartition) -> None:
        """The future log has caught up: it becomes the current one, the old one is deleted."""
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
            self._forget([current], are_cleaned=False)

    def truncate_to(
        self, offsets: Mapping[TopicPartition, int], *, is_future: bool = False
    ) -> None:
        """Truncate several logs, and write the recovery points that moved back."""
        touched: set[Path] = set()
        for partition, offset in offsets.items():
            log = self.get(partition, is_future=is_future)
            if log is not None:
                with self.cleaner.paused(partition):
                    if log.truncate_to(offset):
                        touched.add(log.log_dir)
                        self._lower_cleaner_checkpoint(log)
        self._checkpoint_recovery_points(touched)

    def truncate_fully_and_start_at(
        self,
        partition: TopicPartition,
        offset: int,
        log_start_offset: int | None = None,
        *,
        is_future: bool = False,
    ) -> None:
        """Drop a whole log and go on at `offset`."""
        log = self.get(partition, is_future=is_future)
        if log is not None:
            with self.cleaner.paused(partition):
                log.truncate_fully_and_start_at(offset, log_start_offset)
                self._lower_cleaner_checkpoint(log)
            self._checkpoint_recovery_points([log.log_dir])

    def _lower_cleaner_checkpoint(self, log: PartitionLog) -> None:
        if log.config.is_compacted and not log.is_future:
            with log.storing("write the cleaner checkpoint"):
                self.cleaner.lower_checkpoint(log)

    # --- background work -----------------------------------------------------------------------

    def flush_dirty(self) -> None:
        """Flush the logs that rolled, or whose `flush.ms` is over."""
        for log in self._all_logs():
            self._guarded(log.maybe_flush)

    def flush_leader_epochs(self) -> None:
        """Write down the leader epochs that have begun since the last call."""
        for log in self._all_logs():
            self._guarded(log.flush_leader_epochs)

    def delete_expired(self) -> int:
        """Apply retention, remove `.deleted` files and `-delete` directories; segments deleted."""
        deleted = 0
        for log in self._all_logs():
            with self.cleaner.paused_if_idle(log.partition) as is_idle:
                try:
                    deleted += delete_old_segments(log) if is_idle else 0
                    log.delete_pending_files()
                except ApiError as error:
                    logger.error("retention failed partition=%s: %s", log.partition, error)
        self._delete_marked_logs()
        return deleted

    def _delete_marked_logs(self) -> None:
        now_ms = self._env.clock.now_ms()
        waiting, self._to_delete = self._to_delete, []
        for since_ms, log in waiting:
            if now_ms - since_ms < log.config.file_delete_delay_ms:
                self._to_delete.append((since_ms, log))
            elif self._dirs[log.log_dir].is_online:
                self._guarded(log.delete)

    def clean(self) -> int:
        """Compact what needs it, the filthiest first; how many logs were cleaned."""
        cleaned = 0
        while self._cleaner_config.enable and self.cleaner.clean_filthiest(self._logs.values()):
            cleaned += 1
        return cleaned

    def remove_expired_producers(self) -> None:
        """Forget producers that wrote nothing for long."""
        for log in self._all_logs():
            log.remove_expired_producers()

    def release_idle_files(self) -> None:
        """Give back descriptors of segments that nobody used since the last call."""
        for log in self._all_logs():
            log.release_idle_files()

    def checkpoint_recovery_points(self) -> None:
        """Write `recovery-point-offset-checkpoint` of every directory."""
        self._checkpoint_recovery_points(log_dir.path for log_dir in self.online_dirs)

    def _checkpoint_recovery_points(self, paths: Iterable[Path]) -> None:
        for path in paths:
            try:
                self._dirs[path].checkpoint_recovery_points(self._logs_in(path))
            except OSError as error:
                self.dir_failed(path, error)

    def checkpoint_log_start_offsets(self) -> None:
        """Write `log-start-offset-checkpoint` of every directory."""
        for log_dir in self.online_dirs:
            try:
                log_dir.checkpoint_log_start_offsets(self._logs_in(log_dir.path))
            except OSError as error:
                self.dir_failed(log_dir.path, error)

    @staticmethod
    def _guarded(work: Callable[[], None]) -> None:
        """One log's failure must not keep the others from their turn."""
        try:
            work()
        except ApiError as error:
            logger.error("background work failed: %s", error)


def _storage_error(message: str) -> ApiError:
    return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, message)
