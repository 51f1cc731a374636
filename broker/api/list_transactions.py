"""Answers ListTransactions (KIP-664): the transactional ids this broker coordinates.

Versions:
    v1 only those that began longer ago than a duration (KIP-994)
"""

from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from broker.txn.coordinator import TransactionFilter
from broker.txn.states import BY_KAFKA_NAME


def handle(request: ListTransactionsRequest, context: RequestContext) -> ListTransactionsResponse:
    """Those that pass the filters; states nobody has heard of are named, and match nothing."""
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
        ],
    )


def error_response(request: ListTransactionsRequest, code: ErrorCode) -> ListTransactionsResponse:
    """Nothing but the error."""
    return ListTransactionsResponse(error_code=code)
