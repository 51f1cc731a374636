"""⑤ One partition on disk: segments, indexes, producer state, checkpoints, recovery, compaction.

Synchronous; knows no network. May use records, protocol, config, model, errors, clock.
"""
