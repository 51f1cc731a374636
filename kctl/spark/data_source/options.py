"""Options of the format `kctl`: ours, and those of Spark's own Kafka connector.

Names are compared without case, dots and underscores, so `bootstrap.servers` and `bootstrapServers`
are the same. An unknown option or value is an error: one that is ignored reads other records than
its author meant.
"""

import difflib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Any, Final

from broker.model import TopicPartition
from kctl.cli.errors import CliError
from kctl.cli.options import DEFAULT_TIMEOUT_S, Session
from kctl.dump.reading.filters import parse_moment
from kctl.spark.planning.plan import DEFAULT_TASK_BYTES
from kctl.spark.planning.selection import Selection, Source
from kctl.spark.planning.settings import IsolationLevel, OnGap, TaskSettings
from kctl.spark.reading.cluster import ClusterSource
from kctl.spark.reading.log_directory import LogDirectorySource

EARLIEST, LATEST = "earliest", "latest"
_KAFKA: Final = {LATEST: -1, EARLIEST: -2}
"""Offsets that stand for the ends of a log, in the JSON of startingOffsets."""

OPTIONS: Final = {
    "topics": "topics",
    "subscribe": "topics",
    "subscribepattern": "pattern",
    "bootstrapservers": "servers",
    "kafkabootstrapservers": "servers",
    "fromdir": "directories",
    "commandconfig": "command_config",
    "isolation": "isolation",
    "kafkaisolationlevel": "isolation",
    "since": "since",
    "until": "until",
    "last": "last",
    "taskbytes": "task_bytes",
    "timeout": "timeout",
    "startingoffsets": "starting",
    "endingoffsets": "ending",
    "failondataloss": "fail_on_data_loss",
    "maxoffsetspertrigger": "max_offsets",
    "minpartitions": "min_partitions",
    "includeheaders": "headers",
}
SHOWN: Final = (
    "topics, bootstrap.servers, from.dir, command.config, isolation, since, until, last, "
    "task.bytes, timeout, startingOffsets, endingOffsets, failOnDataLoss, maxOffsetsPerTrigger, "
    "minPartitions, subscribe, subscribePattern, kafka.bootstrap.servers, includeHeaders"
)
_STREAM_ONLY: Final = {"max_offsets"}
_BATCH_ONLY: Final = {"ending", "last", "since", "until"}


@dataclass(frozen=True)
class Bounds:
    """`startingOffsets` or `endingOffsets`: one end of the logs, or offsets by partition."""

    default: str
    offsets: Mapping[TopicPartition, int] | None = None

    def of(self, partition: TopicPartition, earliest: int, latest: int) -> int:
        """The offset for a partition, whose own ends are given."""
        offset = (self.offsets or {}).get(partition, _KAFKA[self.default])
        return {-1: latest, -2: earliest}.get(offset, offset)


class Request:
    """The parsed options of a DataFrame; CliError names a missing or invalid one."""

    def __init__(self, options: Mapping[str, str], *, is_stream: bool = False) -> None:
        given = _known(options)
        _check_use(given, is_stream)
        self.topics = tuple(_names(given.get("topics", "")))
        if "pattern" in given:
            self.topics += (given["pattern"],)
        if not self.topics:
            raise CliError("the option topics is missing", f"options: {SHOWN}")
        self.directories = [Path(name) for name in _names(given.get("directories", ""))]
        self._session = Session(
            given.get("servers"),
            command_config=given.get("command_config"),
            timeout=_number(given, "timeout", float, DEFAULT_TIMEOUT_S),
        )
        self.task_bytes = _number(given, "task_bytes", int, DEFAULT_TASK_BYTES)
        self.min_partitions = _number(given, "min_partitions", int, 1)
        self.max_offsets = _number(given, "max_offsets", int, 0) or None
        self.starting = _bounds(given, "starting", LATEST if is_stream else EARLIEST)
        self.ending = _bounds(given, "ending", LATEST)
        self.is_gap_skipped = not _boolean(given, "fail_on_data_loss", True)
        _boolean(given, "headers", True)
        isolation = _isolation(given.get("isolation", IsolationLevel.READ_COMMITTED))
        now_ms = round(time() * 1000)
        self.settings = TaskSettings(
            "",
            bootstrap_servers="" if self.directories else self._session.bootstrap_servers(),
            timeout_s=self._session.timeout,
            isolation=isolation,
            since_ms=_moment(given.get("since"), "since", now_ms),
            until_ms=_moment(given.get("until"), "until", now_ms),
            on_gap=OnGap.SKIP if self.is_gap_skipped else OnGap.FAIL,
            security=None if self.directories else self._session.security,
        )
        self.selection = Selection(
            self.topics,
            since_ms=self.settings.since_ms,
            last=_number(given, "last", int, 0) or None,
            is_committed=isolation is IsolationLevel.READ_COMMITTED,
        )

    @contextmanager
    def source(self) -> Iterator[Source]:
        """A new source for the block, which sees the current state of the logs."""
        try:
            if self.directories:
                yield LogDirectorySource(self.directories)
            else:
                yield ClusterSource(self._session)
        finally:
            self._session.close()


