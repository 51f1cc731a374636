"""④ Partitions as replicas: role, ISR, high watermark, followers that fetch, and waiting for moves.

    controller_requests   what the controller asks: lead, follow, stop, what the cluster looks like
    manager               all partitions of this broker
    partition, in_sync    one of them as leader and as follower; the arithmetic of it, pure
    isr_changes           what leaders ask of the controller
    delayed               whom to call when a partition moves
    acks, purgatory       those who wait for it: for replicas to follow, for more to fetch
    fetcher…, follower…   what a follower does

May use log, metadata, net, records, protocol and what lies below.
"""
