"""Leader elections by request, by znode, and by the periodic check for preferred leaders.

ElectLeaders (KIP-460) requests preferred or unclean elections; /admin/preferred_replica_election is
the older way to request preferred ones. With `auto.leader.rebalance.enable` the controller checks
every `leader.imbalance.check.interval.seconds` which brokers lead too few of the partitions that
prefer them, and elects these.
"""

import asyncio
import logging
from collections.abc import Iterable
from enum import IntEnum

from broker.controller.controller_services import ControllerServices
from broker.controller.partition_leader_election import ElectionStrategy
from broker.controller.partition_state_machine import PartitionStateMachine
from broker.errors import ApiError, ErrorCode
from broker.metadata.znodes.admin import PreferredReplicaElectionZnode
from broker.metadata.znodes.json_text import MalformedZnode
from broker.model import NO_LEADER, TopicPartition

logger = logging.getLogger(__name__)

_PARTITIONS_PER_SLICE = 1000
"""Partitions of a request that are checked before other tasks of the event loop run."""


class ElectionType(IntEnum):
    """The kinds of ElectLeaders: the first assigned replica, or any live replica."""

    PREFERRED = 0
    UNCLEAN = 1


class ReplicaLeaderElection:
    """Holds these elections in one controller epoch."""

    def __init__(self, services: ControllerServices, partitions: PartitionStateMachine) -> None:
        self._services = services
        self._context = services.context
        self._partitions = partitions

    async def elect(
        self, names: Iterable[TopicPartition], election_type: ElectionType
    ) -> dict[TopicPartition, ApiError | None]:
        """Elect leaders; returns each partition's error, or None where a leader was elected."""
        outcomes: dict[TopicPartition, ApiError | None] = {}
        for count, name in enumerate(names, start=1):
            outcomes[name] = self._obstacle(name, election_type)
            if count % _PARTITIONS_PER_SLICE == 0:
                await asyncio.sleep(0)  # a request may name millions: let other clients be served
        wanted = [name for name, obstacle in outcomes.items() if obstacle is None]
        is_preferred = election_type is ElectionType.PREFERRED
        strategy = ElectionStrategy.PREFERRED if is_preferred else ElectionStrategy.UNCLEAN
        led = await self._partitions.bring_online(wanted, strategy)
        for name in wanted:
            if not led.get(name):
                outcomes[name] = _no_eligible_replica(name, strategy)
        return outcomes

    def _obstacle(self, name: TopicPartition, election_type: ElectionType) -> ApiError | None:
        """Why there is no election for the partition; None if there is one."""
        replicas = self._context.assignment(name).replicas
        if not replicas:
            return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
        if self._context.is_being_deleted(name.topic):
            return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted")
        known = self._context.leaderships.get(name)
        leader = known.leader if known else NO_LEADER
        if election_type is ElectionType.PREFERRED:
            is_needed = leader != replicas[0]
        else:
            is_needed = leader == NO_LEADER or leader not in self._context.live_broker_ids
        if is_needed:
            return None
        return ApiError(
            ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
        )

    async def process_preferred_replica_election(self) -> None:
        """Elect the partitions in /admin/preferred_replica_election, and remove the node."""
        path = PreferredReplicaElectionZnode.PATH
        node = await self._services.store.maybe_get(path)
        if node is None:
            return
        try:
            wanted = PreferredReplicaElectionZnode.decode(node.data)
        except MalformedZnode as error:
            logger.error("Ignoring malformed %s: %s", path, error)
            wanted = []
        outcomes = await self.elect(wanted, ElectionType.PREFERRED)
        for name, obstacle in outcomes.items():
            if obstacle is not None and obstacle.code is not ErrorCode.ELECTION_NOT_NEEDED:
                logger.warning("Failed to elect preferred leader partition=%s: %s", name, obstacle)
        await self._services.store.delete([path])

    async def rebalance(self) -> None:
        """Elect the preferred leaders on brokers that lead too few of their partitions.

        A broker's imbalance is the share of the partitions that prefer it which others lead; above
        `leader.imbalance.per.broker.percentage` those that it can lead are elected.
        """
        percentage = self._services.configs.broker.leader_imbalance_per_broker_percentage
        for broker_id, names in self._by_preferred_leader().items():
            elsewhere = [
                name
                for name in names
                if name in self._context.leaderships
                and self._context.leaderships[name].leader != broker_id
            ]
            if len(elsewhere) / len(names) > percentage / 100:
                able = [name for name in elsewhere if self._can_lead(broker_id, name)]
                logger.info(
                    "Starting preferred leader elections broker=%s partitions=%s",
                    broker_id,
                    len(able),
                )
                await self._partitions.bring_online(able, ElectionStrategy.PREFERRED)

    def _by_preferred_leader(self) -> dict[int, list[TopicPartition]]:
        found: dict[int, list[TopicPartition]] = {}
        for name in self._context.partitions():
            replicas = self._context.assignment(name).replicas
            if replicas and not self._context.is_being_deleted(name.topic):
                found.setdefault(replicas[0], []).append(name)
        return found

    def _can_lead(self, broker_id: int, name: TopicPartition) -> bool:
        is_in_sync = broker_id in self._context.leaderships[name].isr
        return is_in_sync and self._context.is_online(broker_id, name)


def _no_eligible_replica(name: TopicPartition, strategy: ElectionStrategy) -> ApiError:
    if strategy is ElectionStrategy.PREFERRED:
        code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    else:
        code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    return ApiError(
        code, f"Failed to elect leader for partition {name} under strategy {strategy.value}"
    )
