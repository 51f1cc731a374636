"""Bulk export on Spark: plan (pure) → tasks (Arrow, no Spark) → one commit.

`plan` splits pinned offset ranges into tasks, `log_source` and `wire_source` are where they come
from and how a task reads them, `columns` makes Arrow of batches, `writers` files of Arrow,
`target` is the directory and its commit. Only `session` and `export` know Spark, and `task` is
all that a Spark worker runs.
"""
