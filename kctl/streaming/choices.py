"""The words that options of `produce`, `consume` and `perf` take; free of librdkafka."""

import time
from collections.abc import Callable, Collection, Iterable
from enum import StrEnum
from typing import ParamSpec, TypeVar

from kctl.errors import CliError, ExitStatus

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Partitioner(StrEnum):
    """How a record without a partition gets one."""

    JAVA = "java"
    LIBRDKAFKA = "librdkafka"
    ROUND_ROBIN = "round-robin"
    RANDOM = "random"


class Acks(StrEnum):
    """Who must have a record before it counts as written: nobody, the leader, the whole ISR."""

    NONE = "0"
    LEADER = "1"
    ALL = "all"


class Compression(StrEnum):
    """What batches are compressed with."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class IsolationLevel(StrEnum):
    """Whether records of transactions are read before they are committed."""

    READ_COMMITTED = "read_committed"
    READ_UNCOMMITTED = "read_uncommitted"


def now_ms() -> int:
    """The time, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def usage(
    parse: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Parse what stands on the command line; its ValueError is a usage error."""
    try:
        return parse(*args, **kwargs)
    except ValueError as error:
        raise CliError(str(error), status=ExitStatus.USAGE) from error


def split_properties(
    settings: Iterable[str], console: Collection[str]
) -> tuple[dict[str, str], list[str]]:
    """`KEY=VALUE` texts apart: those that Kafka's console tool knows, and those for librdkafka."""
    known = {}
    others = []
    for text in settings:
        key, _, value = text.partition("=")
        if key in console:
            known[key] = value
        else:
            others.append(text)
    return known, others
