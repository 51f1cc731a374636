"""The columns of each kind of file, for tables and CSV."""

from typing import Final

from kctl.cli.tables import Column, Row
from kctl.cli.theme import Style
from kctl.dump.reading.files import FileKind


def _flag_style(row: Row) -> Style:
    flags = row.get("flags")
    return Style.BAD if isinstance(flags, list) and "bad-crc" in flags else Style.NAME


BATCH_COLUMNS: Final = [
    Column("base_offset", "BASE", right=True),
    Column("last_offset", "LAST", right=True, priority=1),
    Column("count", right=True, priority=2),
    Column("position", right=True, priority=3),
    Column("size", right=True, priority=3),
    Column("codec", priority=4),
    Column("max_time", "TIME", priority=4),
    Column("producer_id", "PRODUCER", right=True),
    Column("flags", priority=1, style=_flag_style),
    Column("producer_epoch", wide=True, right=True),
    Column("base_sequence", wide=True, right=True),
    Column("last_sequence", wide=True, right=True),
    Column("partition_leader_epoch", "LEADER-EPOCH", wide=True, right=True),
    Column("magic", wide=True, right=True),
    Column("timestamp_type", wide=True),
    Column("max_timestamp", wide=True, right=True),
    Column("delete_horizon_ms", "DELETE-HORIZON", wide=True, right=True),
    Column("crc", wide=True, right=True),
    Column("valid", wide=True),
]
RECORD_COLUMNS: Final = [
    Column("offset", right=True),
    Column("time", priority=3),
    Column("key", priority=2),
    Column("value", priority=1),
    Column("headers", wide=True),
    Column("key_size", wide=True, right=True),
    Column("value_size", wide=True, right=True),
    Column("producer_id", "PRODUCER", wide=True, right=True),
    Column("producer_epoch", wide=True, right=True),
    Column("sequence", wide=True, right=True),
    Column("partition_leader_epoch", "LEADER-EPOCH", wide=True, right=True),
    Column("codec", wide=True),
    Column("flags", wide=True),
]
COLUMNS: Final[dict[FileKind, list[Column]]] = {
    FileKind.OFFSET_INDEX: [Column("offset", right=True), Column("position", right=True)],
    FileKind.TIME_INDEX: [
        Column("timestamp", right=True),
        Column("time"),
        Column("offset", right=True),
    ],
    FileKind.TXN_INDEX: [
        Column("producer_id", "PRODUCER", right=True),
        Column("first_offset", right=True),
        Column("last_offset", right=True),
        Column("last_stable_offset", right=True),
    ],
    FileKind.SNAPSHOT: [
        Column("producer_id", "PRODUCER", right=True),
        Column("producer_epoch", "EPOCH", right=True),
        Column("first_sequence", "FIRST-SEQ", right=True),
        Column("last_sequence", "LAST-SEQ", right=True),
        Column("last_offset", right=True),
        Column("current_txn_first_offset", "OPEN-TXN-FROM", right=True),
        Column("time"),
        Column("offset_delta", wide=True, right=True),
        Column("timestamp", wide=True, right=True),
        Column("coordinator_epoch", wide=True, right=True),
    ],
    FileKind.EPOCHS: [Column("epoch", right=True), Column("start_offset", right=True)],
    FileKind.CHECKPOINT: [
        Column("topic"),
        Column("partition", right=True),
        Column("offset", right=True),
    ],
    FileKind.METADATA: [Column("key"), Column("value")],
}
NAMES: Final[dict[FileKind, str]] = {
    FileKind.OFFSET_INDEX: "offset",
    FileKind.TIME_INDEX: "offset",
    FileKind.TXN_INDEX: "producer_id",
    FileKind.SNAPSHOT: "producer_id",
    FileKind.EPOCHS: "epoch",
    FileKind.CHECKPOINT: "topic",
    FileKind.METADATA: "key",
}
