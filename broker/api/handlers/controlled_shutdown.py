"""Handle ControlledShutdown: move leadership away from a broker that stops; controller only.

Versions:
    v1 the usual request header, with a client id
    v2 broker epoch (KIP-380)
    v3 flexible

Deliberately missing: nothing.
"""

from broker.api.authorization import authorize_cluster
from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from broker.security.acls import AclOperation


async def handle(
    request: ControlledShutdownRequest, context: RequestContext
) -> ControlledShutdownResponse:
    """Move leadership away; the response lists partitions that the broker still leads."""
    authorize_cluster(context, AclOperation.CLUSTER_ACTION)
    return await context.services.controller.controlled_shutdown(request)


def error_response(_: ControlledShutdownRequest, code: ErrorCode) -> ControlledShutdownResponse:
    """The error of the request."""
    return ControlledShutdownResponse(error_code=code)
