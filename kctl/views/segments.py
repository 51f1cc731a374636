"""Columns of `kctl dump-log segments` and `locate`."""

from kctl.cli.tables import Column
from kctl.views.styles import size_column

SEGMENT_COLUMNS = [
    Column("topic", priority=1),
    Column("partition", right=True, priority=0),
    Column("base_offset", "BASE", right=True),
    Column("last_offset", "LAST", right=True, priority=1),
    size_column("size_bytes", priority=2),
    size_column("index_bytes", "INDEXES", wide=True),
    Column("first_time", "FIRST", priority=4),
    Column("last_time", "LAST TIME", priority=3),
    Column("active", priority=2),
    Column("deleted_from", "DELETED FROM", priority=1),
    Column("reason", priority=2),
    Column("file", wide=True),
]
STEP_COLUMNS = [
    Column("step"),
    Column("file", priority=1),
    Column("offset", right=True),
    Column("position", right=True),
    Column("size", right=True, priority=3),
    Column("detail", priority=2),
]
