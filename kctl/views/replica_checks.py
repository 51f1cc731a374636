"""Rows and columns of `kctl replicas verify`."""

from kctl.cli.tables import Column, by_word
from kctl.cli.theme import Style
from kctl.model.replica_checks import ReplicaComparison
from kctl.views.styles import always

COLUMNS = [
    Column("topic"),
    Column("partition", right=True, priority=0),
    Column("replicas"),
    Column("from_offset", "FROM", right=True),
    Column("verified_offset", "VERIFIED", right=True),
    Column("high_watermark", right=True),
    Column("lag", right=True),
    Column("status", priority=0, style=by_word("status")),
    Column("findings", priority=1, style=always(Style.BAD)),
]


def comparison_row(result: ReplicaComparison) -> dict[str, object]:
    """The comparison of one partition as a row of COLUMNS."""
    return {
        "topic": result.partition.topic,
        "partition": result.partition.partition,
        "replicas": list(result.replicas),
        "from_offset": result.from_offset,
        "verified_offset": result.verified_offset,
        "high_watermark": result.high_watermark,
        "lag": result.lag,
        "status": result.status,
        "findings": [
            *(finding.text for finding in result.findings),
            *(f"broker {broker} did not answer" for broker in result.unanswered),
        ],
    }
