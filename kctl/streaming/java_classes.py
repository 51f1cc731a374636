"""Java classes that Kafka's console tools are given by name, and what kctl does in their place.

kctl runs no Java: classes of Kafka itself are replaced, others are refused.
"""

import json
import struct
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from broker.java_strings import java_double
from kctl.cli.errors import CliError, usage_error
from kctl.model.records import TopicRecord

_LINE_READER: Final = "LineMessageReader"
"""The reader of kafka-console-producer that reads lines, as kctl does."""


class JavaFormatter(StrEnum):
    """Formatters of kafka-console-consumer."""

    DEFAULT = "DefaultMessageFormatter"
    NO_OP = "NoOpMessageFormatter"
    OFFSETS = "OffsetsMessageFormatter"
    GROUP_METADATA = "GroupMetadataMessageFormatter"
    TRANSACTIONS = "TransactionLogMessageFormatter"


_KEY_TYPES: Final = {
    JavaFormatter.OFFSETS: ("__consumer_offsets", {"0", "1"}),
    JavaFormatter.GROUP_METADATA: ("__consumer_offsets", {"2"}),
    JavaFormatter.TRANSACTIONS: ("__transaction_state", {"0"}),
}
"""The topic of a formatter, and the types of keys that it prints."""


def short_name(java_class: str) -> str:
    """The name of a class without its package and the class around it."""
    return java_class.replace("$", ".").rpartition(".")[2]


def require_line_reader(java_class: str) -> None:
    """Usage error unless the class reads lines as kctl does."""
    if short_name(java_class) != _LINE_READER:
        raise usage_error(
            f"the reader {java_class} is a Java class, which kctl cannot run",
            "omit --line-reader; --input json reads complete records",
        )


def parse_formatter(java_class: str) -> JavaFormatter:
    """The formatter with this class name; usage error for one that kctl does not have."""
    try:
        return JavaFormatter(short_name(java_class))
    except ValueError:
        raise usage_error(
            f"the formatter {java_class} is a Java class, which kctl cannot run",
            f"one of {', '.join(JavaFormatter)}; or --format for text, -o jsonl for JSON",
        ) from None


def internal_text(formatter: JavaFormatter, record: TopicRecord) -> bytes:
    """A record of an internal topic as the formatter prints it; empty for other records."""
    from kctl.dump.reading.decoders import decoded_record  # imported here: rarely needed

    topic, types = _KEY_TYPES[formatter]
    documents = decoded_record(topic, record.key, record.value) if record.topic == topic else None
    if documents is None:
        return b""
    key, value = documents
    if key is None or key.get("type") not in types:
        return b""
    shown = {
        "key": {"version": int(str(key["type"])), "data": key["data"]},
        "value": _versioned(value),
    }
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _versioned(document: Mapping[str, object] | None) -> object:
    if document is None:
        return None
    return {"version": int(str(document["version"])), "data": document["data"]}


@dataclass(frozen=True)
class Deserializer:
    """Turns bytes to the text that Java prints for the value."""

    name: str
    text: Callable[[bytes], str]
    size: int | None = None
    """The only size that it accepts; None for any."""

    def __call__(self, data: bytes | None) -> bytes | None:
        """The text; CliError for bytes of the wrong size."""
        if data is None:
            return None
        if self.size is not None and len(data) != self.size:
            raise CliError(
                f"{self.name} expects {self.size} bytes, found {len(data)}",
                "the records were written by another serializer",
            )
        return self.text(data).encode()


def _number(code: str) -> Callable[[bytes], str]:
    return lambda data: str(struct.unpack(f">{code}", data)[0])


_DESERIALIZERS: Final = {
    one.name: one
    for one in (
        Deserializer("StringDeserializer", lambda data: data.decode(errors="replace")),
        Deserializer("ShortDeserializer", _number("h"), 2),
        Deserializer("IntegerDeserializer", _number("i"), 4),
        Deserializer("LongDeserializer", _number("q"), 8),
        Deserializer("DoubleDeserializer", lambda data: java_double(*struct.unpack(">d", data)), 8),
        Deserializer("BooleanDeserializer", lambda data: str(data != b"\0").lower(), 1),
        Deserializer("UUIDDeserializer", lambda data: str(uuid.UUID(data.decode()))),
    )
}
_AS_THEY_ARE: Final = frozenset({"ByteArrayDeserializer", "BytesDeserializer"})


def make_deserializer(
    key_class: str | None, value_class: str | None
) -> Callable[[TopicRecord], TopicRecord]:
    """Replaces keys and values by their text; usage error for a class that kctl does not have."""
    key, value = _deserializer(key_class), _deserializer(value_class)
    if key is None and value is None:
        return lambda record: record

    def text(record: TopicRecord) -> TopicRecord:
        shown_key = key(record.key) if key else record.key
        return replace(record, key=shown_key, value=value(record.value) if value else record.value)

    return text


def _deserializer(java_class: str | None) -> Deserializer | None:
    if java_class is None or short_name(java_class) in _AS_THEY_ARE:
        return None
    if (found := _DESERIALIZERS.get(short_name(java_class))) is None:
        raise usage_error(
            f"the deserializer {java_class} is a Java class, which kctl cannot run",
            f"one of {', '.join(_DESERIALIZERS)}; --value-format reads Avro, Protobuf and JSON",
        )
    return found
