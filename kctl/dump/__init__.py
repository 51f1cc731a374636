"""Show, check and repair log files: `kctl dump-log`.

    reading      find and open files, filters, decoders of internal topics
    rows         batches, records and entries as tables, JSON and CSV
    kafka_text   the text of kafka-dump-log
    stats        `--stats`
    checking     `dump-log check` and `dump-log repair`

Files are read with the broker's own readers (`broker.records`, `broker.log`) and opened read-only,
because a broker may be using them.
"""
