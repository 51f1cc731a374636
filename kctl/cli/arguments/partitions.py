"""Selections of partitions, and timestamps of ListOffsets."""

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from broker.model import TopicPartition
from kctl.cli.arguments.topics import INTERNAL_TOPICS, include_list
from kctl.cli.errors import CliError, usage_error
from kctl.cli.missing import no_such
from kctl.cli.times import parse_time_ms

PLACES: Final = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
}
"""Special timestamps of ListOffsets, by name."""

_RULE: Final = re.compile(r"([^:,]*)(?::(?:([0-9]+)|([0-9]*)-([0-9]*)))?")
_NO_END: Final = 2**31
_RANGE: Final = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_SHOWN: Final = 20
"""Longest range that is written out in a hint."""

PartitionRule = Callable[[TopicPartition], bool]


@dataclass(frozen=True)
class PartitionChoice:
    """Partitions that match any of the rules, optionally without internal topics."""

    rules: tuple[PartitionRule, ...]
    exclude_internal: bool = False

    def pick(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """The matching partitions, sorted."""
        return sorted(partition for partition in partitions if self._matches(partition))

    def _matches(self, partition: TopicPartition) -> bool:
        if self.exclude_internal and partition.topic in INTERNAL_TOPICS:
            return False
        return any(matches(partition) for matches in self.rules)


def no_partition_matches(*asked: str | None, topics: Iterable[str] = ()) -> CliError:
    """The error if no partition matches; it repeats the arguments, and suggests similar topics."""
    given = " ".join(text for text in asked if text)
    known = set(topics)
    names = [text.partition(":")[0] for text in asked if text]
    if known and len(names) == 1 and names[0] not in known:
        return no_such("topic", names, known)
    return CliError(
        f"no partition matches {given!r}" if given else "the cluster has no partitions",
        "kctl topics list shows the topics",
    )


def parse_timestamp(text: str) -> int:
    """Parse a timestamp of ListOffsets: `latest` and the like, Kafka's number for it, or a time."""
    if text in PLACES:
        return PLACES[text]
    if text.startswith("-") and text[1:].isdecimal() and int(text) in PLACES.values():
        return int(text)
    try:
        return parse_time_ms(text, round(time.time() * 1000))
    except ValueError as error:
        raise usage_error(f"--time {text}: {error}", f"or one of {', '.join(PLACES)}") from error


def parse_partitions(texts: Iterable[str]) -> tuple[PartitionRule, ...]:
    """Rules for `orders` (all partitions), `orders:0` or `orders:0,2`; names are literal."""
    return tuple(_partition_rule(text) for text in texts)


def parse_topic_partitions(text: str) -> tuple[PartitionRule, ...]:
    """Rules of kafka-get-offsets' `--topic-partitions`: regexes, and ranges with exclusive ends."""
    return tuple(_rule(part) for part in text.split(","))


def parse_topic_and_partitions(topic: str | None, partitions: str | None) -> PartitionRule:
    """The rule of kafka-get-offsets' `--topic` and `--partitions`."""
    name = compiled(include_list(topic) if topic else ".*")
    numbers = _numbers(partitions, "--partitions") if partitions else None
    return lambda tp: (
        bool(name.fullmatch(tp.topic)) and (numbers is None or tp.partition in numbers)
    )


def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a regular expression; CliError if it is invalid."""
    try:
        return re.compile(pattern)
    except re.error as error:
        raise usage_error(f"{pattern!r} is not a regular expression: {error}", "") from error


def _partition_rule(text: str) -> PartitionRule:
    topic, colon, numbers_text = text.partition(":")
    numbers = _numbers(numbers_text, text) if colon else None
    return lambda tp: tp.topic == topic and (numbers is None or tp.partition in numbers)


def _numbers(text: str, argument: str) -> frozenset[int]:
    try:
        return frozenset(int(number) for number in text.split(","))
    except ValueError:
        hint = numbers_hint(text, "e.g. orders:0,2, or orders for all")
        raise usage_error(f"{argument}: expected partition numbers", hint) from None


def numbers_hint(text: str, otherwise: str) -> str:
    """The hint for invalid partition numbers; for a range, what to write instead.

    Ranges are refused, because the end of those in --topic-partitions is exclusive: the same text
    would select other partitions there.
    """
    match = _RANGE.fullmatch(text)
    first, last = (int(match[1]), int(match[2])) if match else (0, -1)
    if not first <= last < first + _SHOWN:
        return otherwise
    numbers = ",".join(map(str, range(first, last + 1)))
    return f"list the partitions instead of a range: {numbers}"


def _rule(text: str) -> PartitionRule:
    match = _RULE.fullmatch(text)
    if not match:
        raise usage_error(
            f"--topic-partitions {text}: expected TOPIC:PARTITIONS", "e.g. orders:0-3"
        )
    name = compiled(match[1] or ".*")
    if match[2]:
        only = range(int(match[2]), int(match[2]) + 1)
    else:
        only = range(int(match[3] or 0), int(match[4] or _NO_END))
    return lambda tp: bool(name.fullmatch(tp.topic)) and tp.partition in only
