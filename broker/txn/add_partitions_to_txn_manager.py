"""Verifies that a partition is part of the producer's ongoing transaction (KIP-890).

Called before the first batch of a transaction is appended to a partition. Without it, a batch that
arrives after its transaction has ended would start a new one that no coordinator would ever end.

The coordinator's errors are translated into codes that old clients handle correctly.
"""

from collections.abc import Callable, Collection, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Final

from broker.errors import ApiError, ErrorCode
from broker.model import ProducerIdAndEpoch, TopicPartition
from broker.net.broker_connection import Node
from broker.net.peers import Peers
from broker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from broker.topic_names import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from broker.txn.coordinator import TransactionCoordinator

_TRANSIENT: Final = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


def verify(
    coordinator: TransactionCoordinator,
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    partitions: Collection[TopicPartition],
    *,
    knows_abortable: bool,
) -> dict[TopicPartition, ErrorCode]:
    """The errors of partitions that are not part of the producer's ongoing transaction.

    `knows_abortable`: the client knows TRANSACTION_ABORTABLE (Produce v11, TxnOffsetCommit v4);
    older versions get INVALID_TXN_STATE.
    """
    try:
        codes = coordinator.verify_partitions(transactional_id, producer, partitions)
    except ApiError as error:
        codes = dict.fromkeys(partitions, error.code)
    return _errors(codes, knows_abortable)


def _errors(
    codes: Mapping[TopicPartition, ErrorCode], knows_abortable: bool
) -> dict[TopicPartition, ErrorCode]:
    return {
        partition: _for_client(code, knows_abortable)
        for partition, code in codes.items()
        if code != ErrorCode.NONE
    }


def _for_client(code: ErrorCode, knows_abortable: bool) -> ErrorCode:
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return code


class AddPartitionsToTxnManager:
    """Sends verification requests to the coordinator, on this broker or on another one.

    Field `coordinator`: this broker's own; set before the first request.
    """

    coordinator: TransactionCoordinator

    def __init__(
        self,
        broker_id: int,
        find_leader: Callable[[TopicPartition], Node | None],
        peers: Peers,
    ) -> None:
        self._broker_id = broker_id
        self._find_leader = find_leader
        self._peers = peers

    def is_elsewhere(self, transactional_id: str) -> bool:
        """Whether another broker coordinates the id; False also if no coordinator is known."""
        return self._other_coordinator(transactional_id) is not None

    def _other_coordinator(self, transactional_id: str) -> Node | None:
        partition = self.coordinator.partition_for(transactional_id)
        leader = self._find_leader(TopicPartition(TRANSACTION_STATE_TOPIC, partition))
        return None if leader is None or leader.node_id == self._broker_id else leader

    async def verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        *,
        knows_abortable: bool,
    ) -> dict[TopicPartition, ErrorCode]:
        """See the function `verify`; asks another broker if that is the coordinator."""
        other = self._other_coordinator(transactional_id)
        if other is None:
            return verify(
                self.coordinator,
                transactional_id,
                producer,
                partitions,
                knows_abortable=knows_abortable,
            )
        codes = await self._ask(other, transactional_id, producer, partitions)
        return _errors(codes, knows_abortable)

    async def _ask(
        self,
        coordinator: Node,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
    ) -> Mapping[TopicPartition, ErrorCode]:
        request = _request(transactional_id, producer, partitions)
        try:
            response = await self._peers.send(coordinator, request)
        except OSError:
            return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
        if response.error_code:
            return dict.fromkeys(partitions, ErrorCode(response.error_code))
        found = {
            TopicPartition(topic.name, result.partition_index): ErrorCode(
                result.partition_error_code
            )
            for transaction in response.results_by_transaction
            for topic in transaction.topic_results
            for result in topic.results_by_partition
        }
        missing = dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
        return {**missing, **found}

    async def verify_offset_commit(
        self, partition: int, transactional_id: str, producer_id: int, producer_epoch: int
    ) -> None:
        """ApiError unless a partition of the offsets topic is part of the producer's transaction.

        The API translates TRANSACTION_ABORTABLE for older clients: only it knows the version.
        """
        name = TopicPartition(OFFSETS_TOPIC, partition)
        producer = ProducerIdAndEpoch(producer_id, producer_epoch)
        errors = await self.verify(transactional_id, producer, [name], knows_abortable=True)
        if errors:
            raise ApiError(errors[name], f"{name} was not added to the transaction")


def _request(
    transactional_id: str, producer: ProducerIdAndEpoch, partitions: Collection[TopicPartition]
) -> AddPartitionsToTxnRequest:
    by_topic = groupby(sorted(partitions), attrgetter("topic"))
    return AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=transactional_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                verify_only=True,
                topics=[
                    AddPartitionsToTxnTopic(
                        name=topic, partitions=[name.partition for name in names]
                    )
                    for topic, names in by_topic
                ],
            )
        ]
    )


def produce_error(code: ErrorCode) -> ApiError:
    """The error that Produce answers for a partition that could not be verified.

    Old producers do not retry a coordinator's errors, but they do retry NOT_ENOUGH_REPLICAS, and
    without refreshing their metadata first.
    """
    if code in _TRANSIENT:
        return ApiError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {code.name}",
        )
    if code == ErrorCode.INVALID_TXN_STATE:
        return ApiError(code, "Partition was not added to the transaction")
    return ApiError(code)
