"""Options that the verbs of `kctl groups` share."""

from collections.abc import Sequence
from typing import Annotated

import typer

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.group_source import GroupSource
from kctl.admin.log_offsets import partitions_of, require_partitions
from kctl.cli.errors import CliError, ExitStatus

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
    groups: GroupSource, names: Sequence[str], *, all_groups: bool
) -> list[str]:
    """The selected groups; usage error if there are none."""
    if all_groups:
        return sorted(group.group_id for group in await groups.listed())
    if not names:
        raise CliError(
            "no group specified",
            "name groups, or use --all; kctl groups list shows them",
            ExitStatus.USAGE,
        )
    return list(dict.fromkeys(names))


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
        raise CliError(
            f"{text!r} is not TOPIC[:PARTITION,…]", "e.g. orders:0,1", ExitStatus.USAGE
        ) from error


STATES = (
    *("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Unknown"),
    *("Assigning", "Reconciling", "NotReady"),
)
"""The states of groups in Kafka 3.9, also those of the new protocols."""


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
