"""Columns of `kctl import`."""

from typing import Final

from kctl.cli.tables import Column

COLUMNS: Final = [
    Column("topic"),
    Column("partition", right=True),
    Column("records", right=True),
    Column("first_offset", right=True),
    Column("last_offset", right=True),
    Column("exported_first_offset", "EXPORTED FROM", right=True),
    Column("exported_end_offset", "TO", right=True),
    Column("resumed_at", right=True),
    Column("exported_topic", wide=True),
]
