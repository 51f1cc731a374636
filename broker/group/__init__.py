"""The group coordinator: members and generations, committed offsets, and the log both live in.

    states, member, membership, group, joining   one group, without I/O: requests and time go in,
                                                  replies and things to be stored come out
    offsets, retention                            its offsets: committed, under way, too old
    records, replay                               what the log says; a log turned back into groups
    registry, coordinator, offset_manager         the asyncio shell: groups found, timers, appends
    storage, offset_nodes                         what it needs of the rest; offsets in znodes

May use: metadata, records and what lies below. The log is reached through `storage` alone.
"""
