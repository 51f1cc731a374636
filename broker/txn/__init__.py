"""The transaction coordinator: producer ids, transactions, and the log they are kept in.

`transaction.py` is a state machine without I/O, one per transactional id: requests go in, the state
to be stored or an ApiError comes out. `transaction_log.py` stores it in `__transaction_state` (what
the records say is in `records.py`) and knows which partitions this broker coordinates.
`completion.py` has the markers written that end a transaction. `coordinator.py` is what the APIs
call. The rest of the broker is asked through the interfaces in `storage.py`.

May use replica, metadata and what lies below; never the group coordinator, its neighbour.
"""
