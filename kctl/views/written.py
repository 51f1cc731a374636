"""Rows and columns of `kctl produce`."""

from broker.model import TopicPartition
from kctl.cli.tables import Column
from kctl.views.text import safe_text

COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("records", right=True),
    Column("first_offset", right=True),
    Column("last_offset", right=True),
]


def written_row(
    place: TopicPartition, records: int, first_offset: int | None, last_offset: int | None
) -> dict[str, object]:
    """The records written to one partition as a row of COLUMNS."""
    return {
        "topic": place.topic,
        "partition": place.partition,
        "records": records,
        "first_offset": first_offset,
        "last_offset": last_offset,
    }


EXPLAINED_COLUMNS = [
    Column("record", right=True),
    Column("key"),
    Column("partition", right=True),
    Column("reason"),
]


def explained_row(
    number: int, key: bytes | None, partition: int | None, reason: str
) -> dict[str, object]:
    """The partition of one record, and why, as a row of EXPLAINED_COLUMNS."""
    text = None if key is None else safe_text(key)[0]
    return {"record": number, "key": text, "partition": partition, "reason": reason}
