"""Bulk export with Spark: plan → tasks (Arrow, without Spark) → one commit.

    driver        one export from start to end: plan, run, publish, summary
    verify        checks exports, with `manifest_checks`; `reading_back` reads their files
    listing       lists exports
    compaction    makes one export of many
    data_source   `spark.read.format("kctl")`
    summary       the result of an export for people and programs
    execution     runs tasks on Spark, or in processes of this machine; `task` is what a worker runs
    publishing    the export directory, staging, manifest, commit by one rename
    engine        Spark sessions and jobs, Hadoop file systems
    writing       Arrow tables → files
    reading       records of log directories and clusters
    planning      offset ranges, pieces, tasks, settings; no I/O
    decoding      record batches and JSON → Arrow

Packages import downwards only. By default tasks write their files themselves. On other file systems
(hdfs://, s3a://) and for Avro, Spark writes the files (`execution/spark_writer`).
"""
