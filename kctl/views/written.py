"""Rows and columns of `kctl produce`."""

from broker.model import TopicPartition
from kctl.cli.tables import Column

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
