"""Options that the verbs of `kctl groups` share."""

from collections.abc import Sequence
from typing import Annotated

import typer

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.group_source import GroupSource
from kctl.admin.log_offsets import partitions_of
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


async def chosen_partitions(client: Client, topics: Sequence[str]) -> list[TopicPartition]:
    """The partitions of `orders` or `orders:0,1`; CliError for a topic that does not exist."""
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
            f"{text!r} is not TOPIC[:PARTITION,…]", "e.g. orders:0,1", ExitStatus.USAGE
        ) from error
