"""Handle UpdateMetadata: the controller sends this broker the state of the cluster.

Versions:
    v1 many endpoints per broker (KIP-103)
    v2 racks
    v3 listener names
    v4 offline replicas (KIP-112)
    v5 grouped by topic, broker epoch (KIP-380)
    v6 flexible
    v7 topic ids (KIP-516)
    v8 requests of a KRaft controller (KIP-866)

Deliberately missing: migration to KRaft.
"""

from collections.abc import Awaitable

from broker.api.authorization import authorize_cluster
from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from broker.security.acls import AclOperation


def handle(
    request: UpdateMetadataRequest, context: RequestContext
) -> Awaitable[UpdateMetadataResponse]:
    """Apply the update; an outdated one is an error."""
    authorize_cluster(context, AclOperation.CLUSTER_ACTION)
    return context.services.controller_requests.update_metadata(request)


def error_response(request: UpdateMetadataRequest, code: ErrorCode) -> UpdateMetadataResponse:
    """Only the error."""
    return UpdateMetadataResponse(error_code=code)
