"""All partitions of this broker: found by name, made leader or follower, taken away.

What the controller asks for is carried out one request after the other, each of them whole, and
only if it is no older than what was asked before: of a controller that was replaced, or of a former
life of this broker, nothing is taken any more. See `controller_requests` for the rules.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.config.broker import DynamicOnlySettings
from broker.config.dynamic import DynamicConfig
from broker.config.topic import TopicConfig
from broker.errors import ApiError, ErrorCode, NotLeaderOrFollower
from broker.log.checkpoints import CorruptCheckpoint, read_offsets, write_offsets
from broker.log.config import LogConfig
from broker.log.files import DISK
from broker.log.manager import LogManager
from broker.metadata_cache import MetadataCache
from broker.model import BrokerEpoch, LeaderAndIsr, TopicPartition, Uuid
from broker.net.broker_connection import Node
from broker.net.peers import Connect
from broker.replica.fetcher import FetcherSettings, FollowerOf
from broker.replica.fetcher_manager import FetcherManager
from broker.replica.follower_session import FetchLimits
from broker.replica.isr_changes import ControllerChannel, IsrChanges
from broker.replica.log_dir_moves import LogDirMoves
from broker.replica.partition import Partition, Surroundings
from broker.replica.throttle import Rate, Throttle

logger = logging.getLogger(__name__)

HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"


def _nobody_waits(*_: object) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True)
class ReplicaCluster:
    """What replicas need of the cluster around this broker."""

    metadata: MetadataCache
    broker_epoch: BrokerEpoch
    controller: ControllerChannel
    connect: Connect
    find_node: Callable[[int], Node | None]
    """Where a broker is reached by other brokers; None if it is not alive."""
    clock: Clock


class ReplicaManager:
    """The partitions this broker has a replica of.

    Field `_high_watermarks`: what the checkpoints said at start, used up as partitions appear.
    Field `offline`: partitions whose log directory failed. Invariant: none of them is online too.
    """

    def __init__(
        self, broker_id: int, logs: LogManager, configs: DynamicConfig, cluster: ReplicaCluster
    ) -> None:
        self.broker_id = broker_id
        self.logs = logs
        self.cluster = cluster
        self._configs = configs
        config = configs.broker
        self.on_leading: Callable[[TopicPartition, int], None] = _nobody_waits
        """Told of every partition that this broker begins to lead, and the leader epoch."""
        self.on_following: Callable[[TopicPartition, int], None] = _nobody_waits
        """Told of every partition that this broker follows from now on, and the leader epoch."""
        self.on_gone: Callable[[TopicPartition], None] = _nobody_waits
        """Told of every partition that has no replica here any more."""
        self.on_deleted: Callable[[list[TopicPartition]], None] = _nobody_waits
        """Told of partitions whose topic was deleted."""
        self._partitions: dict[TopicPartition, Partition] = {}
        self.offline: set[TopicPartition] = set()
        self.log_dir_moves = LogDirMoves(logs, self._partitions)
        self._high_watermarks: dict[TopicPartition, int] = {}
        self._isr_changes = IsrChanges(broker_id, cluster.broker_epoch, cluster.controller)
        self._surroundings = Surroundings(
            cluster.clock,
            config.replica_lag_time_max_ms,
            cluster.metadata.is_alive,
            self._isr_changes.propose,
        )
        windows = config.replication_quota_window_num, config.replication_quota_window_size_seconds
        self.leader_throttle = Throttle(Rate(*windows))
        self.follower_throttle = Throttle(Rate(*windows))
        self.fetchers = FetcherManager(
            FollowerOf(
                broker_id,
                cluster.broker_epoch,
                cluster.connect,
                _fetcher_settings(config),
                self.follower_throttle,
                lambda name: logs.get(name, is_future=True),
            ),
            cluster.find_node,
            config.num_replica_fetchers,
        )
        configs.on_topic_change(self._topic_changed)
        configs.on_broker_change(lambda _old, new: self._broker_changed(new))
        self._apply_rates(config)

    @property
    def partitions(self) -> Mapping[TopicPartition, Partition]:
        """Every partition with a replica here."""
        return self._partitions

    def find(self, topic: str, index: int) -> Partition:
        """The partition; an ApiError if it has no replica here, or one that is offline.

        NOT_LEADER_OR_FOLLOWER where it is elsewhere: who asks shall look again where.
        """
        # A plain tuple is found as well, and costs less to make on the hot path.
        partition = self._partitions.get((topic, index))  # type: ignore[call-overload]
        if partition is None:
            raise self._missing(TopicPartition(topic, index))
        return partition  # type: ignore[no-any-return]

    def _missing(self, name: TopicPartition) -> ApiError:
        if name in self.offline:
            return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name} is offline")
        if self.cluster.metadata.has_partition(*name):
            return NotLeaderOrFollower(f"{name} has no replica on this broker")
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}")

    # --- becoming leader or follower -------------------------------------------------------------

    async def make_logs(
        self, topic_id: Uuid, states: Mapping[TopicPartition, LeaderAndIsr], *, is_new: bool
    ) -> None:
        """Make the missing logs of one topic's partitions; KAFKA_STORAGE_ERROR if one cannot be."""
        missing: dict[int, list[TopicPartition]] = {}
        for name, state in states.items():
            if self.logs.get(name) is None and not await self._make_where_wanted(name, topic_id):
                # A follower's epochs are those of the batches that it fetches.
                epoch = state.leader_epoch if state.leader == self.broker_id else -1
                missing.setdefault(epoch, []).append(name)
        for epoch, names in missing.items():
            await asyncio.to_thread(self.logs.create_all, names, topic_id, epoch, is_new=is_new)

    async def _make_where_wanted(self, name: TopicPartition, topic_id: Uuid) -> bool:
        """Make a log in the directory that AlterReplicaLogDirs chose for it; False if none is."""
        log_dir = self.log_dir_moves.preferred.pop(name, None)
        if log_dir is None:
            return False
        await asyncio.to_thread(
            lambda: self.logs.get_or_create(name, topic_id, is_new=True, log_dir=log_dir)
        )
        return True

    def open(self, name: TopicPartition, topic_id: Uuid) -> Partition:
        """The partition, which has a log, as nobody's leader or follower if it is new here."""
        partition = self._partitions.get(name)
        if partition is None:
            log = self.logs.get_or_create(name, topic_id)
            log.update_high_watermark(self._high_watermarks.pop(name, 0))
            unknown = LeaderAndIsr(-1, -1, (), ())
            config = self._configs.topic(name.topic)
            self._throttle(name.topic, config)
            partition = Partition(
                name,
                topic_id,
                self.broker_id,
                log,
                unknown,
                config.min_insync_replicas,
                self._surroundings,
            )
            self._partitions[name] = partition
        return partition

    def take_up(self, partition: Partition, state: LeaderAndIsr) -> bool:
        """Lead or follow as the controller decided; whether it must be fetched from a new leader.

        The caller hands those over to the fetchers, together.
        """
        was_leader = partition.is_leader
        is_new_epoch = partition.become(state)
        self.log_dir_moves.resume(partition)
        if partition.is_leader:
            if not was_leader:
                self.fetchers.unfollow([partition.name])
            if is_new_epoch or not was_leader:
                self.on_leading(partition.name, state.leader_epoch)
            return False
        if is_new_epoch:
            self.on_following(partition.name, state.leader_epoch)
        if state.leader < 0:  # nobody to follow, until the controller finds somebody
            self.fetchers.unfollow([partition.name])
            return False
        return is_new_epoch

    def forget(self, names: Iterable[TopicPartition]) -> None:
        """Neither lead nor follow these any more; their logs stay."""
        names = list(names)
        self.fetchers.unfollow(names)
        for name in names:
            partition = self._partitions.pop(name, None)
            if partition is not None:
                self.log_dir_moves.give_up(name)
                partition.retire()
                self.on_gone(name)

    # --- settings --------------------------------------------------------------------------------

    def _topic_changed(self, topic: str, config: TopicConfig) -> None:
        self._throttle(topic, config)
        self._update_configs({topic})

    def _throttle(self, topic: str, config: TopicConfig) -> None:
        self.leader_throttle.set_replicas(
            topic, config.leader_replication_throttled_replicas, self.broker_id
        )
        self.follower_throttle.set_replicas(
            topic, config.follower_replication_throttled_replicas, self.broker_id
        )

    def _broker_changed(self, config: BrokerConfig) -> None:
        self._apply_rates(config)
        self.fetchers.resize(config.num_replica_fetchers, self._partitions.values())
        self._update_configs(None)

    def _apply_rates(self, config: BrokerConfig) -> None:
        rates = DynamicOnlySettings.parse(config.originals)
        self.leader_throttle.limit = rates.leader_replication_throttled_rate
        self.follower_throttle.limit = rates.follower_replication_throttled_rate
        self.log_dir_moves.limit = rates.replica_alter_log_dirs_io_max_bytes_per_second
        self._surroundings.max_lag_ms = config.replica_lag_time_max_ms

    def _update_configs(self, topics: set[str] | None) -> None:
        """Let partitions obey what holds now for their topics (None: for all topics)."""
        for name, partition in self._partitions.items():
            if topics is None or name.topic in topics:
                config = self._configs.topic(name.topic)
                partition.min_insync_replicas = config.min_insync_replicas
                partition.log.update_config(LogConfig.of(config))

    # --- what comes round ------------------------------------------------------------------------

    def shrink_isrs(self) -> None:
        """Leave out of the ISRs who lags; every half of `replica.lag.time.max.ms`.

        And let followers hear where logs begin by now: retention works without telling anybody.
        """
        for partition in self._partitions.values():
            partition.maybe_shrink_isr()
            partition.maybe_tell_log_start_offset()

    def load_high_watermarks(self) -> None:
        """Read the checkpoints; a damaged one costs only that followers are asked again."""
        for log_dir in self.logs.online_dirs:
            try:
                self._high_watermarks |= read_offsets(log_dir.path / HIGH_WATERMARK_CHECKPOINT)
            except CorruptCheckpoint as error:
                logger.warning("ignored high watermarks: %s", error)

    def checkpoint_high_watermarks(self) -> None:
        """Write the high watermarks of every log directory; any thread."""
        by_dir: dict[Path, dict[TopicPartition, int]] = {
            log_dir.path: {} for log_dir in self.logs.online_dirs
        }
        for name, partition in list(self._partitions.items()):
            if partition.log.log_dir in by_dir:
                by_dir[partition.log.log_dir][name] = partition.log.high_watermark
        for path, offsets in by_dir.items():
            try:
                write_offsets(path / HIGH_WATERMARK_CHECKPOINT, offsets, DISK)
            except OSError as error:
                self.logs.dir_failed(path, error)

    def log_dir_failed(self, path: Path) -> list[TopicPartition]:
        """Take the partitions of a failed directory offline; gives their names."""
        gone = [n for n, p in self._partitions.items() if p.log.log_dir == path]
        self.offline.update(gone)
        self.forget(gone)
        return gone

    async def close(self) -> None:
        """Follow nobody, ask the controller nothing, and write the high watermarks down."""
        await self.fetchers.stop()
        await self._isr_changes.stop()
        await self.log_dir_moves.stop()
        self.checkpoint_high_watermarks()


def _fetcher_settings(config: BrokerConfig) -> FetcherSettings:
    return FetcherSettings(
        FetchLimits(
            config.replica_fetch_wait_max_ms,
            config.replica_fetch_min_bytes,
            config.replica_fetch_response_max_bytes,
            config.replica_fetch_max_bytes,
        ),
        config.replica_fetch_backoff_ms / 1000,
        config.replica_socket_timeout_ms / 1000,
    )
