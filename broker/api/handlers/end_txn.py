"""Handle EndTxn (KIP-98): commit or abort a transaction.

The response is sent when the decision is stored; the markers are written after it. Until they are
written, the next request of the transactional id gets CONCURRENT_TRANSACTIONS.

Versions:
    v1 clients wait out a throttle time themselves, after the response (KIP-219)
    v2 PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH (KIP-588)
    v3 flexible
    v4 TRANSACTION_ABORTABLE (KIP-890)

Deliberately missing: v5, which bumps the epoch with every transaction; Kafka 4 introduced it.
"""

from broker.api.authorization import authorize_transactional_id
from broker.api.context import RequestContext
from broker.api.producer_errors import fencing_error
from broker.errors import ApiError, ErrorCode
from broker.model import ProducerIdAndEpoch
from broker.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from broker.security.acls import AclOperation

_KNOWS_FENCED = 2


async def handle(request: EndTxnRequest, context: RequestContext) -> EndTxnResponse:
    """Commit or abort."""
    authorize_transactional_id(context, AclOperation.WRITE, request.transactional_id)
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
    """The error of the request."""
    return EndTxnResponse(error_code=code)
