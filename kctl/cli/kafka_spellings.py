"""Options of Kafka's tools that are spelled differently in kctl; not shown in the help.

Old spellings, and those of KIP-1147 (Kafka 4.2), are replaced by kctl's own before a command line
is parsed. Options that kctl declares itself under Kafka's name are not listed here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Spelling:
    """What an option becomes."""

    ours: str = ""
    """Our option; empty if the value becomes an argument."""
    convert: Callable[[str], str] = str
    many: bool = False
    """Whether several values `a=b c=d` follow, as after --producer-props."""
    is_ignored: bool = False
    """Whether option and value are left out, because they have no effect in kctl."""


def _seconds(milliseconds: str) -> str:
    """Milliseconds as seconds; other text as it is, for the parser to refuse."""
    return f"{int(milliseconds) / 1000:g}" if milliseconds.isdecimal() else milliseconds


_PROPERTY: Final = Spelling("--property")
_CONFIG: Final = Spelling("--command-config")
_SERVERS: Final = Spelling("--bootstrap-server")
_TOPIC: Final = Spelling()
_NO_EFFECT: Final = Spelling(is_ignored=True)

_TOPIC_LISTS: Final = {"--partition-size-limit-per-response": _NO_EFFECT}

SPELLINGS: Final[Mapping[str, Mapping[str, Spelling]]] = {
    "topics list": _TOPIC_LISTS,
    "topics describe": _TOPIC_LISTS,
    "produce": {
        "--topic": _TOPIC,
        "--broker-list": _SERVERS,
        "--producer-property": _PROPERTY,
        "--command-property": _PROPERTY,
        "--reader-property": _PROPERTY,
        "--producer.config": _CONFIG,
        "--compression-codec": Spelling("--compression"),
        "--request-required-acks": Spelling("--acks", lambda acks: acks.replace("-1", "all")),
    },
    "consume": {
        "--consumer-property": _PROPERTY,
        "--command-property": _PROPERTY,
        "--formatter-property": _PROPERTY,
        "--consumer.config": _CONFIG,
        "--timeout-ms": Spelling("--idle", _seconds),
    },
    "perf produce": {
        "--topic": _TOPIC,
        "--producer-props": Spelling("--property", many=True),
        "--command-property": _PROPERTY,
        "--producer.config": _CONFIG,
    },
    "perf consume": {
        "--topic": _TOPIC,
        "--broker-list": _SERVERS,
        "--command-property": _PROPERTY,
        "--consumer.config": _CONFIG,
    },
    "perf latency": {"--topic": _TOPIC, "--command-property": _PROPERTY},
    "elect-leaders": {
        "--admin.config": _CONFIG,
    },
    "streams reset": {"--config-file": _CONFIG},
    "verify produce": {"--producer.config": _CONFIG, "--command-property": _PROPERTY},
    "verify consume": {"--consumer.config": _CONFIG, "--command-property": _PROPERTY},
}
"""By command: Kafka's spellings of options that take a value."""


def with_our_spellings(command: str, args: Sequence[str]) -> list[str]:
    """The arguments of a command with kctl's own spellings; unchanged after `--`."""
    known = SPELLINGS.get(command)
    return list(_respelled(known, list(args))) if known else list(args)


def _respelled(known: Mapping[str, Spelling], args: list[str]) -> Iterator[str]:
    while args:
        word = args.pop(0)
        if word == "--":
            yield from (word, *args)
            return
        name, equals, value = word.partition("=")
        spelling = known.get(name)
        if spelling is None:
            yield word
            continue
        values = [value] if equals else _values(args, spelling)
        if not values:
            yield word  # the parser reports that its value is missing
        for one in values:
            if not spelling.is_ignored:
                yield from filter(None, (spelling.ours, spelling.convert(one)))


def _values(args: list[str], spelling: Spelling) -> list[str]:
    """Take the values that follow an option off the arguments."""
    values = [args.pop(0)] if args else []
    while spelling.many and args and "=" in args[0] and not args[0].startswith("-"):
        values.append(args.pop(0))
    return values
