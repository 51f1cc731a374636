"""Transactions as coordinators see them, and producers as partitions see them (KIP-664)."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition
from broker.net.client import TRANSACTION, Client
from broker.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    PartitionResponse,
    ProducerState,
    TopicRequest,
)
from broker.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    TransactionState,
)
from broker.protocol.messages.list_transactions import ListTransactionsRequest
from broker.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kctl.admin.coordinators import coordinators_of
from kctl.plans.hanging import ActiveProducer, Transaction

PARTITIONS_AT_ONCE = 500
"""A broker with many thousands of partitions is asked for them bit by bit."""


@dataclass(frozen=True)
class TransactionFilter:
    """Which transactions are meant; all of them unless said."""

    states: Sequence[str] = ()
    producer_ids: Sequence[int] = ()
    longer_than_ms: int = -1


ALL_TRANSACTIONS = TransactionFilter()


@dataclass(frozen=True)
class TransactionListing:
    """A transactional id as its coordinator lists it."""

    transactional_id: str
    coordinator_id: int
    producer_id: int
    state: str


@dataclass(frozen=True)
class Marker:
    """What is needed to end a transaction on one partition."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


async def list_transactions(
    client: Client, wanted: TransactionFilter = ALL_TRANSACTIONS
) -> list[TransactionListing]:
    """What all coordinators list, by broker; ApiError for a state that they do not know."""
    request = ListTransactionsRequest(
        state_filters=list(wanted.states),
        producer_id_filters=list(wanted.producer_ids),
        duration_filter=wanted.longer_than_ms,
    )
    found = []
    for node_id, answer in (await client.send_to_all(request)).items():
        if isinstance(answer, Exception):
            raise answer
        if answer.error_code:
            raise ApiError(ErrorCode(answer.error_code), f"broker {node_id} could not list them")
        if answer.unknown_state_filters:
            unknown = ", ".join(answer.unknown_state_filters)
            raise ApiError(ErrorCode.INVALID_REQUEST, f"there is no state {unknown}")
        found += [
            TransactionListing(
                one.transactional_id, node_id, one.producer_id, one.transaction_state
            )
            for one in answer.transaction_states
        ]
    return found


async def describe_transactions(client: Client, ids: Iterable[str]) -> list[Transaction | None]:
    """Each transactional id's transaction, in order; None for one that nobody knows."""
    wanted = list(ids)
    by_node = await coordinators_of(client, wanted, TRANSACTION)
    answers = await asyncio.gather(*(_describe(client, *item) for item in by_node.items()))
    found = {one.transactional_id: one for answer in answers for one in answer}
    return [found.get(transactional_id) for transactional_id in wanted]


async def _describe(client: Client, node_id: int, ids: list[str]) -> list[Transaction]:
    answer = await client.send_to(node_id, DescribeTransactionsRequest(transactional_ids=ids))
    return [
        _transaction(node_id, state)
        for state in answer.transaction_states
        if state.error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    ]


def _transaction(node_id: int, state: TransactionState) -> Transaction:
    if state.error_code:
        raise ApiError(ErrorCode(state.error_code), f"transactional id {state.transactional_id}")
    started_ms = state.transaction_start_time_ms
    return Transaction(
        transactional_id=state.transactional_id,
        coordinator_id=node_id,
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        state=state.transaction_state,
        timeout_ms=state.transaction_timeout_ms,
        started_ms=started_ms if started_ms >= 0 else None,
        partitions=tuple(
            TopicPartition(topic.topic, number)
            for topic in state.topics
            for number in topic.partitions
        ),
    )


async def describe_producers(
    client: Client, partitions: Iterable[TopicPartition], broker_id: int | None = None
) -> list[ActiveProducer]:
    """Who writes to the partitions, as their leaders see it, or the replica on `broker_id`."""
    wanted = list(partitions)
    by_node = {broker_id: wanted} if broker_id is not None else await client.leaders_of(wanted)
    if leaderless := by_node.get(-1):
        raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"{leaderless[0]} has no leader")
    answers = await asyncio.gather(
        *(
            _describe_producers(client, node_id, part)
            for node_id, places in by_node.items()
            for part in _slices(places)
        )
    )
    return [producer for answer in answers for producer in answer]


async def _describe_producers(
    client: Client, node_id: int, partitions: Sequence[TopicPartition]
) -> list[ActiveProducer]:
    by_topic: dict[str, list[int]] = defaultdict(list)
    for place in partitions:
        by_topic[place.topic].append(place.partition)
    topics = [TopicRequest(name=name, partition_indexes=found) for name, found in by_topic.items()]
    answer = await client.send_to(node_id, DescribeProducersRequest(topics=topics))
    return [
        producer
        for topic in answer.topics
        for partition in topic.partitions
        for producer in _active(TopicPartition(topic.name, partition.partition_index), partition)
    ]


def _active(place: TopicPartition, found: PartitionResponse) -> list[ActiveProducer]:
    if found.error_code:
        raise ApiError(ErrorCode(found.error_code), found.error_message or str(place))
    return [_producer(place, state) for state in found.active_producers]


def _producer(place: TopicPartition, state: ProducerState) -> ActiveProducer:
    start = state.current_txn_start_offset
    return ActiveProducer(
        partition=place,
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        coordinator_epoch=state.coordinator_epoch,
        last_sequence=state.last_sequence,
        last_timestamp_ms=state.last_timestamp,
        start_offset=start if start >= 0 else None,
    )


async def abort_transaction(client: Client, marker: Marker) -> ErrorCode:
    """Have the partition's leader write the ABORT marker that the coordinator never sent."""
    place = marker.partition
    wanted = WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        coordinator_epoch=marker.coordinator_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=place.topic, partition_indexes=[place.partition])],
    )
    answer = await client.send_to_leader(place, WriteTxnMarkersRequest(markers=[wanted]))
    return ErrorCode(answer.markers[0].topics[0].partitions[0].error_code)


def _slices(partitions: Sequence[TopicPartition]) -> Iterator[Sequence[TopicPartition]]:
    for start in range(0, len(partitions), PARTITIONS_AT_ONCE):
        yield partitions[start : start + PARTITIONS_AT_ONCE]
