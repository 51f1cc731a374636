"""New offsets for a group: Kafka's scenarios, and the file they are exported to. Pure.

An offset outside of the log is moved to its nearer end, as Kafka's tool does; the plan says so.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from broker.model import TopicPartition
from kctl.plans.lag import LogBounds

Offsets = Mapping[TopicPartition, int]


@dataclass(frozen=True)
class NewOffset:
    """What one partition would be set to."""

    place: TopicPartition
    current_offset: int | None
    new_offset: int
    note: str = ""

    @property
    def change(self) -> int | None:
        """How far it moves; to read again is negative."""
        return None if self.current_offset is None else self.new_offset - self.current_offset


@dataclass(frozen=True)
class ResetPlan:
    """New offsets of one group, in the order of the partitions."""

    group_id: str
    offsets: tuple[NewOffset, ...]


def plan_reset(group_id: str, wanted: Offsets, committed: Offsets, bounds: LogBounds) -> ResetPlan:
    """Set each partition to what is wanted, as far as its log goes."""
    return ResetPlan(
        group_id,
        tuple(
            _clamped(place, wanted[place], committed.get(place), bounds) for place in sorted(wanted)
        ),
    )


def _clamped(
    place: TopicPartition, wanted: int, current: int | None, bounds: LogBounds
) -> NewOffset:
    start, end = bounds.starts.get(place), bounds.ends.get(place)
    if end is not None and wanted > end:
        return NewOffset(place, current, end, f"{wanted} is after the end")
    if start is not None and wanted < start:
        return NewOffset(place, current, start, f"{wanted} is before the start")
    return NewOffset(place, current, wanted)


def shifted(partitions: Iterable[TopicPartition], committed: Offsets, by: int) -> Offsets:
    """`by` further than committed; ValueError for a partition that has nothing committed."""
    places = list(partitions)
    missing = [str(place) for place in places if place not in committed]
    if missing:
        raise ValueError(
            f"Cannot shift offset for partition {missing[0]} since there is no current "
            "committed offset"
        )
    return {place: committed[place] + by for place in places}


def current_or_end(
    partitions: Iterable[TopicPartition], committed: Offsets, ends: Offsets
) -> Offsets:
    """What is committed; the end of the log where nothing is."""
    return {
        place: committed[place] if place in committed else ends[place]
        for place in partitions
        if place in committed or place in ends
    }


def format_csv(plans: Sequence[ResetPlan]) -> str:
    """`topic,partition,offset` lines for one group, with the group in front for several."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for plan in plans:
        for new in plan.offsets:
            row = [*new.place, new.new_offset]
            writer.writerow(row if len(plans) == 1 else [plan.group_id, *row])
    return text.getvalue()


def parse_csv(text: str, groups: Sequence[str]) -> dict[str, dict[TopicPartition, int]]:
    """What `format_csv` or Kafka's `--export` wrote; ValueError names the line that is wrong.

    Lines of three fields are for the only group in `groups`.
    """
    found: dict[str, dict[TopicPartition, int]] = {}
    for number, fields in enumerate(csv.reader(io.StringIO(text)), 1):
        if not fields:
            continue
        if len(fields) == 3 and len(groups) == 1:
            fields = [groups[0], *fields]
        try:
            group, topic, partition, offset = fields
            found.setdefault(group, {})[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError as error:
            raise ValueError(
                f"line {number} is not [group,]topic,partition,offset: {','.join(fields)}"
            ) from error
    return found
