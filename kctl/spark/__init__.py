"""Bulk export on Spark: plan (pure) → tasks (Arrow, no Spark) → one commit.

`plan` splits pinned offset ranges into tasks, `log_source` and `wire_source` are where they come
from and how a task reads them, `columns` makes Arrow of batches, `writers` files of Arrow,
`target` is the directory and its commit. `task` is all that a Spark worker runs.

Where tasks cannot write themselves (other file systems, Avro), `spark_writer` lets Spark write
what they read, and `spark_target` is the directory, through Hadoop's FileSystem (`hadoop`). Only
these, `session`, `jobs` and `export` know Spark.
"""
