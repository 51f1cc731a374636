"""New offsets of a group: Kafka's reset scenarios, and their CSV export.

An offset outside the log is moved to the nearer end, as Kafka's tool does, with a note.
"""

import csv
import io
from collections.abc import Iterable, Sequence

from broker.model import TopicPartition
from kctl.model.lag import LogBounds
from kctl.model.offset_resets import NewOffset, Offsets, ResetPlan


def plan_reset(group_id: str, wanted: Offsets, committed: Offsets, bounds: LogBounds) -> ResetPlan:
    """The plan that sets each partition to the wanted offset, limited to its log."""
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
        return NewOffset(place, current, end, f"{wanted} is after the log end")
    if start is not None and wanted < start:
        return NewOffset(place, current, start, f"{wanted} is before the log start")
    return NewOffset(place, current, wanted)


def shifted(partitions: Iterable[TopicPartition], committed: Offsets, by: int) -> Offsets:
    """Committed offsets plus `by`; ValueError for a partition without a committed offset."""
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
    """Committed offsets; the log end offset for partitions without one."""
    return {
        place: committed[place] if place in committed else ends[place]
        for place in partitions
        if place in committed or place in ends
    }


def format_csv(plans: Sequence[ResetPlan]) -> str:
    """`topic,partition,offset` lines; for several groups, preceded by the group."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for plan in plans:
        for new in plan.offsets:
            row = [*new.place, new.new_offset]
            writer.writerow(row if len(plans) == 1 else [plan.group_id, *row])
    return text.getvalue()


def parse_csv(text: str, groups: Sequence[str]) -> dict[str, dict[TopicPartition, int]]:
    """Parse the output of `format_csv` or of Kafka's `--export`; ValueError names a bad line.

    Lines of three fields belong to the only group in `groups`.
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
