"""Answers EndTxn (KIP-98): commit or abort.

The answer comes when the end is stored; the markers are written after it. Until they are, the
next request of the transaction is told CONCURRENT_TRANSACTIONS.

Versions:
    v2 PRODUCER_FENCED, before INVALID_PRODUCER_EPOCH (KIP-588)
    v5 would bump the epoch with every transaction; only KRaft clusters of Kafka 4 have it
"""

from broker.api.context import RequestContext
from broker.api.producer_errors import fencing_error
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from broker.txn.transaction import ProducerIdAndEpoch

_KNOWS_FENCED = 2


async def handle(request: EndTxnRequest, context: RequestContext) -> EndTxnResponse:
    """Whether the transaction ends as it was asked to."""
    try:
        await context.services.transactions.end_transaction(
            request.transactional_id,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
            commit=request.committed,
        )
    except ApiError as error:
        code = fencing_error(error.code, context.api_version, since=_KNOWS_FENCED)
        return error_response(request, code)
    return EndTxnResponse()


def error_response(request: EndTxnRequest, code: ErrorCode) -> EndTxnResponse:
    """The error."""
    return EndTxnResponse(error_code=code)
