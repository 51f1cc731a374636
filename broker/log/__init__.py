"""Partitions on disk: segments, indexes, producer state, checkpoints, recovery, compaction.

Synchronous code without network access.

    manager.LogManager           all logs of a broker, in several log directories
     ├─ log_dir.LogDir           one directory: lock, meta.properties, checkpoints, clean marker
     ├─ dir_checkpoints          writes the checkpoints of all directories
     ├─ log_cleaner.LogCleaner   which log is compacted next → cleaner, record_filter, offset_map
     └─ partition_log.PartitionLog   what the broker appends to and reads from
         ├─ fast_append          the fast path of an append
         ├─ append, validator, writer   the full path: check, validate, assign offsets, write
         ├─ header_check         the rules for a client's batch header, for both paths
         ├─ local_log.LocalLog   the files → segments, segment, file_records, segment_indexes
         ├─ producer_state.ProducerState   → producer_entry, producer_snapshot, markers
         └─ leader_epochs.LeaderEpochs
    maintenance.LogMaintenance   periodic work: retention, flushes, cleaning, checkpoints
    recovery.load_log            loads a PartitionLog from a directory
    retention, truncation        remove records from the front; from the end
    offset_lookup                finds an offset by timestamp
    layout, checkpoints          the definition of every file format
    files, descriptors           access to the file system
"""
