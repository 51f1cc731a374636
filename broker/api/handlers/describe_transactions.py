"""Handle DescribeTransactions (KIP-664): describe transactional ids that this broker coordinates.

Deliberately missing: nothing.
"""

from broker.api.authorization import authorize_transactional_id, is_authorized
from broker.api.context import RequestContext
from broker.api.duplicates import remove_duplicates
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from broker.security.acls import AclOperation, ResourceType


def handle(
    request: DescribeTransactionsRequest, context: RequestContext
) -> DescribeTransactionsResponse:
    """Describe one transactional id after the other."""
    remove_duplicates(request)
    return DescribeTransactionsResponse(
        transaction_states=[_describe(name, context) for name in request.transactional_ids]
    )


def _describe(transactional_id: str, context: RequestContext) -> TransactionState:
    try:
        authorize_transactional_id(context, AclOperation.DESCRIBE, transactional_id)
        known = context.services.transactions.describe_transaction(transactional_id)
    except ApiError as error:
        return TransactionState(error_code=error.code, transactional_id=transactional_id)
    topics: dict[str, list[int]] = {}
    for topic, index in known.partitions:
        topics.setdefault(topic, []).append(index)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=known.state.kafka_name,
        transaction_timeout_ms=known.txn_timeout_ms,
        transaction_start_time_ms=known.txn_start_timestamp,
        producer_id=known.producer_id,
        producer_epoch=known.producer_epoch,
        topics=[
            TopicData(topic=topic, partitions=topics[topic])
            for topic in topics
            if is_authorized(context, AclOperation.DESCRIBE, ResourceType.TOPIC, topic)
        ],
    )


def error_response(
    request: DescribeTransactionsRequest, code: ErrorCode
) -> DescribeTransactionsResponse:
    """The error on every transactional id."""
    return DescribeTransactionsResponse(
        transaction_states=[
            TransactionState(error_code=code, transactional_id=name)
            for name in request.transactional_ids
        ]
    )
