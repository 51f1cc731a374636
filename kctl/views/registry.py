"""Rows and columns of `kctl registry`."""

from kctl.cli.tables import Column

SUBJECT_COLUMNS = [
    Column("subject"),
    Column("versions", right=True),
    Column("latest", right=True),
    Column("id", right=True),
    Column("type"),
    Column("compatibility"),
]
VERSION_COLUMNS = [
    Column("subject"),
    Column("version", right=True),
    Column("id", right=True),
    Column("type"),
    Column("references"),
]
SCHEMA_COLUMNS = [
    Column("subject"),
    Column("version", right=True),
    Column("id", right=True),
    Column("type"),
    Column("references"),
    Column("schema"),
]
CHECK_COLUMNS = [Column("subject"), Column("compatible"), Column("messages")]
DELETION_COLUMNS = [Column("subject"), Column("version", right=True), Column("permanent")]
