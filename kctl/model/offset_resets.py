"""New offsets for a consumer group."""

from collections.abc import Mapping
from dataclasses import dataclass

from broker.model import TopicPartition

Offsets = Mapping[TopicPartition, int]


@dataclass(frozen=True)
class NewOffset:
    """The new offset of one partition."""

    place: TopicPartition
    current_offset: int | None
    new_offset: int
    note: str = ""

    @property
    def change(self) -> int | None:
        """The difference to the committed offset; negative to read records again."""
        return None if self.current_offset is None else self.new_offset - self.current_offset


@dataclass(frozen=True)
class ResetPlan:
    """New offsets of one group, sorted by partition."""

    group_id: str
    offsets: tuple[NewOffset, ...]
