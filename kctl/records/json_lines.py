"""Records as JSON objects, one per line, in both directions and without loss.

The fields are those of `kctl dump-log show -o jsonl`; `produce` reads the output of both commands:

    {"topic": "orders", "partition": 0, "offset": 7, "timestamp": 1700000000000,
     "timestamp_type": "CreateTime", "key": "k", "key_encoding": "utf-8", "value": "AP8=",
     "value_encoding": "base64", "headers": [{"key": "h", "value": null, "value_encoding": null}]}

Null is null; printable UTF-8 is text, anything else is base64. Input must have a key, a value or
headers, so that other JSON documents are not taken for records with a null value. The other fields
are optional: the default encoding is utf-8, and a key or value that is neither a string nor null is
stored as its JSON text.
"""

import base64
import binascii
import json
from collections.abc import Mapping

from kctl.model.records import CREATE_TIME, Headers, TopicRecord
from kctl.views.text import BASE64, JSON, UTF_8, safe_text

_CONTENTS = {"key", "value", "headers"}
_ENCODINGS = (None, UTF_8, BASE64, "json")


def record_object(record: TopicRecord) -> dict[str, object]:
    """The record as a JSON object."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "timestamp_type": record.timestamp_type,
        **_text_fields("key", record.key),
        **_text_fields("value", record.value),
        "headers": [{"key": name, **_text_fields("value", data)} for name, data in record.headers],
    }


def format_json_line(record: TopicRecord) -> str:
    """The record as one line of JSON, without the line end."""
    return json.dumps(record_object(record), ensure_ascii=False)


def format_decoded(record: TopicRecord, schema_ids: Mapping[str, int | None]) -> str:
    """As `format_json_line`; keys and values with a schema id are JSON text, which is nested."""
    found = record_object(record)
    for name, schema_id in schema_ids.items():
        if schema_id is not None:
            found[name] = json.loads(getattr(record, name))
            found |= {f"{name}_encoding": JSON, f"{name}_schema_id": schema_id}
    return json.dumps(found, ensure_ascii=False)


def format_json_documents(record: TopicRecord, key: object, value: object) -> str:
    """As `format_json_line`, with decoded documents as key and value."""
    documents = {
        "key": key,
        "key_encoding": None if key is None else JSON,
        "value": value,
        "value_encoding": None if value is None else JSON,
    }
    return json.dumps(record_object(record) | documents, ensure_ascii=False)


def parse_json_line(line: str | bytes) -> TopicRecord:
    """The record in a line; ValueError names the invalid field."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise ValueError("not a JSON object")
    if not fields.keys() & _CONTENTS:
        raise ValueError(
            "the object has neither key nor value nor headers; "
            "--input lines writes each document as a value"
        )
    return TopicRecord(
        key=_bytes_of(fields, "key"),
        value=_bytes_of(fields, "value"),
        headers=_headers_of(fields.get("headers")),
        timestamp_ms=_integer(fields, "timestamp", 64),
        timestamp_type=str(fields.get("timestamp_type") or CREATE_TIME),
        topic=_topic(fields.get("topic")),
        partition=_integer(fields, "partition", 32),
        offset=_integer(fields, "offset", 64),
    )


def _text_fields(name: str, data: bytes | None) -> dict[str, object]:
    text, encoding = (None, None) if data is None else safe_text(data)
    return {name: text, f"{name}_encoding": encoding}


def _bytes_of(fields: Mapping[str, object], name: str) -> bytes | None:
    value, encoding = fields.get(name), fields.get(f"{name}_encoding")
    if encoding not in _ENCODINGS:
        raise ValueError(f"{name}_encoding is {encoding!r}; expected utf-8 or base64")
    if value is None:
        return None
    if not isinstance(value, str) or (encoding == JSON and f"{name}_schema_id" in fields):
        return json.dumps(value, ensure_ascii=False).encode()
    if encoding != BASE64:
        return value.encode()
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(f"{name} is not base64: {error}") from error


def _headers_of(found: object) -> Headers:
    """A list of {key, value} objects, or an object if no name is repeated."""
    if isinstance(found, dict):
        found = [{"key": name, "value": value} for name, value in found.items()]
    if not isinstance(found, list | None):
        raise ValueError("headers is neither a list nor an object")
    return tuple(_header_of(header) for header in found or [])


def _header_of(header: object) -> tuple[str, bytes | None]:
    if not isinstance(header, dict) or not isinstance(header.get("key"), str):
        raise ValueError(f"the header {header!r} has no key")
    return header["key"], _bytes_of(header, "value")


def _integer(fields: Mapping[str, object], name: str, bits: int) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        if abs(value) >= 1 << (bits - 1):
            raise ValueError(f"{name} is out of range: {value}")
        return value
    raise ValueError(f"{name} is {value!r}, not a number")


def _topic(value: object) -> str | None:
    if isinstance(value, str | None):
        return value
    raise ValueError(f"topic is {value!r}, not a name")
