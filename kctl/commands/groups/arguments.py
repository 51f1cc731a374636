"""Options that the verbs of `kctl groups` share."""

from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.group_source import GroupSource
from kctl.admin.log_offsets import partitions_of, require_partitions
from kctl.cli.arguments.partitions import numbers_hint
from kctl.cli.errors import CliError, ExitStatus
from kctl.model.groups import Group, GroupType

GroupNames = Annotated[
    list[str] | None, typer.Argument(metavar="GROUP…", help="Consumer groups.", show_default=False)
]
GroupName = Annotated[str, typer.Argument(metavar="GROUP", help="A consumer group.")]
GroupOption = Annotated[
    list[str] | None,
    typer.Option("--group", hidden=True, help="Same as GROUP, as in Kafka's tool."),
]
AllGroups = Annotated[
    bool, typer.Option("-A", "--all", "--all-groups", help="All groups of the cluster.")
]
GroupState = Annotated[
    list[str] | None,
    typer.Option("--state", help="Only groups in this state, e.g. Stable; can be repeated."),
]
GroupTypes = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="Only groups of this type: classic, consumer (KIP-848), share or streams; can be "
        "repeated.",
    ),
]
FailIf = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        metavar="CONDITION",
        help="Exit with status 3 if a group has e.g. lag>1000 (of a partition), total-lag>1, "
        "time-lag>5m, members<1 or verdict=stalled (of a partition); can be repeated.",
    ),
]
Topics = Annotated[
    list[str] | None,
    typer.Option(
        "-t",
        "--topic",
        metavar="TOPIC[:0,1,…]",
        help="Topic, or some of its partitions; can be repeated.",
    ),
]


async def chosen_groups(
    groups: GroupSource, names: Sequence[str], *, all_groups: bool, share_groups: bool = False
) -> list[str]:
    """The selected groups; usage error if nothing is selected.

    All groups are the consumer groups, and with `share_groups` also share and streams groups.
    """
    if all_groups:
        listed = await groups.listed()
        return sorted(group.group_id for group in listed if group.is_consumer_group or share_groups)
    if not names:
        raise CliError(
            "no group specified",
            "name groups, or use --all; kctl groups list shows them",
            ExitStatus.USAGE,
        )
    return list(dict.fromkeys(names))


def refuse_share_groups(groups: Iterable[Group], verb: str) -> None:
    """CliError if one is a share group, which has no committed offsets."""
    if shared := [group.group_id for group in groups if group.is_share_group]:
        raise CliError(
            f"cannot {verb}: {', '.join(shared)} is a share group, which commits no offsets",
            "use kafka-share-groups --reset-offsets of Kafka 4.2",
        )


async def chosen_partitions(
    client: Client, topics: Sequence[str], *, must_exist: bool = True
) -> list[TopicPartition]:
    """The partitions of `orders` or `orders:0,1`.

    CliError for a topic that does not exist, and with `must_exist` also for a partition.
    """
    whole = [text for text in topics if ":" not in text]
    found = await partitions_of(client, whole) if whole else {}
    places = [
        TopicPartition(topic, partition)
        for topic, partitions in found.items()
        for partition in partitions
    ]
    for text in topics:
        if ":" in text:
            places += _parse_partitions(text)
    if must_exist:
        await require_partitions(client, places)
    return sorted(set(places))


def _parse_partitions(text: str) -> list[TopicPartition]:
    topic, _, numbers = text.partition(":")
    try:
        return [TopicPartition(topic, int(number)) for number in numbers.split(",")]
    except ValueError as error:
        hint = numbers_hint(numbers, "e.g. orders:0,1")
        raise CliError(f"{text!r} is not TOPIC[:PARTITION,…]", hint, ExitStatus.USAGE) from error


STATES = (
    *("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Unknown"),
    *("Assigning", "Reconciling", "NotReady"),
)
"""The states of groups in Kafka 3.9, also those of the new protocols."""


def parse_types(texts: Sequence[str]) -> list[str]:
    """The types in lower case; upper and lower case do not matter."""
    words = [word.strip().lower() for text in texts for word in text.split(",") if word.strip()]
    for word in words:
        if word not in list(GroupType):
            raise CliError(
                f"no such group type: {word!r}", f"one of {', '.join(GroupType)}", ExitStatus.USAGE
            )
    return words


def parse_states(texts: Sequence[str]) -> list[str]:
    """The states in Kafka's spelling; as in Kafka's tool, upper and lower case do not matter."""
    known = {state.lower(): state for state in STATES}
    words = [word for text in texts for word in text.split(",") if word]
    for word in words:
        if word.lower() not in known:
            raise CliError(
                f"no such group state: {word!r}", f"one of {', '.join(STATES)}", ExitStatus.USAGE
            )
    return [known[word.lower()] for word in words]
