"""The output of kafka-console-consumer for a record."""

from collections.abc import Mapping

from kctl.model.records import NO_TIMESTAMP_TYPE, TopicRecord

FORMATTER_PROPERTIES = frozenset(
    {
        "print.timestamp",
        "print.partition",
        "print.offset",
        "print.headers",
        "print.key",
        "print.value",
        "key.separator",
        "line.separator",
        "headers.separator",
        "null.literal",
    }
)
"""The properties of the tool's `--property`, except deserializers."""


def console_text(record: TopicRecord, properties: Mapping[str, str]) -> bytes:
    """One record with its line end, with the columns that `properties` turn on."""
    null = properties.get("null.literal", "null").encode()
    columns = {
        "print.timestamp": _timestamp(record),
        "print.partition": f"Partition:{record.partition}".encode(),
        "print.offset": f"Offset:{record.offset}".encode(),
        "print.headers": _headers(record, properties, null),
        "print.key": null if record.key is None else record.key,
        "print.value": null if record.value is None else record.value,
    }
    shown = [text for name, text in columns.items() if _is_on(properties, name)]
    separator = properties.get("key.separator", "\t").encode()
    return separator.join(shown) + properties.get("line.separator", "\n").encode()


def _is_on(properties: Mapping[str, str], name: str) -> bool:
    default = "true" if name == "print.value" else "false"
    return properties.get(name, default).strip().lower() == "true"


def _timestamp(record: TopicRecord) -> bytes:
    if record.timestamp_type == NO_TIMESTAMP_TYPE:
        return b"NO_TIMESTAMP"
    return f"{record.timestamp_type}:{record.timestamp_ms}".encode()


def _headers(record: TopicRecord, properties: Mapping[str, str], null: bytes) -> bytes:
    if not record.headers:
        return b"NO_HEADERS"
    separator = properties.get("headers.separator", ",").encode()
    return separator.join(
        name.encode() + b":" + (null if data is None else data) for name, data in record.headers
    )
