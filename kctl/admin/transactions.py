"""Transactions of coordinators, and producers of partitions (KIP-664)."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

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
from kctl.admin.broker_queries import change, each_broker, every_broker
from kctl.admin.coordinators import coordinators_of
from kctl.model.transactions import (
    ALL_TRANSACTIONS,
    ActiveProducer,
    Marker,
    Transaction,
    TransactionFilter,
    TransactionListing,
)

PARTITIONS_AT_ONCE = 500
"""Partitions per DescribeProducers request: brokers may lead many thousands."""
_CHANGING_LEADERS = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE)
_LEADER_ATTEMPTS = 5
_LEADER_PAUSE_S = 0.2


async def list_transactions(
    client: Client, wanted: TransactionFilter = ALL_TRANSACTIONS
) -> list[TransactionListing]:
    """The transactions of all coordinators; ApiError for an unknown state."""
    request = ListTransactionsRequest(
        state_filters=list(wanted.states),
        producer_id_filters=list(wanted.producer_ids),
        duration_filter=wanted.longer_than_ms,
    )
    found = []
    answers = await every_broker(client, lambda node_id: client.send_to(node_id, request))
    for node_id, answer in answers.items():
        if answer.error_code:
            raise ApiError(
                ErrorCode(answer.error_code), f"broker {node_id} cannot list its transactions"
            )
        if answer.unknown_state_filters:
            unknown = ", ".join(answer.unknown_state_filters)
            raise ApiError(ErrorCode.INVALID_REQUEST, f"unknown state {unknown}")
        found += [
            TransactionListing(
                one.transactional_id, node_id, one.producer_id, one.transaction_state
            )
            for one in answer.transaction_states
        ]
    return found


async def describe_transactions(
    client: Client, ids: Iterable[str]
) -> dict[str, Transaction | None]:
    """The transaction of each transactional id; None if its coordinator does not know the id.

    In a partial query, ids are missing whose coordinator did not answer.
    """
    by_node = await coordinators_of(client, ids, TRANSACTION)
    answers = await each_broker(client, by_node, partial(_describe, client))
    found = {one.transactional_id: one for answer in answers.values() for one in answer}
    return {name: found.get(name) for node_id in answers for name in by_node[node_id]}


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
    """The producers of partitions, as known to their leaders or to the replica on `broker_id`.

    Leaders that have just changed are queried again.
    """
    wanted = list(partitions)
    for _ in range(_LEADER_ATTEMPTS if broker_id is None else 0):
        try:
            return await _producers_once(client, wanted, None)
        except ApiError as error:
            if error.code not in _CHANGING_LEADERS:
                raise
            await asyncio.sleep(_LEADER_PAUSE_S)
            await client.refresh_metadata({place.topic for place in wanted})
    return await _producers_once(client, wanted, broker_id)


async def _producers_once(
    client: Client, wanted: Sequence[TopicPartition], broker_id: int | None
) -> list[ActiveProducer]:
    by_node = {broker_id: wanted} if broker_id is not None else await client.leaders_of(wanted)
    if leaderless := by_node.get(-1):
        raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"{leaderless[0]} has no leader")

    async def describe(node_id: int, places: Sequence[TopicPartition]) -> list[ActiveProducer]:
        answers = [await _describe_producers(client, node_id, part) for part in _slices(places)]
        return [producer for answer in answers for producer in answer]

    answers = await each_broker(client, by_node, describe)
    return [producer for answer in answers.values() for producer in answer]


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
    """Make the partition's leader write the abort marker that the coordinator never sent."""
    place = marker.partition
    wanted = WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        coordinator_epoch=marker.coordinator_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=place.topic, partition_indexes=[place.partition])],
    )
    request = WriteTxnMarkersRequest(markers=[wanted])
    [leader] = await client.leaders_of([place])
    if leader < 0:
        raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"{place} has no leader")
    answer = await change(client, leader, lambda: client.send_to_leader(place, request))
    return ErrorCode(answer.markers[0].topics[0].partitions[0].error_code)


def _slices(partitions: Sequence[TopicPartition]) -> Iterator[Sequence[TopicPartition]]:
    for start in range(0, len(partitions), PARTITIONS_AT_ONCE):
        yield partitions[start : start + PARTITIONS_AT_ONCE]
