"""Answers UpdateMetadata: the controller tells this broker what the cluster looks like."""

from collections.abc import Awaitable

from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse


def handle(
    request: UpdateMetadataRequest, context: RequestContext
) -> Awaitable[UpdateMetadataResponse]:
    """Taken up as a whole, unless it comes too late."""
    return context.services.controller_requests.update_metadata(request)


def error_response(request: UpdateMetadataRequest, code: ErrorCode) -> UpdateMetadataResponse:
    """Nothing but the error."""
    return UpdateMetadataResponse(error_code=code)
