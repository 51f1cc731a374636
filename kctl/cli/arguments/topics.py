"""Selections of topics: by name, by regular expression, or with the options of Kafka's tools."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import typer

from kctl.cli.errors import CliError, ExitStatus

INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state"})
KAFKA_PANEL: Final = "Options of Kafka's tool"

TopicNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="TOPIC…", help="Topic names.", show_default=False),
]
Regex = Annotated[
    bool,
    typer.Option(
        "--regex", "-r", help="Treat TOPIC as regular expressions that match whole names."
    ),
]
KafkaTopic = Annotated[
    str | None,
    typer.Option(
        "--topic",
        metavar="REGEX",
        help="Same as TOPIC --regex; separate several with commas.",
        rich_help_panel=KAFKA_PANEL,
    ),
]
ExcludeInternal = Annotated[
    bool,
    typer.Option("--exclude-internal", help="Exclude Kafka's internal topics."),
]


@dataclass(frozen=True)
class Selection:
    """Selected topics; an empty selection means all topics."""

    names: tuple[str, ...] = ()
    patterns: tuple[re.Pattern[str], ...] = ()
    exclude_internal: bool = False

    @property
    def is_everything(self) -> bool:
        """Whether all topics are selected."""
        return not (self.names or self.patterns)

    @property
    def exact_names(self) -> list[str] | None:
        """The names if topics are selected by name only, else None."""
        return list(self.names) if self.names and not self.patterns else None

    def pick(self, present: Iterable[str]) -> list[str]:
        """The selected topics of those present, sorted."""
        return sorted(name for name in present if self._matches(name))

    def missing(self, present: Iterable[str]) -> list[str]:
        """Names and patterns that match no topic."""
        there = set(present)
        unfit = [p.pattern for p in self.patterns if not any(map(p.fullmatch, there))]
        return [name for name in self.names if name not in there] + unfit

    def _matches(self, name: str) -> bool:
        if self.exclude_internal and name in INTERNAL_TOPICS:
            return False
        return (
            self.is_everything
            or name in self.names
            or any(pattern.fullmatch(name) for pattern in self.patterns)
        )


def select(
    names: Sequence[str] | None,
    *,
    regex: bool = False,
    kafka_topic: str | None = None,
    exclude_internal: bool = False,
) -> Selection:
    """The selection of the given arguments; CliError for an invalid pattern."""
    given = tuple(names or ())
    sources = given if regex else ()
    if kafka_topic:
        sources += (include_list(kafka_topic),)
    patterns = tuple(map(_compile, sources))
    return Selection(() if regex else given, patterns, exclude_internal)


def require_some(selection: Selection) -> None:
    """CliError if the selection is empty: for commands that must not default to all topics."""
    if selection.is_everything:
        raise CliError(
            "no topic specified", "name topics, or use '.*' --regex for all", ExitStatus.USAGE
        )


def include_list(text: str) -> str:
    """The regular expression that Kafka's tools build from a list of topics."""
    return text.strip().replace(",", "|").replace(" ", "").strip("\"'")


def _compile(source: str) -> re.Pattern[str]:
    try:
        return re.compile(source)
    except re.error as error:
        raise CliError(
            f"{source!r} is not a regular expression: {error}",
            "'orders.*' matches every name that begins with orders",
            ExitStatus.USAGE,
        ) from error
