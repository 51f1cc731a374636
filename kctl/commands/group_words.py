"""Options and rows that the verbs of `kctl groups` share."""

from collections.abc import Sequence
from typing import Annotated

import typer

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.group_source import GroupSource
from kctl.admin.log_offsets import partitions_of
from kctl.errors import CliError, ExitStatus

GroupNames = Annotated[list[str] | None, typer.Argument(metavar="GROUP", help="Consumer groups.")]
GroupName = Annotated[str, typer.Argument(metavar="GROUP", help="A consumer group.")]
GroupOption = Annotated[
    list[str] | None,
    typer.Option("--group", hidden=True, help="Kafka's way of naming a group."),
]
AllGroups = Annotated[
    bool, typer.Option("-A", "--all", "--all-groups", help="All groups of the cluster.")
]
Topics = Annotated[
    list[str] | None,
    typer.Option(
        "-t",
        "--topic",
        metavar="TOPIC[:0,1,…]",
        help="A topic, or some of its partitions; can be given again.",
    ),
]


async def chosen_groups(
    groups: GroupSource, names: Sequence[str], *, all_groups: bool
) -> list[str]:
    """The groups that are meant; usage error if none is."""
    if all_groups:
        return sorted(group.group_id for group in await groups.listed())
    if not names:
        raise CliError(
            "no group named",
            "name groups, or say --all; kctl groups list shows them",
            ExitStatus.USAGE,
        )
    return list(dict.fromkeys(names))


async def chosen_partitions(client: Client, topics: Sequence[str]) -> list[TopicPartition]:
    """`orders` and `orders:0,1` → partitions; CliError for a topic that does not exist."""
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
    return sorted(set(places))


def _parse_partitions(text: str) -> list[TopicPartition]:
    topic, _, numbers = text.partition(":")
    try:
        return [TopicPartition(topic, int(number)) for number in numbers.split(",")]
    except ValueError as error:
        raise CliError(
            f"{text!r} is no topic with partitions", "e.g. orders:0,1", ExitStatus.USAGE
        ) from error
