"""Numbered records: which of 0, 1, 2 … arrived, how often, and in which order.

A value is `N` or `PREFIX.N`, as the verifiable producer writes it; each prefix is a sequence of its
own, so that several producers can write to one topic.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from broker.model import TopicPartition

_VALUE: Final = re.compile(rb"(?:(.*)\.)?(\d{1,10})")
MAX_NUMBER: Final = 1 << 28
"""Higher numbers count as foreign: a byte is kept for each number up to the highest."""
MAX_LISTED: Final = 100
"""Ranges and numbers that a report names."""


@dataclass
class Sequence:
    """The numbers of one producer."""

    counts: bytearray = field(default_factory=bytearray)
    """By number: how often it arrived, at most 255."""
    records: int = 0

    def add(self, number: int) -> None:
        """Count one record."""
        if number >= len(self.counts):
            self.counts.extend(bytes(number + 1 - len(self.counts)))
        self.counts[number] = min(255, self.counts[number] + 1)
        self.records += 1

    def expect(self, total: int) -> None:
        """Numbers up to `total` were sent: those that did not arrive at the end are missing too."""
        if total > len(self.counts):
            self.counts.extend(bytes(total - len(self.counts)))

    @property
    def missing(self) -> int:
        """How many numbers did not arrive."""
        return self.counts.count(0)

    @property
    def duplicates(self) -> int:
        """How many records arrived more than once, counted without their first arrival."""
        return self.records - (len(self.counts) - self.missing)

    def gaps(self) -> Iterator[tuple[int, int]]:
        """Ranges of missing numbers: first and last."""
        start = self.counts.find(0)
        while start >= 0:
            found = re.compile(rb"[^\0]").search(self.counts, start)
            end = found.start() if found else len(self.counts)
            yield start, end - 1
            start = self.counts.find(0, end)

    def repeated(self) -> Iterator[int]:
        """Numbers that arrived more than once."""
        return (found.start() for found in re.finditer(rb"[\x02-\xff]", self.counts))


@dataclass
class Numbered:
    """What was read of a topic."""

    sequences: dict[str, Sequence] = field(default_factory=dict)
    foreign: int = 0
    """Records that are not numbered."""
    out_of_order: int = 0
    """Records with a lower number than one before them in the same partition."""
    _highest: dict[tuple[TopicPartition, str], int] = field(default_factory=dict)

    def add(self, place: TopicPartition, value: bytes | None) -> None:
        """Count one record."""
        found = _VALUE.fullmatch(value or b"")
        number = int(found[2]) if found else MAX_NUMBER
        if found is None or number >= MAX_NUMBER:
            self.foreign += 1
            return
        prefix = (found[1] or b"").decode(errors="replace")
        self.sequences.setdefault(prefix, Sequence()).add(number)
        highest = self._highest.get((place, prefix), -1)
        if number < highest:
            self.out_of_order += 1
        self._highest[place, prefix] = max(highest, number)

    def expect(self, total: int) -> None:
        """Each sequence, or the only one if nothing arrived, has `total` records."""
        for sequence in self.sequences.values() or [self.sequences.setdefault("", Sequence())]:
            sequence.expect(total)

    @property
    def is_exact(self) -> bool:
        """Whether every number arrived exactly once, and nothing else."""
        found = self.sequences.values()
        return not (self.foreign or any(one.missing or one.duplicates for one in found))
