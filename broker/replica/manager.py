"""All partitions of this broker: found by name, made leader or follower, taken away."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from broker.config.dynamic import DynamicConfig
from broker.errors import ApiError, ErrorCode
from broker.log.checkpoints import CorruptCheckpoint, read_offsets, write_offsets
from broker.log.config import LogConfig
from broker.log.files import DISK
from broker.log.manager import LogManager
from broker.model import LeaderAndIsr, TopicPartition, Uuid
from broker.replica.log_dir_moves import LogDirMoves
from broker.replica.partition import Partition

logger = logging.getLogger(__name__)

HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"


def _nobody_waits(*_: object) -> None:
    """Nobody wants to know."""


class ReplicaManager:
    """The partitions this broker has a replica of.

    Field `_high_watermarks`: what the checkpoints said at start, used up as partitions appear.
    """

    def __init__(self, broker_id: int, logs: LogManager, configs: DynamicConfig) -> None:
        self.broker_id = broker_id
        self.logs = logs
        self._configs = configs
        configs.on_topic_change(lambda topic, _: self._update_configs({topic}))
        configs.on_broker_change(lambda _old, _new: self._update_configs(None))
        self.on_leading: Callable[[TopicPartition, int], None] = _nobody_waits
        """Told of every partition that this broker begins to lead, and the leader epoch."""
        self.on_gone: Callable[[TopicPartition], None] = _nobody_waits
        """Told of every partition that has no replica here any more."""
        self.on_deleted: Callable[[list[TopicPartition]], None] = _nobody_waits
        """Told of partitions whose topic was deleted."""
        self._partitions: dict[TopicPartition, Partition] = {}
        self.log_dir_moves = LogDirMoves(logs, self._partitions)
        self._high_watermarks: dict[TopicPartition, int] = {}

    @property
    def partitions(self) -> Mapping[TopicPartition, Partition]:
        """Every partition with a replica here."""
        return self._partitions

    def load_high_watermarks(self) -> None:
        """Read the checkpoints; a damaged one costs only that followers are asked again."""
        for log_dir in self.logs.online_dirs:
            try:
                self._high_watermarks |= read_offsets(log_dir.path / HIGH_WATERMARK_CHECKPOINT)
            except CorruptCheckpoint as error:
                logger.warning("ignored high watermarks: %s", error)

    def find(self, topic: str, index: int) -> Partition:
        """The partition; UNKNOWN_TOPIC_OR_PARTITION if it has no replica here."""
        # A plain tuple is found as well, and costs less to make on the hot path.
        partition = self._partitions.get((topic, index))  # type: ignore[call-overload]
        if partition is None:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"{topic}-{index} has no replica on this broker",
            )
        return partition  # type: ignore[no-any-return]

    async def become(
        self, topic_id: Uuid, states: Mapping[TopicPartition, LeaderAndIsr], *, is_new: bool
    ) -> None:
        """Lead or follow those partitions of one topic that have a replica here.

        Missing logs are made in a thread, because that waits for the disk. KAFKA_STORAGE_ERROR if
        one cannot be.
        """
        states = {n: state for n, state in states.items() if self.broker_id in state.replicas}
        missing: dict[int, list[TopicPartition]] = {}
        for name, state in states.items():
            if self.logs.get(name) is None and not await self._make_where_wanted(name, topic_id):
                missing.setdefault(state.leader_epoch, []).append(name)
        for epoch, names in missing.items():
            await asyncio.to_thread(self.logs.create_all, names, topic_id, epoch, is_new=is_new)
        for name, state in states.items():
            partition = self._partition(name, topic_id)
            partition.become(state)
            self.log_dir_moves.resume(partition)
            if state.leader == self.broker_id:
                self.on_leading(name, state.leader_epoch)

    async def _make_where_wanted(self, name: TopicPartition, topic_id: Uuid) -> bool:
        """Make a log in the directory that AlterReplicaLogDirs chose for it; False if none is."""
        log_dir = self.log_dir_moves.preferred.pop(name, None)
        if log_dir is None:
            return False
        await asyncio.to_thread(
            lambda: self.logs.get_or_create(name, topic_id, is_new=True, log_dir=log_dir)
        )
        return True

    def _partition(self, name: TopicPartition, topic_id: Uuid) -> Partition:
        partition = self._partitions.get(name)
        if partition is None:
            log = self.logs.get_or_create(name, topic_id)
            log.update_high_watermark(self._high_watermarks.pop(name, 0))
            unknown = LeaderAndIsr(-1, -1, (), ())
            min_isr = self._configs.topic(name.topic).min_insync_replicas
            partition = Partition(name, topic_id, self.broker_id, log, unknown, min_isr)
            self._partitions[name] = partition
        return partition

    def _update_configs(self, topics: set[str] | None) -> None:
        """Let partitions obey what holds now for their topics (None: for all topics)."""
        for name, partition in self._partitions.items():
            if topics is None or name.topic in topics:
                config = self._configs.topic(name.topic)
                partition.min_insync_replicas = config.min_insync_replicas
                partition.log.update_config(LogConfig.of(config))

    async def stop(self, names: Iterable[TopicPartition], *, delete: bool) -> None:
        """Forget replicas; with `delete` their files go too, after the topic's delay."""
        names = list(names)
        for name in names:
            partition = self._partitions.pop(name, None)
            if partition is not None:
                partition.moves.wake()
                self.log_dir_moves.give_up(name)
                self.on_gone(name)
        if delete:
            self.on_deleted(names)
            await asyncio.to_thread(lambda: [self.logs.delete(name) for name in names])

    def checkpoint_high_watermarks(self) -> None:
        """Write the high watermarks of every log directory."""
        by_dir: dict[Path, dict[TopicPartition, int]] = {
            log_dir.path: {} for log_dir in self.logs.online_dirs
        }
        for name, partition in self._partitions.items():
            if partition.log.log_dir in by_dir:
                by_dir[partition.log.log_dir][name] = partition.log.high_watermark
        for path, offsets in by_dir.items():
            write_offsets(path / HIGH_WATERMARK_CHECKPOINT, offsets, DISK)
