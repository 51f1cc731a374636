"""The transaction coordinator: producer ids, transactions and their log.

    coordinator                         what the API handlers call
    transaction, states                 state machine of one transactional id, without I/O: requests
                                        yield the metadata to store, or an ApiError
    transaction_state_manager           the loaded partitions of `__transaction_state`
    records                             the record format of that topic
    completion                          writes the markers of a transaction, then stores its end
    transaction_marker_channel_manager  sends markers to the leaders of the partitions
    local_markers                       appends markers to partitions that this broker leads
    add_partitions_to_txn_manager       verifies, before an append, that a partition is part of the
                                        producer's transaction (KIP-890)
    producer_ids                        blocks of producer ids
    storage                             interfaces to the rest of the broker

Does not import `group`: the two coordinators call each other through callbacks.
"""
