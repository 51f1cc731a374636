"""Answers AllocateProducerIds (KIP-730), which brokers ask; only the controller does."""

from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)


async def handle(
    request: AllocateProducerIdsRequest, context: RequestContext
) -> AllocateProducerIdsResponse:
    """A block of ids that no other broker has."""
    return await context.services.controller.allocate_producer_ids(request)


def error_response(_: AllocateProducerIdsRequest, code: ErrorCode) -> AllocateProducerIdsResponse:
    """The error of the request."""
    return AllocateProducerIdsResponse(error_code=code)
