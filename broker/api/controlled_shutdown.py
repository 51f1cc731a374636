"""Answers ControlledShutdown, which brokers ask before they stop; only the controller does."""

from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)


async def handle(
    request: ControlledShutdownRequest, context: RequestContext
) -> ControlledShutdownResponse:
    """The partitions that the broker still leads."""
    return await context.services.controller.controlled_shutdown(request)


def error_response(_: ControlledShutdownRequest, code: ErrorCode) -> ControlledShutdownResponse:
    """The error of the request."""
    return ControlledShutdownResponse(error_code=code)
