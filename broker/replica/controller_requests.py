"""The controller's requests to a broker: LeaderAndIsr, StopReplica, UpdateMetadata.

A request is refused as a whole if it was meant for an earlier incarnation of this broker
(STALE_BROKER_EPOCH), or comes from a controller that has been replaced (STALE_CONTROLLER_EPOCH).
Requests are executed one after the other, in the order of arrival.

LeaderAndIsr, per partition, in this order:

    its topic's name is illegal                                INVALID_TOPIC_EXCEPTION
    a negative partition index or broker id                    INVALID_REQUEST
    its log directory is offline                               KAFKA_STORAGE_ERROR
    its log belongs to another topic of the same name          INCONSISTENT_TOPIC_ID
    its leader epoch is not above the known one                STALE_CONTROLLER_EPOCH
    this broker is not among the replicas                      UNKNOWN_TOPIC_OR_PARTITION
    its log cannot be created                                  KAFKA_STORAGE_ERROR
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from broker.errors import ApiError, ErrorCode
from broker.metadata_cache import MetadataCache
from broker.model import LeaderAndIsr, TopicPartition, Uuid
from broker.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from broker.protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
)
from broker.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from broker.replica.manager import ReplicaManager
from broker.tasks import run_in_slices
from broker.topic_names import check_partition

logger = logging.getLogger("state.change")

_ANY_EPOCH: Final = (-1, -2)
"""StopReplica without a leader epoch: from an old controller, or for a topic under deletion."""

Codes = dict[TopicPartition, ErrorCode]


class _Accepted(NamedTuple):
    """A valid decision about a partition."""

    topic_id: Uuid
    decision: LeaderAndIsr
    is_new: bool


class ControllerRequests:
    """Executes the controller's requests.

    Field `controller_epoch`: the highest seen. Invariant: never goes back.
    Field `_one_at_a_time`: held while a request is executed.
    """

    def __init__(self, replicas: ReplicaManager) -> None:
        self._replicas = replicas
        self._cluster = replicas.cluster
        self.controller_epoch = 0
        self._one_at_a_time = asyncio.Lock()

    def _refusal(self, broker_epoch: int, controller_epoch: int) -> ErrorCode:
        """Why the request is refused; NONE if it is accepted, and then its epoch is kept."""
        if self._cluster.broker_epoch.is_stale(broker_epoch):
            return ErrorCode.STALE_BROKER_EPOCH
        if controller_epoch < self.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        self.controller_epoch = controller_epoch
        return ErrorCode.NONE

    # --- UpdateMetadata --------------------------------------------------------------------------

    async def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """Update the metadata cache; partitions re-evaluate if brokers have died or returned."""
        async with self._one_at_a_time:
            code = self._refusal(request.broker_epoch, request.controller_epoch)
            if code == ErrorCode.NONE:
                live_before = _live_brokers(self._cluster.metadata)
                updating = self._cluster.metadata.update_in_slices(request)
                _, (deleted, code) = await run_in_slices(updating)
                if _live_brokers(self._cluster.metadata) != live_before:
                    self._replicas.live_brokers_changed()
                if deleted:
                    self._replicas.on_deleted(deleted)
            return UpdateMetadataResponse(error_code=code)

    # --- LeaderAndIsr ----------------------------------------------------------------------------

    async def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Make partitions leader or follower; the response has an error code for each."""
        async with self._one_at_a_time:
            code = self._refusal(request.broker_epoch, request.controller_epoch)
            if code != ErrorCode.NONE:
                return refused_leader_and_isr(request, code)
            answers: dict[tuple[str, Uuid], Codes] = {}
            accepted: dict[TopicPartition, _Accepted] = {}
            for topic, topic_id, states in topics_of(request):
                answers[topic, topic_id] = self._accept(topic, topic_id, states, accepted)
            # All logs together: the flush of the file system costs more than anything else.
            failed = await self._make_logs(accepted)
            followed = []
            for name, (topic_id, decision, _) in accepted.items():
                if name in failed:
                    answers[name.topic, topic_id][name] = ErrorCode.KAFKA_STORAGE_ERROR
                    continue
                partition = self._replicas.get_or_create_partition(name, topic_id)
                if self._replicas.become_leader_or_follower(partition, decision):
                    followed.append(partition)
            self._replicas.fetchers.follow(followed)
            return _leader_and_isr_response(answers)

    def _accept(
        self,
        topic: str,
        topic_id: Uuid,
        states: Iterable[LeaderAndIsrPartitionState],
        accepted: dict[TopicPartition, _Accepted],
    ) -> Codes:
        """Check one topic's partitions; the valid ones are added to `accepted`."""
        codes: Codes = {}
        for state in states:
            name = TopicPartition(topic, state.partition_index)
            if name in accepted:  # named twice: the second decision is as old as the first
                codes[name] = ErrorCode.STALE_CONTROLLER_EPOCH
                continue
            codes[name] = self._check(name, topic_id, state)
            if codes[name] == ErrorCode.NONE:
                accepted[name] = _Accepted(topic_id, _decision(state), state.is_new)
        return codes

    def _check(
        self, name: TopicPartition, topic_id: Uuid, state: LeaderAndIsrPartitionState
    ) -> ErrorCode:
        changing = (*state.adding_replicas, *state.removing_replicas)
        if code := check_partition(*name, (*state.replicas, *state.isr, *changing), state.leader):
            logger.error("rejecting LeaderAndIsr of partition=%r error=%s", name, code.name)
            return code
        replicas = self._replicas
        if name in replicas.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        log = replicas.logs.get(name)
        known_id = None if log is None else log.topic_id
        if None is not known_id != topic_id != Uuid.ZERO:
            logger.error(
                "topic id does not match the log partition=%s log_topic_id=%s topic_id=%s",
                name,
                known_id,
                topic_id,
            )
            return ErrorCode.INCONSISTENT_TOPIC_ID
        known = replicas.partitions.get(name)
        if known is not None and state.leader_epoch <= known.state.leader_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if replicas.broker_id not in state.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE

    async def _make_logs(self, accepted: Mapping[TopicPartition, _Accepted]) -> set[TopicPartition]:
        """Create the missing logs; returns the partitions whose log cannot be created."""
        failed: set[TopicPartition] = set()
        for is_new in (True, False):
            wanted = {
                name: (one.topic_id, one.decision)
                for name, one in accepted.items()
                if one.is_new == is_new
            }
            try:
                await self._replicas.make_logs(wanted, is_new=is_new)
            except ApiError as error:
                logger.error("cannot create logs: %s", error)
            failed |= {name for name in wanted if self._replicas.logs.get(name) is None}
        self._replicas.offline.update(failed)
        return failed

    # --- StopReplica -----------------------------------------------------------------------------

    async def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Stop replicas and delete their logs if requested; an error code for each partition."""
        async with self._one_at_a_time:
            code = self._refusal(request.broker_epoch, request.controller_epoch)
            if code != ErrorCode.NONE:
                return StopReplicaResponse(error_code=code)
            wanted = dict(stopped_by(request))
            codes = {name: self._check_stop(name, state) for name, state in wanted.items()}
            stopped = [name for name, found in codes.items() if found == ErrorCode.NONE]
            deleted = [name for name in stopped if wanted[name].delete_partition]
            for name in stopped:
                logger.info(
                    "stopping replica partition=%s delete=%s leader_epoch=%s",
                    name,
                    str(wanted[name].delete_partition).lower(),
                    wanted[name].leader_epoch,
                )
            self._replicas.fetchers.unfollow(stopped)
            self._replicas.remove_partitions(deleted)
            codes |= await asyncio.to_thread(self._delete, deleted)
            return StopReplicaResponse(
                partition_errors=[
                    StopReplicaPartitionError(
                        topic_name=name.topic, partition_index=name.partition, error_code=found
                    )
                    for name, found in codes.items()
                ]
            )

    def _check_stop(self, name: TopicPartition, state: StopReplicaPartitionState) -> ErrorCode:
        if code := check_partition(*name):
            return code
        if name in self._replicas.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        known = self._replicas.partitions.get(name)
        if known is None or state.leader_epoch in _ANY_EPOCH:
            return ErrorCode.NONE
        is_old = state.leader_epoch < known.state.leader_epoch
        return ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.NONE

    def _delete(self, names: Iterable[TopicPartition]) -> Codes:
        """Delete logs; the error codes of those that cannot be deleted."""
        failed = self._replicas.logs.delete_all(names)
        for name, error in failed.items():
            logger.error("cannot delete log partition=%s: %s", name, error)
        return {name: error.code for name, error in failed.items()}


def _live_brokers(metadata: MetadataCache) -> set[int]:
    return {broker.broker_id for listed in metadata.brokers.values() for broker in listed}


def topics_of(
    request: LeaderAndIsrRequest,
) -> Iterator[tuple[str, Uuid, list[LeaderAndIsrPartitionState]]]:
    """The states by topic; up to version 1 every state names its topic."""
    for topic in request.topic_states:
        yield topic.topic_name, topic.topic_id, topic.partition_states
    by_name: dict[str, list[LeaderAndIsrPartitionState]] = {}
    for state in request.ungrouped_partition_states:
        by_name.setdefault(state.topic_name, []).append(state)
    for name, states in by_name.items():
        yield name, Uuid.ZERO, states


def _decision(state: LeaderAndIsrPartitionState) -> LeaderAndIsr:
    return LeaderAndIsr(
        state.leader,
        state.leader_epoch,
        tuple(state.isr),
        tuple(state.replicas),
        state.partition_epoch,
        state.controller_epoch,
        tuple(state.adding_replicas),
        tuple(state.removing_replicas),
    )


def _leader_and_isr_response(answers: dict[tuple[str, Uuid], Codes]) -> LeaderAndIsrResponse:
    """The response for all versions: encoding leaves out the fields that a version lacks."""
    return LeaderAndIsrResponse(
        topics=[
            LeaderAndIsrTopicError(
                topic_id=topic_id,
                partition_errors=[
                    LeaderAndIsrPartitionError(
                        topic_name=name.topic, partition_index=name.partition, error_code=code
                    )
                    for name, code in codes.items()
                ],
            )
            for (_, topic_id), codes in answers.items()
        ]
    )


def refused_leader_and_isr(request: LeaderAndIsrRequest, code: ErrorCode) -> LeaderAndIsrResponse:
    """The error of the whole request, and of every partition."""
    answers = {
        (topic, topic_id): {TopicPartition(topic, s.partition_index): code for s in states}
        for topic, topic_id, states in topics_of(request)
    }
    refused = _leader_and_isr_response(answers)
    return LeaderAndIsrResponse(error_code=code, topics=refused.topics)


def stopped_by(
    request: StopReplicaRequest,
) -> Iterator[tuple[TopicPartition, StopReplicaPartitionState]]:
    """The replicas to stop, in any of the three forms that versions have."""
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield TopicPartition(topic.topic_name, state.partition_index), state
    delete = request.delete_partitions
    for old_topic in request.topics:
        for index in old_topic.partition_indexes:
            state = StopReplicaPartitionState(partition_index=index, delete_partition=delete)
            yield TopicPartition(old_topic.name, index), state
    for oldest in request.ungrouped_partitions:
        index = oldest.partition_index
        state = StopReplicaPartitionState(partition_index=index, delete_partition=delete)
        yield TopicPartition(oldest.topic_name, index), state
