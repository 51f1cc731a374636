"""Leader elections that somebody asks for, and those that keep the preferred leaders leading."""

import logging
from collections.abc import Iterable
from enum import IntEnum

from broker.controller.election import ElectionStrategy
from broker.controller.leadership import NO_LEADER
from broker.controller.partition_machine import PartitionStateMachine
from broker.controller.term import Term
from broker.errors import ApiError, ErrorCode
from broker.metadata.znodes.admin import PreferredReplicaElectionZnode
from broker.metadata.znodes.json_text import MalformedZnode
from broker.model import TopicPartition

logger = logging.getLogger(__name__)


class ElectionType(IntEnum):
    """Whom to elect: the first of the assigned replicas, or anybody who is left."""

    PREFERRED = 0
    UNCLEAN = 1


class Elections:
    """The elections of one controller term."""

    def __init__(self, term: Term, partitions: PartitionStateMachine) -> None:
        self._term = term
        self._context = term.context
        self._partitions = partitions

    async def elect(
        self, names: Iterable[TopicPartition], election_type: ElectionType
    ) -> dict[TopicPartition, ApiError | None]:
        """Elect leaders; what was in the way of each, or None for a new leader."""
        outcomes = {name: self._obstacle(name, election_type) for name in names}
        wanted = [name for name, obstacle in outcomes.items() if obstacle is None]
        is_preferred = election_type is ElectionType.PREFERRED
        strategy = ElectionStrategy.PREFERRED if is_preferred else ElectionStrategy.UNCLEAN
        led = await self._partitions.bring_online(wanted, strategy)
        for name in wanted:
            if not led.get(name):
                outcomes[name] = _nobody(name, strategy)
        return outcomes

    def _obstacle(self, name: TopicPartition, election_type: ElectionType) -> ApiError | None:
        """Why there is nothing to elect."""
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

    async def read_wishes(self) -> None:
        """Elect what /admin/preferred_replica_election asks for, and remove the node."""
        path = PreferredReplicaElectionZnode.PATH
        node = await self._term.store.maybe_get(path)
        if node is None:
            return
        try:
            wanted = PreferredReplicaElectionZnode.decode(node.data)
        except MalformedZnode as error:
            logger.error("nobody is elected: %s", error)
            wanted = []
        outcomes = await self.elect(wanted, ElectionType.PREFERRED)
        for name, obstacle in outcomes.items():
            if obstacle is not None and obstacle.code is not ErrorCode.ELECTION_NOT_NEEDED:
                logger.warning("not elected partition=%s reason=%s", name, obstacle)
        await self._term.store.delete([path])

    async def rebalance(self) -> None:
        """Give leadership back to preferred leaders that lead too little of what they should."""
        percentage = self._term.configs.broker.leader_imbalance_per_broker_percentage
        for broker_id, names in self._by_preferred_leader().items():
            elsewhere = [
                name
                for name in names
                if name in self._context.leaderships
                and self._context.leaderships[name].leader != broker_id
            ]
            if len(elsewhere) / len(names) > percentage / 100:
                able = [name for name in elsewhere if self._can_lead(broker_id, name)]
                logger.info("leaders go back broker=%s partitions=%s", broker_id, len(able))
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


def _nobody(name: TopicPartition, strategy: ElectionStrategy) -> ApiError:
    if strategy is ElectionStrategy.PREFERRED:
        code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    else:
        code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    return ApiError(
        code, f"Failed to elect leader for partition {name} under strategy {strategy.value}"
    )
