"""Handle InitProducerId (KIP-98): allocate a producer id, and an epoch that fences older producers.

Any broker answers an idempotent producer; a transactional one must ask its coordinator.

Versions:
    v1 clients wait out a throttle time themselves, after the response (KIP-219)
    v2 flexible
    v3 a producer can have its own epoch bumped (KIP-360)
    v4 PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH (KIP-588)
    v5 TRANSACTION_ABORTABLE (KIP-890)

Deliberately missing: nothing.
"""

from broker.api.authorization import (
    authorize_transactional_id,
    is_authorized_on_cluster,
    may_on_any,
)
from broker.api.context import RequestContext
from broker.api.producer_errors import fencing_error
from broker.errors import ApiError, ErrorCode
from broker.model import ProducerIdAndEpoch
from broker.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from broker.records.layout import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from broker.security.acls import AclOperation, ResourceType

_KNOWS_FENCED = 4


async def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    """Allocate an id and an epoch, or bump the epoch."""
    _authorize(request.transactional_id, context)
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


def _authorize(transactional_id: str | None, context: RequestContext) -> None:
    """Any client that may write to some topic may be idempotent (KIP-679)."""
    if transactional_id is not None:
        authorize_transactional_id(context, AclOperation.WRITE, transactional_id)
    elif not is_authorized_on_cluster(
        context, AclOperation.IDEMPOTENT_WRITE, quiet=True
    ) and not may_on_any(context, AclOperation.WRITE, ResourceType.TOPIC):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def _expected(request: InitProducerIdRequest) -> ProducerIdAndEpoch | None:
    """The id and epoch that the producer has; INVALID_REQUEST if only one of them is given."""
    has_id = request.producer_id != NO_PRODUCER_ID
    if has_id != (request.producer_epoch != NO_PRODUCER_EPOCH):
        raise ApiError(ErrorCode.INVALID_REQUEST, "a producer id and an epoch belong together")
    if not has_id:
        return None
    return ProducerIdAndEpoch(request.producer_id, request.producer_epoch)


def error_response(request: InitProducerIdRequest, code: ErrorCode) -> InitProducerIdResponse:
    """The error, without a producer id."""
    return InitProducerIdResponse(
        error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )
