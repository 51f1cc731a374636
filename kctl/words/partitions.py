"""Partitions and places in a log as people write them on a command line."""

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from broker.model import TopicPartition
from kctl.errors import CliError, ExitStatus
from kctl.records.times import parse_time_ms
from kctl.words.topics import INTERNAL_TOPICS, include_list

PLACES: Final = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
}
"""Kafka's numbers for places in a log that have names."""

_RULE: Final = re.compile(r"([^:,]*)(?::(?:([0-9]+)|([0-9]*)-([0-9]*)))?")
_NO_END: Final = 2**31

Fits = Callable[[TopicPartition], bool]


@dataclass(frozen=True)
class PartitionChoice:
    """Which partitions are meant: those that fit a rule; internal topics may be left out."""

    rules: tuple[Fits, ...]
    exclude_internal: bool = False

    def pick(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Those that are meant, in order."""
        return sorted(partition for partition in partitions if self._means(partition))

    def _means(self, partition: TopicPartition) -> bool:
        if self.exclude_internal and partition.topic in INTERNAL_TOPICS:
            return False
        return any(fits(partition) for fits in self.rules)


def no_partition_fits(*asked: str | None) -> CliError:
    """The failure when there is no partition for what was asked, which it repeats."""
    words = " ".join(word for word in asked if word)
    return CliError(
        f"no partition fits {words}" if words else "there is no partition",
        "kctl topics list shows the topics there are",
    )


def parse_timestamp(text: str) -> int:
    """`latest`, `earliest`, … or Kafka's number for it, or a time: what ListOffsets takes."""
    if text in PLACES:
        return PLACES[text]
    if text.removeprefix("-").isdecimal() and (int(text) in PLACES.values() or int(text) >= 0):
        return int(text)
    try:
        return parse_time_ms(text, round(time.time() * 1000))
    except ValueError as error:
        raise usage_error(f"--time {text}: {error}", f"or one of {', '.join(PLACES)}") from error


def parse_partition_words(words: Iterable[str]) -> tuple[Fits, ...]:
    """`orders` all its partitions, `orders:0` or `orders:0,2` these; a name is taken literally."""
    return tuple(_word(word) for word in words)


def parse_topic_partitions(text: str) -> tuple[Fits, ...]:
    """kafka-get-offsets's `--topic-partitions`: regexes, and ranges that leave out their end."""
    return tuple(_rule(part) for part in text.split(","))


def parse_topic_and_partitions(topic: str | None, partitions: str | None) -> Fits:
    """kafka-get-offsets's `--topic` and `--partitions`."""
    name = compiled(include_list(topic) if topic else ".*")
    numbers = _numbers(partitions, "--partitions") if partitions else None
    return lambda tp: (
        bool(name.fullmatch(tp.topic)) and (numbers is None or tp.partition in numbers)
    )


def compiled(pattern: str) -> re.Pattern[str]:
    """A regular expression; CliError if it is none."""
    try:
        return re.compile(pattern)
    except re.error as error:
        raise usage_error(f"{pattern!r} is not a regular expression: {error}", "") from error


def usage_error(message: str, hint: str) -> CliError:
    """What is wrong with the command line."""
    return CliError(message, hint, ExitStatus.USAGE)


def _word(word: str) -> Fits:
    topic, colon, text = word.partition(":")
    numbers = _numbers(text, word) if colon else None
    return lambda tp: tp.topic == topic and (numbers is None or tp.partition in numbers)


def _numbers(text: str, word: str) -> frozenset[int]:
    try:
        return frozenset(int(number) for number in text.split(","))
    except ValueError:
        raise usage_error(
            f"{word}: expected numbers of partitions", "e.g. orders:0,2, or orders for all"
        ) from None


def _rule(text: str) -> Fits:
    match = _RULE.fullmatch(text)
    if not match:
        raise usage_error(f"--topic-partitions {text}: not TOPIC:PARTITIONS", "e.g. orders:0-3")
    name = compiled(match[1] or ".*")
    if match[2]:
        only = range(int(match[2]), int(match[2]) + 1)
    else:
        only = range(int(match[3] or 0), int(match[4] or _NO_END))
    return lambda tp: bool(name.fullmatch(tp.topic)) and tp.partition in only
