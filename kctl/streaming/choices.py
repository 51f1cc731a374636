"""Values of the options of `produce`, `consume` and `perf`; does not import librdkafka."""

from collections.abc import Collection, Iterable
from enum import StrEnum


class Partitioner(StrEnum):
    """How the partition of a record is chosen."""

    JAVA = "java"
    LIBRDKAFKA = "librdkafka"
    ROUND_ROBIN = "round-robin"
    RANDOM = "random"


class Acks(StrEnum):
    """Acknowledgements a producer waits for: none, the leader's, or those of the whole ISR."""

    NONE = "0"
    LEADER = "1"
    ALL = "all"


class Compression(StrEnum):
    """Compression type of batches."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class IsolationLevel(StrEnum):
    """Isolation level of a consumer."""

    READ_COMMITTED = "read_committed"
    READ_UNCOMMITTED = "read_uncommitted"


class RecordFormat(StrEnum):
    """Format of keys or values; all but bytes use a schema registry."""

    BYTES = "bytes"
    AUTO = "auto"
    AVRO = "avro"
    PROTOBUF = "protobuf"
    JSON_SCHEMA = "json-schema"


def split_properties(
    settings: Iterable[str], console: Collection[str]
) -> tuple[dict[str, str], list[str]]:
    """Split `KEY=VALUE` settings into those of Kafka's console tools and those of librdkafka."""
    known = {}
    others = []
    for text in settings:
        key, _, value = text.partition("=")
        if key in console:
            known[key] = value
        else:
            others.append(text)
    return known, others
