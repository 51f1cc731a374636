"""Answers AddOffsetsToTxn (KIP-98): the offsets of a group become part of a transaction.

They are kept in a partition of the offsets topic; so it is that partition which joins the
transaction, and gets its marker at the end.

Versions:
    v2 PRODUCER_FENCED, before INVALID_PRODUCER_EPOCH (KIP-588)
"""

from broker.api.context import RequestContext
from broker.api.producer_errors import fencing_error
from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition
from broker.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from broker.topic_names import OFFSETS_TOPIC
from broker.txn.transaction import ProducerIdAndEpoch

_KNOWS_FENCED = 2


async def handle(
    request: AddOffsetsToTxnRequest, context: RequestContext
) -> AddOffsetsToTxnResponse:
    """Whether the group's partition is part of the transaction now."""
    services = context.services
    partition = TopicPartition(OFFSETS_TOPIC, services.groups.partition_for(request.group_id))
    try:
        await services.transactions.add_partitions(
            request.transactional_id,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
            [partition],
        )
    except ApiError as error:
        code = fencing_error(error.code, context.api_version, since=_KNOWS_FENCED)
        return error_response(request, code)
    return AddOffsetsToTxnResponse()


def error_response(request: AddOffsetsToTxnRequest, code: ErrorCode) -> AddOffsetsToTxnResponse:
    """The error."""
    return AddOffsetsToTxnResponse(error_code=code)
