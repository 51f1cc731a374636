"""Handle AddOffsetsToTxn (KIP-98): add a group's offsets to a transaction.

The offsets are stored in a partition of `__consumer_offsets`. It is that partition which is added
to the transaction, and which gets a marker when the transaction ends.

Versions:
    v1 clients wait out a throttle time themselves, after the response (KIP-219)
    v2 PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH (KIP-588)
    v3 flexible
    v4 TRANSACTION_ABORTABLE (KIP-890)

Deliberately missing: nothing.
"""

from broker.api.authorization import authorize_group, authorize_transactional_id
from broker.api.context import RequestContext
from broker.api.producer_errors import fencing_error
from broker.errors import ApiError, ErrorCode
from broker.model import ProducerIdAndEpoch, TopicPartition
from broker.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from broker.security.acls import AclOperation
from broker.topic_names import OFFSETS_TOPIC

_KNOWS_FENCED = 2


async def handle(
    request: AddOffsetsToTxnRequest, context: RequestContext
) -> AddOffsetsToTxnResponse:
    """Add the group's partition of `__consumer_offsets`."""
    authorize_transactional_id(context, AclOperation.WRITE, request.transactional_id)
    authorize_group(context, AclOperation.READ, request.group_id)
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
    """The error of the request."""
    return AddOffsetsToTxnResponse(error_code=code)
