"""Handle ConsumerGroupDescribe (KIP-848): UNSUPPORTED_VERSION, as Kafka answers in ZooKeeper mode.

Clients fall back to DescribeGroups.

Deliberately missing: groups of the new protocol, which need KRaft.
"""

from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


def handle(
    request: ConsumerGroupDescribeRequest, context: RequestContext
) -> ConsumerGroupDescribeResponse:
    """UNSUPPORTED_VERSION for every group."""
    return error_response(request, ErrorCode.UNSUPPORTED_VERSION)


def error_response(
    request: ConsumerGroupDescribeRequest, code: ErrorCode
) -> ConsumerGroupDescribeResponse:
    """The error on every group."""
    return ConsumerGroupDescribeResponse(
        groups=[
            DescribedGroup(group_id=group_id, error_code=code) for group_id in request.group_ids
        ]
    )
