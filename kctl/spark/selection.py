"""Which offsets an export is about: topics by name or pattern, ranges by what was asked for."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from broker.model import TopicPartition
from kctl.errors import CliError, ExitStatus
from kctl.spark.plan import OffsetRange, Piece, last_records

INTERNAL_PREFIX = "__"


class Source(Protocol):
    """Where records come from."""

    def partitions(self) -> list[TopicPartition]:
        """Every partition there is."""

    def whole_ranges(
        self, partitions: Iterable[TopicPartition], *, is_committed: bool
    ) -> list[OffsetRange]:
        """All that is there of each partition, pinned now."""

    def offsets_at_time(
        self, partitions: Iterable[TopicPartition], timestamp: int
    ) -> dict[TopicPartition, int]:
        """Of each partition the first offset of that time or later; its end if there is none."""

    def pieces(self, offsets: OffsetRange, task_bytes: int) -> Iterator[Piece]:
        """The range in parts of about `task_bytes`."""


@dataclass(frozen=True)
class Selection:
    """What was asked for; the parts narrow each other down."""

    topics: tuple[str, ...]
    since_ms: int | None = None
    until_ms: int | None = None
    last: int | None = None
    offsets: Mapping[TopicPartition, tuple[int, int | None]] = field(default_factory=dict)
    """First and end offset by partition; if there are any, no other partition is read."""
    exported_up_to: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Where an earlier export ended, for `--incremental`."""
    is_committed: bool = True


def choose_partitions(
    available: Sequence[TopicPartition], topics: Sequence[str]
) -> list[TopicPartition]:
    """The partitions of topics that are named, or that a pattern matches as a whole.

    Internal topics are chosen by their name only: `.*` means the user's data.
    """
    names = {partition.topic for partition in available}
    chosen: set[str] = set()
    for wanted in topics:
        matching = {wanted} if wanted in names else _matching(names, wanted)
        if not matching:
            raise CliError(f"no topic is called {wanted}, and none matches it", _others(names))
        chosen |= matching
    return [partition for partition in available if partition.topic in chosen]


def _matching(names: set[str], pattern: str) -> set[str]:
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise CliError(
            f"{pattern} is neither a topic nor a pattern: {error}", status=ExitStatus.USAGE
        ) from None
    return {n for n in names if expression.fullmatch(n) and not n.startswith(INTERNAL_PREFIX)}


def _others(names: set[str]) -> str:
    shown = sorted(name for name in names if not name.startswith(INTERNAL_PREFIX))
    return f"there are {', '.join(shown[:8])}{', …' if len(shown) > 8 else ''}" if shown else ""


def choose_ranges(source: Source, selection: Selection) -> list[OffsetRange]:
    """The pinned ranges, empty ones included; CliError where what was asked for is not there."""
    partitions = choose_partitions(source.partitions(), selection.topics)
    if selection.offsets:
        unknown = set(selection.offsets) - set(partitions)
        if unknown:
            raise CliError(f"--offsets names {min(unknown)}, which is not among the topics")
        partitions = [each for each in partitions if each in selection.offsets]
    ranges = source.whole_ranges(partitions, is_committed=selection.is_committed)
    ranges = [_go_on(each, selection.exported_up_to) for each in ranges]
    ranges = [_asked_for(each, selection.offsets) for each in ranges]
    ranges = _within_times(source, ranges, selection.since_ms, selection.until_ms)
    return ranges if selection.last is None else last_records(ranges, selection.last)


def _go_on(there: OffsetRange, exported: Mapping[TopicPartition, int]) -> OffsetRange:
    """Begin where the last export ended; a gap or a step back is not passed over."""
    partition = there.topic_partition
    first = exported.get(partition, there.first_offset)
    if first < there.first_offset:
        raise CliError(
            f"{partition}: offsets {first} to {there.first_offset - 1} were deleted before they "
            "were exported",
            "--append --offsets FILE exports from where you say; --incremental goes on from there",
        )
    if first > there.end_offset:
        raise CliError(
            f"{partition}: exported up to {first}, but it ends at {there.end_offset}",
            "was the topic made anew? export it to another directory",
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
            f"there are {there.first_offset} to {there.end_offset} (the end is not included)",
        )
    return OffsetRange(*partition, first, end)


def _within_times(
    source: Source, ranges: list[OffsetRange], since_ms: int | None, until_ms: int | None
) -> list[OffsetRange]:
    """From the first record of `since` on, up to the first one of `until`."""
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
    """The ranges of a JSON file; CliError says what is wrong with it.

    {"partitions": [{"topic": "orders", "partition": 0, "first_offset": 5, "end_offset": 9}]},
    where the end is not included and may be left out.
    """
    try:
        entries: list[dict[str, Any]] = json.loads(path.read_text())["partitions"]
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
