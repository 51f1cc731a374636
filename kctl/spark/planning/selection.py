"""Selects partitions by topic name or pattern, and their offset ranges."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from broker.model import TopicPartition
from kctl.cli.errors import CliError, ExitStatus
from kctl.spark.planning.origin import HINT, ExportedEnd, Origin, epochs_to_check, origin_problems
from kctl.spark.planning.plan import Gap, OffsetRange, Piece, last_records

INTERNAL_PREFIX = "__"


class Source(Protocol):
    """A source of records: a cluster or log directories."""

    def partitions(self) -> list[TopicPartition]:
        """All partitions."""

    def whole_ranges(
        self, partitions: Iterable[TopicPartition], *, is_committed: bool
    ) -> list[OffsetRange]:
        """The offsets of each partition, from log start to visible end, pinned now."""

    def pin(self, ranges: Iterable[OffsetRange], *, is_committed: bool) -> None:
        """Use ranges that were found before, without finding them again."""

    def offsets_at_time(
        self, partitions: Iterable[TopicPartition], timestamp: int
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition at that time or later; else its end."""

    def pieces(self, offsets: OffsetRange, task_bytes: int) -> Iterator[Piece]:
        """Split a range into pieces of about `task_bytes`."""

    def origin(self, partitions: Iterable[TopicPartition]) -> Origin:
        """Identifies the logs of these partitions."""

    def held_back(self, ranges: Iterable[OffsetRange]) -> dict[TopicPartition, int]:
        """How many offsets open transactions hold back after each range; zeros are omitted."""

    def epoch_end_offsets(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The end offsets of leader epochs: -1 for an unknown epoch; omitted if not available."""


@dataclass(frozen=True)
class Selection:
    """The selected records; all conditions apply."""

    topics: tuple[str, ...]
    since_ms: int | None = None
    """No earlier offset than that of the first record at this time; tasks select exactly."""
    last: int | None = None
    offsets: Mapping[TopicPartition, tuple[int, int | None]] | None = None
    """First and end offset by partition, if given; then no other partition is read."""
    exported: Mapping[TopicPartition, ExportedEnd] = field(default_factory=dict)
    """Where earlier exports ended, for `--incremental`."""
    is_committed: bool = True
    is_gap_skipped: bool = False
    """Whether to continue where records were deleted before any export contained them."""


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


def choose_ranges(
    source: Source, selection: Selection, gaps: list[Gap] | None = None
) -> list[OffsetRange]:
    """The pinned ranges, including empty ones; CliError if requested offsets do not exist.

    Gaps after earlier exports are added to `gaps`, if they are skipped.
    """
    skipped: list[Gap] = [] if gaps is None else gaps
    partitions = choose_partitions(source.partitions(), selection.topics)
    if selection.offsets is not None:
        unknown = set(selection.offsets) - set(partitions)
        if unknown:
            raise CliError(f"--offsets names {min(unknown)}, which is not selected")
        partitions = [each for each in partitions if each in selection.offsets]
    ranges = source.whole_ranges(partitions, is_committed=selection.is_committed)
    ranges = _continued(source, ranges, selection, skipped)
    ranges = [_asked_for(each, selection.offsets or {}) for each in ranges]
    ranges = _from_time(source, ranges, selection.since_ms)
    return ranges if selection.last is None else last_records(ranges, selection.last)


def _continued(
    source: Source, ranges: Sequence[OffsetRange], selection: Selection, gaps: list[Gap]
) -> list[OffsetRange]:
    """The ranges, starting where earlier exports ended; CliError or a gap where that is not
    possible.

    A log that is not the exported one is read from its beginning.
    """
    partitions = [each.topic_partition for each in ranges]
    known = {each: selection.exported[each] for each in partitions if each in selection.exported}
    if not known:
        return list(ranges)
    epochs = epochs_to_check(selection.exported, partitions)
    ends = source.epoch_end_offsets(epochs) if epochs else {}
    others = origin_problems(known, source.origin(known), ends)
    continued = []
    for there in ranges:
        partition = there.topic_partition
        if partition not in known:
            continued.append(there)
            continue
        exported_end = known[partition].end_offset
        gap, hint = _gap(there, exported_end, others.get(partition, ""))
        if gap is None:
            there = OffsetRange(*partition, exported_end, there.end_offset)
        elif selection.is_gap_skipped:
            gaps.append(gap)
        else:
            raise CliError(f"{partition}: {gap.reason}", hint)
        continued.append(there)
    return continued


def _gap(there: OffsetRange, exported_end: int, other_log: str) -> tuple[Gap | None, str]:
    """Why an export cannot go on where the last one ended, and what to do about it."""
    partition = there.topic_partition
    if other_log:
        return Gap(*partition, exported_end, exported_end, other_log), HINT
    if exported_end < there.first_offset:
        reason = (
            f"offsets {exported_end} to {there.first_offset - 1} were deleted before they were "
            "exported"
        )
        hint = "--on-gap skip exports the rest and names the gap in the manifest"
        return Gap(*partition, exported_end, there.first_offset, reason), hint
    if exported_end > there.end_offset:
        reason = f"exported up to {exported_end}, but it ends at {there.end_offset}"
        return (
            Gap(*partition, exported_end, exported_end, reason),
            "if the topic was recreated, export it to another directory, or use --on-gap skip",
        )
    return None, ""


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


def _from_time(
    source: Source, ranges: list[OffsetRange], since_ms: int | None
) -> list[OffsetRange]:
    """The ranges from the first record at that time or later; all earlier records are older.

    There is no such limit for the end of a time span: a record may be older than one before it.
    """
    if since_ms is None:
        return ranges
    starts = source.offsets_at_time([each.topic_partition for each in ranges], since_ms)
    return [
        OffsetRange(
            each.topic,
            each.partition,
            min(max(each.first_offset, starts[each.topic_partition]), each.end_offset),
            each.end_offset,
        )
        for each in ranges
    ]


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
