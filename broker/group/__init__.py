"""The group coordinator: members and generations, committed offsets, and their log.

    states, member, membership, group, joining   one group, without I/O: requests and time go in,
                                                 replies and records to store come out
    offsets, retention                           the offsets of a group: committed, pending, expired
    records, replay                              the record format of `__consumer_offsets`, and how
                                                 its records are turned back into groups
    registry, coordinator, offset_manager        the asyncio shell: lookup, timers, appends
    offset_nodes                                 offsets in znodes, for OffsetCommit v0

The log is accessed only through `replica.coordinator_topic`.
"""
