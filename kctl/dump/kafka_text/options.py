"""Options of kafka-dump-log, and the messages it prints at the end."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kctl.dump.kafka_text.records import RecordStyle
from kctl.dump.reading.files import DumpFile
from kctl.dump.reading.readers import ignore
from kctl.views.kafka_text.java_order import string_hash, table_order

NOT_FOUND: Final = -1

Pairs = dict[Path, list[tuple[int, int]]]


@dataclass(frozen=True)
class KafkaOptions:
    """The options of kafka-dump-log that change what it prints."""

    style: RecordStyle | None = None
    """How records are printed; None for batches only."""
    verify_index_only: bool = False
    index_sanity_check: bool = False
    max_message_bytes: int = 5 * 1024 * 1024
    max_bytes: int | None = None
    on_position: Callable[[int], None] = ignore
    """Called with the position in the segment."""


@dataclass
class Afterwards:
    """Messages that Kafka prints to stderr after all files: lists of pairs of numbers by file."""

    index_mismatches: Pairs = field(default_factory=dict)
    time_mismatches: Pairs = field(default_factory=dict)
    out_of_order_times: Pairs = field(default_factory=dict)
    offsets_not_found: Pairs = field(default_factory=dict)
    non_consecutive: Pairs = field(default_factory=dict)
    on_problem: Callable[[Exception], None] = ignore
    """Called for a batch whose records cannot be read; Kafka's tool ends there, this continues."""

    def lines(self) -> Iterator[str]:
        """The lines in Kafka's order; Kafka prints some of its lists in reverse."""
        for path, pairs in _by_file(self.index_mismatches):
            yield f"Mismatches in :{path}"
            yield from (f"  Index offset: {a}, log offset: {b}" for a, b in reversed(pairs))
        for path, pairs in _by_file(self.time_mismatches):
            yield f"Found timestamp mismatch in :{path}"
            yield from (f"  Index timestamp: {a}, log timestamp: {b}" for a, b in pairs)
        for path, pairs in _by_file(self.out_of_order_times):
            yield f"Found out of order timestamp in :{path}"
            yield from (
                f"  Index timestamp: {a}, Previously indexed timestamp: {b}" for a, b in pairs
            )
        for _, pairs in _by_file(self.offsets_not_found):
            yield "The following indexed offsets are not found in the log."
            yield from (f"Indexed offset: {a}, found log offset: {b}" for a, b in pairs)
        for path, pairs in _by_file(self.non_consecutive):
            yield f"Non-consecutive offsets in {path}"
            yield from (f"  {a} is followed by {b}" for a, b in reversed(pairs))


def _by_file(pairs: Pairs) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """The lists in the iteration order of Kafka's hash map."""
    lists = {str(path): found for path, found in pairs.items()}
    for path in table_order([[path] for path in lists], string_hash):
        yield path, lists[path]


def note(pairs: Pairs, file: DumpFile, first: int, second: int) -> None:
    """Add a pair to the list of a file, by its absolute path."""
    pairs.setdefault(file.path.absolute(), []).append((first, second))
