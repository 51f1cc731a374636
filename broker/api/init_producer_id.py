"""Answers InitProducerId (KIP-98): a producer id, and an epoch that fences all producers before.

Any broker answers a producer that is only idempotent; a transactional one asks its coordinator.

Versions:
    v3 a producer may have the epoch bumped that it has (KIP-360)
    v4 PRODUCER_FENCED, before INVALID_PRODUCER_EPOCH (KIP-588)
"""

from broker.api.context import RequestContext
from broker.api.producer_errors import fencing_error
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from broker.records.layout import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from broker.txn.transaction import ProducerIdAndEpoch

_KNOWS_FENCED = 4


async def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    """The id and epoch, or why there is none."""
    try:
        producer = await context.services.transactions.init_producer_id(
            request.transactional_id, request.transaction_timeout_ms, _expected(request)
        )
    except ApiError as error:
        code = fencing_error(error.code, context.api_version, since=_KNOWS_FENCED)
        return error_response(request, code)
    return InitProducerIdResponse(
        producer_id=producer.producer_id, producer_epoch=producer.producer_epoch
    )


def _expected(request: InitProducerIdRequest) -> ProducerIdAndEpoch | None:
    """Who the producer thinks it is; both fields are given, or none."""
    has_id = request.producer_id != NO_PRODUCER_ID
    if has_id != (request.producer_epoch != NO_PRODUCER_EPOCH):
        raise ApiError(ErrorCode.INVALID_REQUEST, "a producer id and an epoch belong together")
    if not has_id:
        return None
    return ProducerIdAndEpoch(request.producer_id, request.producer_epoch)


def error_response(request: InitProducerIdRequest, code: ErrorCode) -> InitProducerIdResponse:
    """The error, and no producer."""
    return InitProducerIdResponse(
        error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )
