"""Messages that a version cannot carry: EncodeError names message, version and field."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from broker.model import Uuid
from broker.protocol.codec import decode, encode
from broker.protocol.errors import DecodeError, EncodeError
from broker.protocol.messages.fetch import FetchRequest
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from broker.protocol.schema import Field, Message, Struct, StructMeta
from tests.protocol.golden import declared

MESSAGES = [pytest.param(cls, id=cls.__name__) for cls in declared()]

OTHER_THAN_DEFAULT: dict[str, Any] = {
    "bool": True,
    "float64": 7.5,
    "uuid": Uuid(b"u" * 16),
    "string": "other",
    "bytes": b"other",
    "records": b"other",
} | dict.fromkeys(("int8", "int16", "uint16", "int32", "uint32", "int64"), 77)

WRONG: dict[str, list[Any]] = {
    "bool": [None, "yes", 2],
    "int8": [None, "1", 2**7, -(2**7) - 1],
    "int16": [None, 1.5, 2**15, -(2**15) - 1],
    "uint16": [None, -1, 2**16],
    "int32": [None, b"1", 2**31, -(2**31) - 1],
    "uint32": [None, -1, 2**32],
    "int64": [None, [], 2**63, -(2**63) - 1],
    "float64": [None, "1"],
    "uuid": [None, b"short", "a text of 16 cha", b"u" * 17],
    "string": [None, 1, b"bytes", "\ud800", "s" * 32768],
    "bytes": [None, 1, "text"],
    "records": [None, 1],
}


class Place(NamedTuple):
    """A field somewhere in a message, and the struct that holds it."""

    holder: Struct
    field: Field
    path: str


def element(field: Field, version: int) -> Any:
    """A value of the field, or of one element of its array, that is not the default."""
    if isinstance(field.type, StructMeta):
        return filled(field.type, version)
    return OTHER_THAN_DEFAULT[field.type]


def filled(cls: StructMeta, version: int) -> Any:
    """A message with one element in every array and no nulls, within the limits of the version."""
    values: dict[str, Any] = {}
    for field in cls.fields:
        if field.in_version(version):
            one = element(field, version)
            values[field.name] = [one] if field.is_array else one
    return cls(**values)


def places(struct: Struct, version: int, prefix: str = "") -> Iterator[Place]:
    for field in struct.fields:
        yield Place(struct, field, prefix + field.name)
        value = getattr(struct, field.name)
        inner = value[0] if field.is_array and value else value
        if isinstance(inner, Struct) and field.in_version(version):
            yield from places(inner, version, f"{prefix}{field.name}.")


def assert_refused(message: Message, version: int, place: Place, value: Any) -> None:
    kept = getattr(place.holder, place.field.name)
    setattr(place.holder, place.field.name, value)
    told = f"{type(message).__name__} v{version}: {place.path}: "
    with pytest.raises(EncodeError, match=f"^{re.escape(told)}(?!None$)."):
        encode(message, version)
    setattr(place.holder, place.field.name, kept)


@pytest.mark.parametrize("cls", MESSAGES)
def test_value_that_does_not_fit_its_field_is_refused_by_name(cls: type[Message]) -> None:
    for version in declared()[cls]:
        message = filled(cls, version)
        for place in places(message, version):
            field = place.field
            if not field.in_version(version) or isinstance(field.type, StructMeta):
                continue
            for wrong in WRONG[field.type]:
                if field.tag is not None and not wrong:
                    continue  # equal to the default, which is not encoded
                if field.is_array:
                    assert_refused(message, version, place, [wrong])
                elif wrong is not None or not field.nullable_in(version):
                    assert_refused(message, version, place, wrong)


@pytest.mark.parametrize("cls", MESSAGES)
def test_array_or_struct_that_is_null_is_refused_where_null_is_not_allowed(
    cls: type[Message],
) -> None:
    for version in declared()[cls]:
        message = filled(cls, version)
        for place in places(message, version):
            field = place.field
            is_whole = field.is_array or isinstance(field.type, StructMeta)
            if not is_whole or field.tag is not None or field.nullable_in(version):
                continue
            if field.in_version(version) and field.is_array:
                assert_refused(message, version, place, None)


@pytest.mark.parametrize("cls", MESSAGES)
def test_field_that_the_version_lacks_is_refused_unless_it_is_ignorable(
    cls: type[Message],
) -> None:
    for version in declared()[cls]:
        message = filled(cls, version)
        expected = encode(message, version)
        for place in places(message, version):
            field = place.field
            if field.in_version(version):
                continue
            other = element(field, version)
            if field.is_array:
                other = [other]
            if other == field.default_value():
                continue  # a struct that has nothing in this version
            if not field.ignorable:
                assert_refused(message, version, place, other)
                continue
            setattr(place.holder, field.name, other)
            assert encode(message, version) == expected


def test_structs_that_do_not_fit_are_refused_by_the_field_that_is_missing() -> None:
    wrong: Any = [object()]
    with pytest.raises(EncodeError, match=r"^MetadataRequest v1: topics\.name: "):
        encode(MetadataRequest(topics=wrong), 1)


def test_longest_string_is_encoded_and_one_byte_more_refused_in_both_forms_of_lengths() -> None:
    for version in (8, 12):
        topic = MetadataRequestTopic(name="é" * 16383 + "x")
        message = MetadataRequest(topics=[topic])
        assert decode(MetadataRequest, encode(message, version), version) == message
        longer = MetadataRequest(topics=[MetadataRequestTopic(name="é" * 16384)])
        with pytest.raises(EncodeError, match=rf"^MetadataRequest v{version}: topics\.name: "):
            encode(longer, version)


@pytest.mark.parametrize("version", [-1, 18, 99])
def test_version_that_does_not_exist_is_refused_both_ways(version: int) -> None:
    with pytest.raises(EncodeError, match=f"FetchRequest has versions 0 to 17, not {version}"):
        encode(FetchRequest(), version)
    with pytest.raises(DecodeError, match=f"FetchRequest has versions 0 to 17, not {version}"):
        decode(FetchRequest, b"", version)


def test_failed_encoding_leaves_the_next_one_alone() -> None:
    with pytest.raises(EncodeError, match=r"^FindCoordinatorRequest v0: key_type: "):
        encode(FindCoordinatorRequest(key="group", key_type=1), 0)
    assert encode(FindCoordinatorRequest(key="group"), 0) == b"\x00\x05group"
