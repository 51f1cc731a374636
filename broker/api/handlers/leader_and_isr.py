"""Handle LeaderAndIsr: the controller makes this broker leader or follower of partitions.

Versions:
    v1 whether a partition is new
    v2 grouped by topic, broker epoch (KIP-380)
    v3 adding and removing replicas (KIP-455)
    v4 flexible
    v5 topic ids; full or incremental requests (KIP-516)
    v6 recovery state (KIP-704)
    v7 requests of a KRaft controller (KIP-866)

Deliberately missing: migration to KRaft.
"""

from collections.abc import Awaitable
from typing import Final

from broker.api.authorization import authorize_cluster
from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from broker.replica.controller_requests import refused_leader_and_isr
from broker.security.acls import AclOperation

_TOPIC_IDS: Final = 5
"""The first version whose response is grouped by topic."""


def handle(
    request: LeaderAndIsrRequest, context: RequestContext
) -> Awaitable[LeaderAndIsrResponse]:
    """Apply each partition state; an outdated request is an error of its own."""
    authorize_cluster(context, AclOperation.CLUSTER_ACTION)
    return _handle(request, context)


async def _handle(request: LeaderAndIsrRequest, context: RequestContext) -> LeaderAndIsrResponse:
    response = await context.services.controller_requests.leader_and_isr(request)
    return response if context.api_version >= _TOPIC_IDS else _ungrouped(response)


def _ungrouped(response: LeaderAndIsrResponse) -> LeaderAndIsrResponse:
    """Both forms of the response; versions up to 4 have the ungrouped one."""
    errors = [error for topic in response.topics for error in topic.partition_errors]
    return LeaderAndIsrResponse(
        error_code=response.error_code, partition_errors=errors, topics=response.topics
    )


def error_response(request: LeaderAndIsrRequest, code: ErrorCode) -> LeaderAndIsrResponse:
    """The error of the request, and on every partition."""
    return _ungrouped(refused_leader_and_isr(request, code))
