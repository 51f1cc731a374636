"""Handle ListTransactions (KIP-664): the transactional ids that this broker coordinates.

Versions:
    v1 only transactions older than a duration (KIP-994)

Deliberately missing: nothing.
"""

from broker.api.authorization import is_authorized
from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from broker.security.acls import AclOperation, ResourceType
from broker.txn.coordinator import TransactionFilter
from broker.txn.states import BY_KAFKA_NAME


def handle(request: ListTransactionsRequest, context: RequestContext) -> ListTransactionsResponse:
    """List the transactions that pass the filters; unknown states are returned as such."""
    wanted = TransactionFilter(
        frozenset(request.state_filters),
        frozenset(request.producer_id_filters),
        request.duration_filter,
    )
    return ListTransactionsResponse(
        unknown_state_filters=[
            name for name in dict.fromkeys(request.state_filters) if name not in BY_KAFKA_NAME
        ],
        transaction_states=[
            TransactionState(
                transactional_id=found.transactional_id,
                producer_id=found.producer_id,
                transaction_state=found.state.kafka_name,
            )
            for found in context.services.transactions.list_transactions(wanted)
            if is_authorized(
                context,
                AclOperation.DESCRIBE,
                ResourceType.TRANSACTIONAL_ID,
                found.transactional_id,
            )
        ],
    )


def error_response(request: ListTransactionsRequest, code: ErrorCode) -> ListTransactionsResponse:
    """Only the error."""
    return ListTransactionsResponse(error_code=code)