def _known(options: Mapping[str, str]) -> dict[str, str]:
    """The options by our names; CliError for an unknown one."""
    found: dict[str, str] = {}
    for name, value in options.items():
        plain = name.lower().replace(".", "").replace("_", "")
        if plain == "path":  # what Spark adds for load(PATH)
            raise CliError("load() takes no path", "name topics with the option topics")
        if plain not in OPTIONS:
            close = difflib.get_close_matches(name, SHOWN.split(", "), 1)
            hint = f"did you mean {close[0]}?" if close else f"options: {SHOWN}"
            raise CliError(f"unknown option {name}: {hint}")
        if OPTIONS[plain] in found:
            raise CliError(f"option {name} is given twice, under different names")
        found[OPTIONS[plain]] = value
    return found


def _check_use(given: Mapping[str, str], is_stream: bool) -> None:
    for name in _BATCH_ONLY if is_stream else _STREAM_ONLY:
        if name in given:
            kind = "streams" if is_stream else "batch reads"
            raise CliError(f"the option {_shown(name)} has no meaning for {kind}")


def _shown(name: str) -> str:
    """The name of an option as users write it."""
    plain = next(key for key, value in OPTIONS.items() if value == name)
    names = (each for each in SHOWN.split(", ") if each.lower().replace(".", "") == plain)
    return next(names, plain)


def _invalid(name: str, value: str, expected: str) -> CliError:
    return CliError(f"option {_shown(name)}: {value!r} is not {expected}")


def _number(given: Mapping[str, str], name: str, kind: Callable[[str], Any], default: Any) -> Any:
    if name not in given:
        return default
    try:
        number = kind(given[name])
    except ValueError:
        number = 0
    if not number > 0:
        raise _invalid(name, given[name], "a positive number")
    return number


def _boolean(given: Mapping[str, str], name: str, default: bool) -> bool:
    text = given.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise _invalid(name, given[name], "true or false")
    return text == "true"


def _isolation(text: str) -> IsolationLevel:
    try:
        return IsolationLevel(text)
    except ValueError:
        raise _invalid("isolation", text, "read_committed or read_uncommitted") from None


def _bounds(given: Mapping[str, str], name: str, default: str) -> Bounds:
    """`earliest`, `latest`, or JSON as in Spark's connector: {"orders": {"0": 23, "1": -2}}."""
    text = given.get(name, default)
    if text.lower() in _KAFKA:
        return Bounds(text.lower())
    try:
        offsets = {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partitions in json.loads(text).items()
            for partition, offset in partitions.items()
        }
    except (ValueError, AttributeError, TypeError):
        expected = 'earliest, latest or JSON such as {"orders": {"0": 23}}'
        raise _invalid(name, text, expected) from None
    return Bounds(default, offsets)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _moment(text: str | None, option: str, now_ms: int) -> int | None:
    return None if text is None else parse_moment(text, option, now_ms)
