"""⑤ One partition on disk: segments, indexes, producer state, checkpoints, recovery, compaction.

Synchronous; knows no network. May use records, protocol, config, model, errors, clock.

    manager.LogManager           all logs of a broker, in several log directories
     ├─ log_dir.LogDir           one directory: lock, meta.properties, checkpoints, clean marker
     ├─ log_cleaner.LogCleaner   which log is compacted next → cleaner, record_filter, offset_map
     └─ partition_log.PartitionLog   what the broker appends to and reads from
         ├─ append               checks and stamps of what is appended
         ├─ local_log.LocalLog   the files → segments, segment, file_records, the three indexes
         ├─ producer_state.ProducerState   → producer_entry, producer_snapshot, markers
         └─ leader_epochs.LeaderEpochs
    recovery.load_log            from a directory to a PartitionLog
    retention, offset_lookup     what is done with a log: forget by age and size, find by time
    layout, checkpoints          every file format, written once
    files                        the door to the disk
"""
