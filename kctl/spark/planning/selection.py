"""Selects partitions by topic name or pattern, and their offset ranges."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from broker.model import TopicPartition
from kctl.cli.errors import CliError, ExitStatus
from kctl.spark.planning.origin import ExportedEnd, Origin, check_origin, epochs_to_check
from kctl.spark.planning.plan import OffsetRange, Piece, last_records

INTERNAL_PREFIX = "__"


class Source(Protocol):
    """A source of records: a cluster or log directories."""

    def partitions(self) -> list[TopicPartition]:
        """All partitions."""

    def whole_ranges(
        self, partitions: Iterable[TopicPartition], *, is_committed: bool
    ) -> list[OffsetRange]:
        """The offsets of each partition, from log start to visible end, pinned now."""

    def offsets_at_time(
        self, partitions: Iterable[TopicPartition], timestamp: int
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition at that time or later; else its end."""

    def pieces(self, offsets: OffsetRange, task_bytes: int) -> Iterator[Piece]:
        """Split a range into pieces of about `task_bytes`."""

    def origin(self, partitions: Iterable[TopicPartition]) -> Origin:
        """Identifies the logs of these partitions."""

    def epoch_end_offsets(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The end offsets of leader epochs: -1 for an unknown epoch; omitted if not available."""


@dataclass(frozen=True)
class Selection:
    """The selected records; all conditions apply."""

    topics: tuple[str, ...]
    since_ms: int | None = None
    until_ms: int | None = None
    last: int | None = None
    offsets: Mapping[TopicPartition, tuple[int, int | None]] | None = None
    """First and end offset by partition, if given; then no other partition is read."""
    exported: Mapping[TopicPartition, ExportedEnd] = field(default_factory=dict)
    """Where earlier exports ended, for `--incremental`."""
    is_committed: bool = True


def choose_partitions(
    available: Sequence[TopicPartition], topics: Sequence[str]
) -> list[TopicPartition]:
    """The partitions of topics that are given by name or fully match a pattern.

    Internal topics must be given by name; `.*` does not match them.
    """
    names = {partition.topic for partition in available}
    chosen: set[str] = set()
    for wanted in topics:
        matching = {wanted} if wanted in names else _matching(names, wanted)
        if not matching:
            raise CliError(f"no topic matches {wanted}", _others(names))
        chosen |= matching
    return [partition for partition in available if partition.topic in chosen]


def _matching(names: set[str], pattern: str) -> set[str]:
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise CliError(
            f"{pattern} is neither a topic nor a valid pattern: {error}", status=ExitStatus.USAGE
        ) from None
    return {n for n in names if expression.fullmatch(n) and not n.startswith(INTERNAL_PREFIX)}


def _others(names: set[str]) -> str:
    shown = sorted(name for name in names if not name.startswith(INTERNAL_PREFIX))
    return f"topics: {', '.join(shown[:8])}{', …' if len(shown) > 8 else ''}" if shown else ""


def choose_ranges(source: Source, selection: Selection) -> list[OffsetRange]:
    """The pinned ranges, including empty ones; CliError if requested offsets do not exist."""
    partitions = choose_partitions(source.partitions(), selection.topics)
    if selection.offsets is not None:
        unknown = set(selection.offsets) - set(partitions)
        if unknown:
            raise CliError(f"--offsets names {min(unknown)}, which is not selected")
        partitions = [each for each in partitions if each in selection.offsets]
    ranges = source.whole_ranges(partitions, is_committed=selection.is_committed)
    _check_same_logs(source, partitions, selection.exported)
    ranges = [_go_on(each, selection.exported) for each in ranges]
    ranges = [_asked_for(each, selection.offsets or {}) for each in ranges]
    ranges = _within_times(source, ranges, selection.since_ms, selection.until_ms)
    return ranges if selection.last is None else last_records(ranges, selection.last)


def _check_same_logs(
    source: Source,
    partitions: Sequence[TopicPartition],
    exported: Mapping[TopicPartition, ExportedEnd],
) -> None:
    """CliError if a log is not the one that was exported before."""
    known = {each: exported[each] for each in partitions if each in exported}
    if known:
        epochs = epochs_to_check(exported, partitions)
        ends = source.epoch_end_offsets(epochs) if epochs else {}
        check_origin(known, source.origin(known), ends)


def _go_on(there: OffsetRange, exported: Mapping[TopicPartition, ExportedEnd]) -> OffsetRange:
    """Begin where the last export ended; CliError if there is a gap or the log is shorter."""
    partition = there.topic_partition
    if partition not in exported:
        return there
    first = exported[partition].end_offset
    if first < there.first_offset:
        raise CliError(
            f"{partition}: offsets {first} to {there.first_offset - 1} were deleted before they "
            "were exported",
            "export from given offsets with --append --offsets FILE, then use --incremental",
        )
    if first > there.end_offset:
        raise CliError(
            f"{partition}: exported up to {first}, but it ends at {there.end_offset}",
            "if the topic was recreated, export it to another directory",
        )
    return OffsetRange(*partition, first, there.end_offset)


def _asked_for(
    there: OffsetRange, offsets: Mapping[TopicPartition, tuple[int, int | None]]
) -> OffsetRange:
    partition = there.topic_partition
    if partition not in offsets:
        return there
    first, given_end = offsets[partition]
    end = there.end_offset if given_end is None else given_end
    if not there.first_offset <= first <= end <= there.end_offset:
        raise CliError(
            f"{partition}: offsets {first} to {end} are out of range",
            f"available: {there.first_offset} to {there.end_offset} (end exclusive)",
        )
    return OffsetRange(*partition, first, end)


def _within_times(
    source: Source, ranges: list[OffsetRange], since_ms: int | None, until_ms: int | None
) -> list[OffsetRange]:
    """Limit ranges to start at the first record at `since` and end before that at `until`."""
    partitions = [each.topic_partition for each in ranges]
    starts = source.offsets_at_time(partitions, since_ms) if since_ms is not None else {}
    ends = source.offsets_at_time(partitions, until_ms) if until_ms is not None else {}
    bounded = []
    for each in ranges:
        key = each.topic_partition
        end = min(each.end_offset, ends.get(key, each.end_offset))
        first = max(each.first_offset, starts.get(key, each.first_offset))
        bounded.append(OffsetRange(*key, min(first, max(end, each.first_offset)), end))
    return bounded


def read_offsets_file(path: Path) -> dict[TopicPartition, tuple[int, int | None]]:
    """The ranges of a JSON file; CliError if it is not valid.

    {"partitions": [{"topic": "orders", "partition": 0, "first_offset": 5, "end_offset": 9}]},
    where the end is exclusive and optional.
    """
    try:
        entries: list[dict[str, Any]] = json.loads(path.read_text())["partitions"]
        if not entries:
            raise ValueError("it names no partition")
        return {
            TopicPartition(str(entry["topic"]), int(entry["partition"])): (
                int(entry["first_offset"]),
                None if entry.get("end_offset") is None else int(entry["end_offset"]),
            )
            for entry in entries
        }
    except OSError as error:
        raise CliError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CliError(
            f"{path}: not a list of offsets: {error!r}",
            '{"partitions": [{"topic": "orders", "partition": 0, "first_offset": 5}]}',
            ExitStatus.USAGE,
        ) from error
