"""The output of kafka-consumer-groups.

The tool of 3.9 begins lines with a line feed instead of ending them with one, and omits some: the
new offsets of a reset and the results of a deletion are all on one line. Output is therefore one
string; `Text` separates stderr from stdout.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from broker.errors import ErrorCode
from broker.model import TopicPartition
from kctl.model.groups import DEAD, EMPTY, Group, GroupListing, Member
from kctl.model.lag import GroupLag, PartitionLag
from kctl.model.offset_resets import ResetPlan
from kctl.views.kafka_text.java_maps import hash_map_order, names_in_map_order
from kctl.views.kafka_text.java_order import partition_hash

MISSING = "-"
STABLE = "Stable"


@dataclass(frozen=True)
class Text:
    """The tool's output about one group: first to stderr, then to stdout."""

    note: str = ""
    text: str = ""


def list_text(groups: Sequence[GroupListing], *, states: bool, types: bool) -> str:
    """`--list`, with `--state` or `--type`."""
    by_name = {group.group_id: group for group in groups}
    ordered = [by_name[name] for name in names_in_map_order(by_name)]
    if not (states or types):
        return "".join(f"{group.group_id}\n" for group in ordered)
    width = max([15, *(len(name) for name in by_name)]) + 10
    rows = [("GROUP", "TYPE", "STATE")]
    rows += [(g.group_id, g.type.capitalize() or "Unknown", g.state or "Unknown") for g in ordered]
    return "".join(
        f"{name:<{width}}" + f" {kind:<20}" * types + f" {state:<20}" * states + "\n"
        for name, kind, state in rows
    )


def _heading(group: Group) -> Text:
    """The text before a group's table; for a group that does not exist, the whole output."""
    if group.state == DEAD:
        return Text(text=f"\nError: Consumer group '{group.group_id}' does not exist.\n")
    if group.state == EMPTY:
        return Text(note=f"\nConsumer group '{group.group_id}' has no active members.\n")
    if group.state != STABLE:
        return Text(note=f"\nWarning: Consumer group '{group.group_id}' is rebalancing.\n")
    return Text()


def offsets_text(found: GroupLag) -> Text:
    """`--describe`: the offsets."""
    heading, group = _heading(found.group), found.group
    rows = [_offset_row(lag) for lag in _in_tool_order(group, found.partitions)]
    if not rows or group.state == DEAD:
        return heading
    title = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"
    rows = [title.split(), *rows]
    grow = {column: max(15, *(len(row[column]) for row in rows[1:])) for column in (0, 1, 6, 7)}
    widths = [grow.get(column, 10 if column == 2 else 15) for column in range(8)]

    def line(row: Sequence[str]) -> str:
        padded = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
        return "\n" + " ".join([*padded, row[-1]])

    return Text(heading.note, "".join(map(line, rows)))


def _in_tool_order(group: Group, lags: Iterable[PartitionLag]) -> list[PartitionLag]:
    """Sorted by members, those with the most partitions first; then unassigned partitions."""
    by_place = {lag.place: lag for lag in lags}
    members = sorted(group.members, key=lambda member: -len(member.assignment))
    blocks = [list(member.assignment) for member in members]
    taken = {place for block in blocks for place in block}
    blocks.append([place for place in by_place if place not in taken])
    return [by_place[place] for block in blocks for place in _in_map_order(block)]


def _in_map_order(places: Iterable[TopicPartition]) -> list[TopicPartition]:
    return hash_map_order(sorted(places, key=lambda place: place.partition), partition_hash)


def _offset_row(lag: PartitionLag) -> list[str]:
    member = lag.member
    names = (member.member_id, member.host, member.client_id) if member else (MISSING,) * 3
    numbers = (lag.current_offset, lag.log_end_offset, lag.lag)
    shown = (MISSING if number is None else str(number) for number in numbers)
    return [lag.group_id, lag.place.topic, str(lag.place.partition), *shown, *names]


def members_text(group: Group, *, verbose: bool) -> Text:
    """`--describe --members`."""
    heading = _heading(group)
    has_instances = any(member.group_instance_id for member in group.members)
    titles = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID"]
    rows = [_member_row(group, member) for member in group.members]
    widths = [
        max([17 if title == "GROUP-INSTANCE-ID" else 15, *(len(row[column]) for row in rows)])
        for column, title in enumerate(titles)
    ]
    columns = [c for c, title in enumerate(titles) if title != "GROUP-INSTANCE-ID" or has_instances]

    def line(row: Sequence[str], partitions: str, assignment: str) -> str:
        cells = "".join(f"{row[column]:<{widths[column]}} " for column in columns)
        return f"{cells}{partitions:<15} {assignment if verbose else ''}\n"

    lines = [line(titles, "#PARTITIONS", "ASSIGNMENT")]
    for row, member in zip(rows, group.members, strict=True):
        lines.append(line(row, str(len(member.assignment)), _assignment(member)))
    return Text(heading.note, heading.text + "\n" + "".join(lines))


def _member_row(group: Group, member: Member) -> list[str]:
    instance = member.group_instance_id or ""
    return [group.group_id, member.member_id, instance, member.host, member.client_id]


def _assignment(member: Member) -> str:
    """`(0,1), (2)`: brackets per topic, the numbers sorted as text; 3.9 names no topic."""
    by_topic: dict[str, list[str]] = defaultdict(list)
    for topic, partition in member.assignment:
        by_topic[topic].append(str(partition))
    parts = [f"({','.join(sorted(numbers))})" for numbers in by_topic.values()]
    return ", ".join(sorted(parts)) or MISSING


