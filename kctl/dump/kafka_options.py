"""What kafka-dump-log is told, and what it keeps to say at the end."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kctl.dump.files import DumpFile
from kctl.dump.java_order import string_hash, table_order
from kctl.dump.kafka_records import RecordStyle
from kctl.dump.readers import ignore

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
    """Hears how far in a segment the reading is."""


@dataclass
class Afterwards:
    """What Kafka says on stderr after all files: lists of pairs of numbers by file."""

    index_mismatches: Pairs = field(default_factory=dict)
    time_mismatches: Pairs = field(default_factory=dict)
    out_of_order_times: Pairs = field(default_factory=dict)
    offsets_not_found: Pairs = field(default_factory=dict)
    non_consecutive: Pairs = field(default_factory=dict)
    on_problem: Callable[[Exception], None] = ignore
    """Hears of a batch whose records cannot be read; Kafka's tool ends there, we go on."""

    def lines(self) -> Iterator[str]:
        """In Kafka's order; some of its lists are printed from their end."""
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
    """The lists in the order in which Kafka's tool goes through them."""
    lists = {str(path): found for path, found in pairs.items()}
    for path in table_order([[path] for path in lists], string_hash):
        yield path, lists[path]


def note(pairs: Pairs, file: DumpFile, first: int, second: int) -> None:
    """Add a pair to the list of a file, which is named in full."""
    pairs.setdefault(file.path.absolute(), []).append((first, second))
