"""Handle WriteTxnMarkers (KIP-98): a coordinator ends transactions in partitions led here.

`kafka-transactions.sh abort` sends it too, to end a hanging transaction.

Versions:
    v1 flexible

Deliberately missing: nothing.
"""

import asyncio
from collections.abc import Iterable, Mapping

from broker.api.authorization import authorize_cluster, is_authorized_on_cluster
from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from broker.security.acls import AclOperation
from broker.txn.storage import TxnMarker


async def handle(
    request: WriteTxnMarkersRequest, context: RequestContext
) -> WriteTxnMarkersResponse:
    """Append all markers in order, then wait for replicas once."""
    if not is_authorized_on_cluster(context, AclOperation.ALTER, quiet=True):
        authorize_cluster(context, AclOperation.CLUSTER_ACTION)
    written = await asyncio.gather(*(_write(marker, context) for marker in request.markers))
    return WriteTxnMarkersResponse(markers=list(map(_result, request.markers, written)))


async def _write(
    asked: WritableTxnMarker, context: RequestContext
) -> Mapping[TopicPartition, ErrorCode]:
    names = list(_names(asked))
    if asked.producer_id < 0 or asked.producer_epoch < 0:  # Kafka cannot build such a marker
        return dict.fromkeys(names, ErrorCode.UNKNOWN_SERVER_ERROR)
    marker = TxnMarker(
        asked.producer_id, asked.producer_epoch, asked.coordinator_epoch, asked.transaction_result
    )
    return await context.services.markers.write_markers(marker, names)


def _names(marker: WritableTxnMarker) -> Iterable[TopicPartition]:
    for topic in marker.topics:
        for index in topic.partition_indexes:
            yield TopicPartition(topic.name, index)


def _result(
    marker: WritableTxnMarker, errors: Mapping[TopicPartition, ErrorCode]
) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=index,
                        error_code=errors[TopicPartition(topic.name, index)],
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )


def error_response(request: WriteTxnMarkersRequest, code: ErrorCode) -> WriteTxnMarkersResponse:
    """The error on every partition of every marker."""
    return WriteTxnMarkersResponse(
        markers=[_result(marker, dict.fromkeys(_names(marker), code)) for marker in request.markers]
    )