def state_text(group: Group) -> Text:
    """`--describe --state`."""
    heading = _heading(group)
    if group.state == DEAD:
        return heading
    broker = group.coordinator
    coordinator = f"{broker.host}:{broker.port}  ({broker.id})"
    width = max(25, len(coordinator))
    form = f"\n{{:<{width}}} {{:<25}} {{:<20}} {{:<15}} {{}}"
    title = "GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"
    row = group.group_id, coordinator, group.assignor, group.state, len(group.members)
    return Text(heading.note, form.format(*title) + form.format(*row) + "\n")


def reset_text(plans: Sequence[ResetPlan]) -> str:
    """What `--reset-offsets` would set, or has set."""
    form = "{:<30} {:<30} {:<10} {:<15}"
    text = "\n" + form.format("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")
    for plan in _plans_in_map_order(plans):
        by_place = {new.place: new.new_offset for new in plan.offsets}
        for place in hash_map_order(by_place, partition_hash):
            text += form.format(plan.group_id, *place, by_place[place])
    return text


def reset_csv_order(plan: ResetPlan) -> ResetPlan:
    """The plan in the order of the tool's export."""
    by_place = {new.place: new for new in plan.offsets}
    ordered = hash_map_order(by_place, partition_hash)
    return ResetPlan(plan.group_id, tuple(by_place[place] for place in ordered))


def _plans_in_map_order(plans: Sequence[ResetPlan]) -> list[ResetPlan]:
    by_name = {plan.group_id: plan for plan in plans}
    return [by_name[name] for name in names_in_map_order(by_name)]


def inactive_error(group_id: str, state: str) -> str:
    """The error for a group that is active."""
    return (
        f"\nError: Assignments can only be reset if the group '{group_id}' is inactive, "
        f"but the current state is {state}.\n"
    )


_REFUSALS: Mapping[ErrorCode, Callable[[str], str]] = {
    ErrorCode.INVALID_GROUP_ID: lambda group: f"'{group}' is not valid.",
    ErrorCode.GROUP_ID_NOT_FOUND: lambda group: f"'{group}' does not exist.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: lambda group: f"Access to '{group}' is not authorized.",
    ErrorCode.NON_EMPTY_GROUP: lambda group: (
        f"Deleting offsets of a consumer group '{group}' is forbidden if the group is not empty."
    ),
}
_PARTITION_ERRORS = (
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


def delete_offsets_text(
    group: str,
    topics: Sequence[str],
    error: ErrorCode,
    outcomes: Mapping[TopicPartition, ErrorCode],
) -> str:
    """`--delete-offsets`: results of the request and of each partition."""
    worst = error or next(filter(None, outcomes.values()), ErrorCode.NONE)
    if worst is ErrorCode.NONE:
        names = ", ".join(topics)
        head = f"Request succeed for deleting offsets with topic {names} group {group}\n"
    elif worst in _PARTITION_ERRORS:
        head = "\nError: Encounter some partition level error, see the follow-up details:\n"
    elif worst in _REFUSALS:
        head = f"\nError: {_REFUSALS[worst](group)}\n"
    else:
        head = f"\nError: Encounter some unknown error: {worst.name}\n"
    form = "{:<30} {:<15} {:<15}"
    text = head + "\n" + form.format("TOPIC", "PARTITION", "STATUS")
    for place in sorted(outcomes, key=lambda place: f"{place.topic}{place.partition}"):
        failed = error or outcomes[place]
        status = f"Error: :{_java_error(failed)}" if failed else "Successful"
        text += form.format(*place, status)
    return text


_JAVA_ERRORS = {
    ErrorCode.GROUP_ID_NOT_FOUND: ("GroupIdNotFoundException", "The group id does not exist."),
    ErrorCode.NON_EMPTY_GROUP: ("GroupNotEmptyException", "The group is not empty."),
    ErrorCode.INVALID_GROUP_ID: ("InvalidGroupIdException", "The group id is invalid."),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: (
        "GroupAuthorizationException",
        "Group authorization failed.",
    ),
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: (
        "GroupSubscribedToTopicException",
        "Deleting offsets of a topic is forbidden while the consumer group is actively "
        "subscribed to it.",
    ),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (
        "UnknownTopicOrPartitionException",
        "This server does not host this topic-partition.",
    ),
}


def _java_error(error: ErrorCode) -> str:
    """An error as Java prints its exception."""
    name, sentence = _JAVA_ERRORS.get(error, ("UnknownServerException", error.name))
    return f"org.apache.kafka.common.errors.{name}: {sentence}"


def delete_text(failed: Mapping[str, ErrorCode], deleted: Sequence[str]) -> str:
    """`--delete`."""
    names = names_in_map_order(deleted)
    if not failed:
        return f"Deletion of requested consumer groups ('{', '.join(names)}') was successful.\n"
    text = "\nError: Deletion of some consumer groups failed:\n"
    for group in names_in_map_order(failed):
        text += (
            f"* Group '{group}' could not be deleted due to: "
            f"java.util.concurrent.ExecutionException: {_java_error(failed[group])}\n"
        )
    if names:
        text += f"\nThese consumer groups were deleted successfully: '{chr(39).join(names)}', '\n"
    return text
