"""Rows and columns of `kctl elect-leaders`."""

from kctl.cli.tables import Column
from kctl.model.elections import Candidate

COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("leader", right=True),
    Column("elects", right=True),
    Column("replicas", wide=True),
    Column("isr", wide=True),
    Column("note"),
]


def candidate_row(candidate: Candidate) -> dict[str, object]:
    """A partition that needs an election as a row of COLUMNS."""
    return {
        "topic": candidate.partition.topic,
        "partition": candidate.partition.partition,
        "leader": candidate.leader,
        "elects": candidate.elects,
        "replicas": list(candidate.replicas),
        "isr": list(candidate.isr),
        "note": candidate.note or None,
    }
