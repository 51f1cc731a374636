"""Rows and columns of `kctl replicas verify`."""

from kctl.cli.tables import Column
from kctl.model.replica_checks import ReplicaComparison

COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("replicas"),
    Column("from_offset", "FROM", right=True),
    Column("verified_offset", "VERIFIED", right=True),
    Column("high_watermark", right=True),
    Column("lag", right=True),
    Column("status"),
    Column("findings"),
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
        "findings": [finding.text for finding in result.findings],
    }
