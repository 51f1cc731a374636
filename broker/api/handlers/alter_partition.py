"""Handle AlterPartition (KIP-497): a leader changes its ISR; controller only.

NOT_CONTROLLER and STALE_BROKER_EPOCH are errors of the whole request.

Versions:
    v1 recovery state (KIP-704)
    v2 topic ids (KIP-841)
    v3 broker epochs in the ISR (KIP-903)

Deliberately missing: nothing.
"""

from broker.api.authorization import authorize_cluster
from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from broker.security.acls import AclOperation


async def handle(request: AlterPartitionRequest, context: RequestContext) -> AlterPartitionResponse:
    """Pass the requested ISR of each partition to the controller, which accepts or rejects it."""
    authorize_cluster(context, AclOperation.CLUSTER_ACTION)
    return await context.services.controller.alter_partition(request)


def error_response(_: AlterPartitionRequest, code: ErrorCode) -> AlterPartitionResponse:
    """The error of the request."""
    return AlterPartitionResponse(error_code=code)
