"""Leader elections."""

from dataclasses import dataclass
from enum import StrEnum

from broker.model import TopicPartition
from kctl.model.outcomes import Outcome


class ElectionType(StrEnum):
    """Types of leader elections."""

    PREFERRED = "preferred"
    """The first of the assigned replicas, if it is in sync."""
    UNCLEAN = "unclean"
    """Any live replica, with possible data loss: for partitions without a leader."""

    @property
    def number(self) -> int:
        """Kafka's number of the type."""
        return int(self is ElectionType.UNCLEAN)


Election = tuple[TopicPartition, Outcome]
"""A partition and the result of its election."""


@dataclass(frozen=True)
class Candidate:
    """A partition that needs an election."""

    partition: TopicPartition
    leader: int | None
    elects: int | None
    """The expected leader; None if no replica can lead."""
    note: str
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
