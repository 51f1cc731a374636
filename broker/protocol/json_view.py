"""A message as JSON, the way Kafka's own converters write it.

Kafka's tools print records of the internal topics like this, and so does `dump-log --format kafka`.
"""

import base64
from typing import Any

from broker.protocol.schema import Field, Message, Struct


def to_json(message: Message, version: int) -> dict[str, Any]:
    """The fields of `version`, in Kafka's camelCase; records become an empty string."""
    return _struct(message, version)


def camel_case(name: str) -> str:
    """`leader_epoch` → `leaderEpoch`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _struct(struct: Struct, version: int) -> dict[str, Any]:
    return {
        camel_case(field.name): _value(field, value, version)
        for field in struct.fields
        if field.in_version(version)
        and ((value := getattr(struct, field.name)) != field.default_value() or field.tag is None)
    }


def _value(field: Field, value: Any, version: int) -> Any:
    if value is None:
        return None
    if field.is_array:
        element = field.element()
        return [_value(element, item, version) for item in value]
    if isinstance(value, Struct):
        return _struct(value, version)
    if field.type == "records":
        return ""
    if field.type == "bytes":
        return base64.b64encode(value).decode("ascii")
    return str(value) if field.type == "uuid" else value
