"""All partitions of this broker: looked up, made leader or follower, removed.

The manager wires the parts of the package together: partitions propose ISRs through the
AlterPartitionManager, followers fetch through the FetcherManager, requests wait in the purgatory.
The requests of the controller, and which of them are refused, are in `controller_requests`.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.config.broker import DynamicOnlySettings
from broker.config.dynamic import DynamicConfig
from broker.config.topic import TopicConfig
from broker.errors import ApiError, ErrorCode, NotLeaderOrFollower
from broker.log.checkpoints import CorruptCheckpoint, read_offsets, write_offsets
from broker.log.config import LogConfig
from broker.log.files import DISK
from broker.log.manager import LogManager, NewLog
from broker.metadata_cache import MetadataCache
from broker.model import BrokerEpoch, LeaderAndIsr, TopicPartition, Uuid
from broker.net.broker_connection import Node
from broker.net.peers import Connect
from broker.replica.alter_log_dirs import ReplicaAlterLogDirsManager
from broker.replica.alter_partition_manager import AlterPartitionManager, ControllerSender
from broker.replica.environment import ReplicaEnvironment
from broker.replica.fetcher import FetcherContext, FetcherSettings
from broker.replica.fetcher_manager import FetcherManager
from broker.replica.follower_session import FetchLimits
from broker.replica.group_commit import GroupCommit
from broker.replica.partition import Partition
from broker.replica.purgatory import Purgatory
from broker.replica.reevaluation import Event
from broker.replica.throttle import Rate, Throttle

logger = logging.getLogger(__name__)

HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
_PARTITIONS_PER_SLICE: Final = 500


def _ignore(*_: object) -> None:
    """There is no subscriber."""


@dataclass(frozen=True)
class ReplicaCluster:
    """What the manager needs to know about the cluster and how it reaches other brokers."""

    metadata: MetadataCache
    broker_epoch: BrokerEpoch
    controller: ControllerSender
    connect: Connect
    find_node: Callable[[int], Node | None]
    """The address of a broker for other brokers; None if it is not alive."""
    clock: Clock


class ReplicaManager:
    """The partitions of which this broker has a replica.

    Field `purgatory`: where requests wait for these partitions.
    Field `_partitions`: every partition that is online, as leader or follower, by name.
    Field `offline`: partitions whose log directory has failed. Invariant: none is in `_partitions`.
    Field `_high_watermarks`: the checkpointed values read at start. An entry is removed when its
    partition is created.
    Field `_environment`: shared by all partitions.
    """

    def __init__(
        self, broker_id: int, logs: LogManager, configs: DynamicConfig, cluster: ReplicaCluster
    ) -> None:
        self.broker_id = broker_id
        self.logs = logs
        self.cluster = cluster
        self._configs = configs
        config = configs.broker
        self.on_leading: Callable[[TopicPartition, int], None] = _ignore
        """Called with every partition that this broker begins to lead, and the leader epoch."""
        self.on_following: Callable[[TopicPartition, int], None] = _ignore
        """Called with every partition that this broker begins to follow, and the leader epoch."""
        self.on_gone: Callable[[TopicPartition], None] = _ignore
        """Called with every partition that has no replica here any more."""
        self.on_deleted: Callable[[list[TopicPartition]], None] = _ignore
        """Called with the partitions of topics that were deleted."""
        self.purgatory = Purgatory()
        self._partitions: dict[TopicPartition, Partition] = {}
        self.offline: set[TopicPartition] = set()
        self.alter_log_dirs = ReplicaAlterLogDirsManager(logs, self._partitions)
        self._high_watermarks: dict[TopicPartition, int] = {}
        self._alter_partition = AlterPartitionManager(
            broker_id, cluster.broker_epoch, cluster.controller
        )
        self._group_commit = GroupCommit()
        self._environment = ReplicaEnvironment(
            cluster.clock,
            config.replica_lag_time_max_ms,
            cluster.metadata.is_alive,
            self._alter_partition.submit,
            self._group_commit.request,
        )
        windows = config.replication_quota_window_num, config.replication_quota_window_size_seconds
        self.leader_throttle = Throttle(Rate(*windows))
        self.follower_throttle = Throttle(Rate(*windows))
        self.fetchers = FetcherManager(
            FetcherContext(
                broker_id,
                cluster.broker_epoch,
                cluster.connect,
                _fetcher_settings(config),
                self.follower_throttle,
                lambda name: logs.get(name, is_future=True),
                logs.truncating,
                self._group_commit.flush,
            ),
            cluster.find_node,
            config.num_replica_fetchers,
        )
        configs.on_topic_change(self._topic_changed)
        configs.on_broker_change(lambda _old, new: self._broker_changed(new))
        self._apply_rates(config)

    @property
    def partitions(self) -> Mapping[TopicPartition, Partition]:
        """Every partition that is online here."""
        return self._partitions

    @property
    def environment(self) -> ReplicaEnvironment:
        """What all partitions share, with the counters of ISR changes and traffic."""
        return self._environment

    @property
    def num_missed_wakeups(self) -> int:
        """How often the timer did what an event should have done; see `reevaluation`."""
        return self._environment.num_missed_wakeups

    def find(self, topic: str, index: int) -> Partition:
        """The partition; an ApiError if it has no replica here, or an offline one.

        NOT_LEADER_OR_FOLLOWER if it exists elsewhere: clients refresh their metadata then.
        """
        # A plain tuple is equal to a TopicPartition, and cheaper to make on the hot path.
        partition = self._partitions.get((topic, index))  # type: ignore[call-overload]
        if partition is None:
            raise self._missing(TopicPartition(topic, index))
        return partition  # type: ignore[no-any-return]

    def _missing(self, name: TopicPartition) -> ApiError:
        if name in self.offline:
            return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name} is offline")
        if self.cluster.metadata.has_partition(*name):
            return NotLeaderOrFollower(f"{name} has no replica on this broker")
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{name} does not exist")

    # --- becoming leader or follower -------------------------------------------------------------

    async def make_logs(
        self, decisions: Mapping[TopicPartition, tuple[Uuid, LeaderAndIsr]], *, is_new: bool
    ) -> None:
        """Create the missing logs of partitions; KAFKA_STORAGE_ERROR on failure."""
        missing: list[NewLog] = []
        for name, (topic_id, state) in decisions.items():
            if self.logs.get(name) is None and not await self._make_where_preferred(name, topic_id):
                # A follower takes leader epochs from the batches that it fetches.
                epoch = state.leader_epoch if state.leader == self.broker_id else -1
                missing.append(NewLog(name, topic_id, epoch))
        if missing:
            await asyncio.to_thread(self.logs.create_all, missing, is_new=is_new)

    async def _make_where_preferred(self, name: TopicPartition, topic_id: Uuid) -> bool:
        """Create a log in the directory that AlterReplicaLogDirs chose; False without a choice."""
        log_dir = self.alter_log_dirs.preferred.pop(name, None)
        if log_dir is None:
            return False
        await asyncio.to_thread(
            lambda: self.logs.get_or_create(name, topic_id, is_new=True, log_dir=log_dir)
        )
        return True

    def get_or_create_partition(self, name: TopicPartition, topic_id: Uuid) -> Partition:
        """The partition, whose log exists; a new one is neither leader nor follower yet."""
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
                self._environment,
            )
            self._partitions[name] = partition
        return partition

    def become_leader_or_follower(self, partition: Partition, state: LeaderAndIsr) -> bool:
        """Apply a decision of the controller; returns whether to fetch from a leader from now on.

        The caller passes all such partitions of a request to the fetchers together.
        """
        was_leader = partition.is_leader
        is_new_epoch = partition.become_leader_or_follower(state)
        self.alter_log_dirs.resume(partition)
        if partition.is_leader:
            if not was_leader:
                self.fetchers.unfollow([partition.name])
            if is_new_epoch or not was_leader:
                self.on_leading(partition.name, state.leader_epoch)
            return False
        if is_new_epoch:
            self.on_following(partition.name, state.leader_epoch)
        if state.leader < 0:  # no leader to fetch from, until the controller elects one
            self.fetchers.unfollow([partition.name])
            return False
        return is_new_epoch

    def remove_partitions(self, names: Iterable[TopicPartition]) -> None:
        """Stop leading and following these partitions; their logs remain."""
        names = list(names)
        self.fetchers.unfollow(names)
        for name in names:
            partition = self._partitions.pop(name, None)
            if partition is not None:
                self.alter_log_dirs.cancel(name)
                partition.remove()
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
        self.alter_log_dirs.limit = rates.replica_alter_log_dirs_io_max_bytes_per_second
        self._environment.max_lag_ms = config.replica_lag_time_max_ms

    def _update_configs(self, topics: set[str] | None) -> None:
        """Apply the present settings to the partitions of these topics (None: of all topics)."""
        for name, partition in self._partitions.items():
            if topics is None or name.topic in topics:
                config = self._configs.topic(name.topic)
                partition.min_insync_replicas = config.min_insync_replicas
                partition.log.update_config(LogConfig.of(config))
                partition.reevaluate(Event.CONFIG)

    # --- events of all partitions ----------------------------------------------------------------

    def live_brokers_changed(self) -> None:
        """A broker has died or returned."""
        for partition in self._partitions.values():
            partition.reevaluate(Event.LIVE_BROKERS)

    def reevaluate_all(self) -> None:
        """Re-evaluate every partition; a timer calls this twice per `replica.lag.time.max.ms`."""
        self._reevaluate_slices(iter(list(self._partitions.values())))

    def _reevaluate_slices(self, partitions: Iterator[Partition]) -> None:
        """Re-evaluate some partitions now, and the others after the requests that wait.

        One partition takes about 4 µs: ten thousand at once would delay every request by 40 ms.
        """
        partition = None
        for partition in itertools.islice(partitions, _PARTITIONS_PER_SLICE):
            partition.reevaluate_on_timer()
        if partition is not None:
            asyncio.get_running_loop().call_soon(self._reevaluate_slices, partitions)

    # --- high watermark checkpoints and log directories ------------------------------------------

    def load_high_watermarks(self) -> None:
        """Read the checkpoints. Without one, high watermarks start at 0 and rise by fetches."""
        for log_dir in self.logs.online_dirs:
            try:
                self._high_watermarks |= read_offsets(log_dir.path / HIGH_WATERMARK_CHECKPOINT)
            except CorruptCheckpoint as error:
                logger.warning("ignoring corrupt high watermark checkpoint: %s", error)

    def checkpoint_high_watermarks(self) -> None:
        """Write the high watermarks of every log directory. Thread-safe."""
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
        """Take the partitions of a failed directory offline; returns their names."""
        gone = [n for n, p in self._partitions.items() if p.log.log_dir == path]
        self.offline.update(gone)
        self.remove_partitions(gone)
        return gone

    async def close(self) -> None:
        """Stop fetching, proposing ISRs and moving logs; write the high watermarks."""
        await self.fetchers.stop()
        await self._alter_partition.stop()
        await self.alter_log_dirs.stop()
        await asyncio.to_thread(self._group_commit.close)
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
