"""Handle AllocateProducerIds (KIP-730): give a block of producer ids to a broker; controller only.

Deliberately missing: nothing.
"""

from broker.api.authorization import authorize_cluster
from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from broker.security.acls import AclOperation


async def handle(
    request: AllocateProducerIdsRequest, context: RequestContext
) -> AllocateProducerIdsResponse:
    """Allocate a block of ids that no other broker gets."""
    authorize_cluster(context, AclOperation.CLUSTER_ACTION)
    return await context.services.controller.allocate_producer_ids(request)


def error_response(_: AllocateProducerIdsRequest, code: ErrorCode) -> AllocateProducerIdsResponse:
    """The error of the request."""
    return AllocateProducerIdsResponse(error_code=code)
