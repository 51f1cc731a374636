"""Options that the verbs of `kctl transactions` share."""

from collections.abc import Iterable
from typing import Annotated

import typer

from kctl.cli.arguments.partitions import numbers_hint
from kctl.cli.errors import CliError, ExitStatus

Places = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TOPIC[:PARTITION,…]…",
        help="Topics, or some of their partitions.",
        show_default=False,
    ),
]
TopicOption = Annotated[
    str | None, typer.Option("--topic", hidden=True, help="Same as TOPIC, as in Kafka's tool.")
]
PartitionOption = Annotated[
    int | None,
    typer.Option("--partition", hidden=True, help="Partition of --topic, as in Kafka's tool."),
]
BrokerId = Annotated[
    int | None,
    typer.Option("--broker-id", help="Query the replicas on this broker instead of the leaders."),
]


def named_places(
    places: list[str] | None, topic: str | None, partition: int | None
) -> dict[str, list[int] | None]:
    """Topics and their selected partitions; None for all partitions."""
    if partition is not None and topic is None:
        raise CliError("--partition requires --topic", "or use TOPIC:PARTITION", ExitStatus.USAGE)
    words = [*(places or [])]
    if topic is not None:
        words.append(topic if partition is None else f"{topic}:{partition}")
    found: dict[str, list[int] | None] = {}
    for word in words:
        name, colon, numbers = word.partition(":")
        if not colon or found.get(name, []) is None:
            found[name] = None
        else:
            found[name] = [*(found.get(name) or []), *_numbers(numbers, word)]
    return found


def _numbers(text: str, word: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        hint = numbers_hint(text, "e.g. orders:0,1")
        raise CliError(f"{word!r} is not TOPIC[:PARTITION,…]", hint, ExitStatus.USAGE) from None


STATES = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"),
    *("Dead", "PrepareEpochFence"),
)


def parse_states(texts: Iterable[str]) -> tuple[str, ...]:
    """The states in Kafka's spelling; upper and lower case do not matter."""
    known = {state.lower(): state for state in STATES}
    found = []
    for text in texts:
        if text.lower() not in known:
            raise CliError(
                f"no such transaction state: {text!r}",
                f"one of {', '.join(STATES)}",
                ExitStatus.USAGE,
            )
        found.append(known[text.lower()])
    return tuple(found)
