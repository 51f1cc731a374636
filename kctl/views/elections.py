"""Rows and columns of `kctl elect-leaders`."""

from kctl.cli.tables import Column, Row
from kctl.cli.theme import Style
from kctl.model.elections import Candidate


def _leader_style(row: Row) -> Style | None:
    return Style.BAD if row.get("leader") is None else None


def _elected_style(row: Row) -> Style | None:
    return Style.BAD if row.get("elects") is None else Style.GOOD


COLUMNS = [
    Column("topic"),
    Column("partition", right=True, priority=0),
    Column("leader", right=True, priority=1, style=_leader_style),
    Column("elects", right=True, priority=0, style=_elected_style),
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
