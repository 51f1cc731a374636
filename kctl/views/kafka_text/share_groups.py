"""The output of kafka-share-groups of Kafka 4.1."""

from collections import defaultdict
from collections.abc import Sequence

from kctl.model.groups import EMPTY, Group, Member
from kctl.model.lag import GroupLag
from kctl.views.kafka_text.groups import MISSING, Text


def share_offsets_text(found: GroupLag, *, verbose: bool) -> Text:
    """`--describe`: start offsets, sorted by topic and partition."""
    name = found.group.group_id
    if not found.partitions:
        return Text(text=f"\nShare group '{name}' has no offset information.\n")
    titles = ["GROUP", "TOPIC", "PARTITION", *(["LEADER-EPOCH"] if verbose else []), "START-OFFSET"]
    rows = [
        [
            *(name, lag.place.topic, str(lag.place.partition), *([MISSING] if verbose else [])),
            MISSING if lag.current_offset is None else str(lag.current_offset),
        ]
        for lag in found.partitions
    ]
    widths = [_width(name), _width(*(row[1] for row in rows)), 10, *([13] if verbose else [])]
    return Text(text=_table([titles, *rows], widths))


def share_members_text(group: Group, *, verbose: bool) -> Text:
    """`--describe --members`."""
    if not group.members:
        return _no_members(group)
    members = sorted(group.members, key=lambda member: member.member_id)
    epoch = ["MEMBER-EPOCH"] if verbose else []
    titles = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", *epoch, "ASSIGNMENT"]
    rows = [_member_row(group, member, verbose=verbose) for member in members]
    names = [_width(*(row[column] for row in rows)) for column in range(4)]
    return Text(text=_table([titles, *rows], [*names, 12, *([13] if verbose else [])]))


def _member_row(group: Group, member: Member, *, verbose: bool) -> list[str]:
    names = [group.group_id, member.member_id, member.host, member.client_id]
    epoch = [str(member.epoch)] if verbose else []
    return [*names, str(len(member.assignment)), *epoch, _assignment(member)]


def _assignment(member: Member) -> str:
    """`orders:0,1;payments:3`."""
    by_topic: dict[str, list[int]] = defaultdict(list)
    for topic, partition in member.assignment:
        by_topic[topic].append(partition)
    parts = (f"{topic}:{','.join(map(str, sorted(own)))}" for topic, own in by_topic.items())
    return ";".join(sorted(parts))


def share_state_text(group: Group, *, verbose: bool) -> Text:
    """`--describe --state`."""
    broker = group.coordinator
    coordinator = f"{broker.host}:{broker.port}  ({broker.id})"
    epochs = ["GROUP-EPOCH", "ASSIGNMENT-EPOCH"] if verbose else []
    titles = ["GROUP", "COORDINATOR (ID)", "STATE", *epochs, "#MEMBERS"]
    numbers = [str(group.epoch), str(group.assignment_epoch)] if verbose else []
    row = [group.group_id, coordinator, group.state, *numbers, str(len(group.members))]
    widths = [_width(group.group_id), max(25, len(coordinator)), 15, *([12, 17] if verbose else [])]
    note = _no_members(group).note if group.state == EMPTY else ""
    return Text(note, _table([titles, row], widths))


def _no_members(group: Group) -> Text:
    return Text(note=f"\nShare group '{group.group_id}' has no active members.\n")


def _width(*cells: str) -> int:
    return max(15, *map(len, cells))


def _table(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> str:
    """Lines that begin with a line feed; the last column is not padded."""
    lines = []
    for row in rows:
        padded = (f"{cell:<{width}} " for cell, width in zip(row, widths, strict=False))
        lines.append("\n" + "".join(padded) + row[-1])
    return "".join(lines) + "\n"
