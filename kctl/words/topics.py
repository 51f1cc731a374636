"""Which topics a command is about: by name, by regular expression, or as Kafka's tools say it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import typer

from kctl.errors import CliError, ExitStatus

INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state"})
KAFKA_PANEL: Final = "As Kafka's tool has it"

TopicNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="TOPIC…", help="Names of topics.", show_default=False),
]
Regex = Annotated[
    bool, typer.Option("--regex", "-r", help="The names are regular expressions for whole names.")
]
KafkaTopic = Annotated[
    str | None,
    typer.Option(
        "--topic",
        metavar="REGEX",
        help="The same as TOPIC --regex; a comma separates several.",
        rich_help_panel=KAFKA_PANEL,
    ),
]
ExcludeInternal = Annotated[
    bool,
    typer.Option("--exclude-internal", help="Leave out the topics that Kafka keeps for itself."),
]


@dataclass(frozen=True)
class Selection:
    """Topics that were asked for; nothing at all asks for every topic."""

    names: tuple[str, ...] = ()
    patterns: tuple[re.Pattern[str], ...] = ()
    exclude_internal: bool = False

    @property
    def is_everything(self) -> bool:
        """Whether no topic was named in any way."""
        return not (self.names or self.patterns)

    @property
    def exact_names(self) -> list[str] | None:
        """The names, if names are all there is: then no others need be looked at."""
        return list(self.names) if self.names and not self.patterns else None

    def pick(self, present: Iterable[str]) -> list[str]:
        """Those of the topics there are that are meant, sorted."""
        return sorted(name for name in present if self._means(name))

    def missing(self, present: Iterable[str]) -> list[str]:
        """What was asked for and fits no topic there is."""
        there = set(present)
        unfit = [p.pattern for p in self.patterns if not any(map(p.fullmatch, there))]
        return [name for name in self.names if name not in there] + unfit

    def _means(self, name: str) -> bool:
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
    """The selection that the options say; CliError for a pattern that is none."""
    given = tuple(names or ())
    sources = given if regex else ()
    if kafka_topic:
        sources += (include_list(kafka_topic),)
    patterns = tuple(map(_compile, sources))
    return Selection(() if regex else given, patterns, exclude_internal)


def require_some(selection: Selection) -> None:
    """CliError if no topic is named: for commands that must not mean all of them by silence."""
    if selection.is_everything:
        raise CliError("no topic named", "name topics, or say '.*' --regex", ExitStatus.USAGE)


def include_list(text: str) -> str:
    """The regular expression that Kafka's tools make of a list of topics."""
    return text.strip().replace(",", "|").replace(" ", "").strip("\"'")


def _compile(source: str) -> re.Pattern[str]:
    try:
        return re.compile(source)
    except re.error as error:
        raise CliError(
            f"{source!r} is not a regular expression: {error}",
            "'orders.*' fits every name that begins with orders",
            ExitStatus.USAGE,
        ) from error
