"""The group coordinator: members and generations, committed offsets, and the log both live in.

`group.py` is a state machine without I/O: requests and the passing of time go in, replies and
things to be stored come out. `coordinator.py` is its asyncio shell: it owns the timers and appends
to `__consumer_offsets` through the interface in `storage.py`. What the log says and how, is in
`records.py`; `replay.py` turns a log back into groups.

May use: replica and below; in fact it only needs records, protocol, model, errors and clock.
"""
