"""Answers AlterPartition (KIP-497), which leaders ask; only the controller does.

A broker that is not the controller, or that the request's sender has outlived, says so for the
request as a whole.
"""

from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
)


async def handle(request: AlterPartitionRequest, context: RequestContext) -> AlterPartitionResponse:
    """What the controller decided of each partition."""
    return await context.services.controller.alter_partition(request)


def error_response(_: AlterPartitionRequest, code: ErrorCode) -> AlterPartitionResponse:
    """The error of the request."""
    return AlterPartitionResponse(error_code=code)
