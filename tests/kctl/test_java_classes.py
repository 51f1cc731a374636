"""Java classes that Kafka's console tools are given by name."""

import struct

import pytest

from kctl.cli.errors import CliError
from kctl.model.records import TopicRecord
from kctl.streaming.java_classes import (
    JavaFormatter,
    make_deserializer,
    parse_formatter,
    require_line_reader,
)

PACKAGE = "org.apache.kafka.common.serialization."


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("StringDeserializer", b"text", b"text"),
        ("ShortDeserializer", struct.pack(">h", -2), b"-2"),
        ("IntegerDeserializer", struct.pack(">i", 70000), b"70000"),
        ("LongDeserializer", struct.pack(">q", -(2**40)), b"-1099511627776"),
        ("DoubleDeserializer", struct.pack(">d", 1e10), b"1.0E10"),
        ("BooleanDeserializer", b"\1", b"true"),
        ("ByteArrayDeserializer", b"\xff", b"\xff"),
        ("LongDeserializer", None, None),
    ],
)
def test_deserializer_gives_the_text_of_java(
    name: str, data: bytes | None, text: bytes | None
) -> None:
    record = TopicRecord(key=b"key", value=data)
    shown = make_deserializer(None, PACKAGE + name)(record)
    assert (shown.key, shown.value) == (b"key", text)


def test_bytes_of_the_wrong_size_and_unknown_classes_are_refused() -> None:
    with pytest.raises(CliError, match="LongDeserializer expects 8 bytes, found 1"):
        make_deserializer(PACKAGE + "LongDeserializer", None)(TopicRecord(key=b"x", value=b""))
    with pytest.raises(CliError, match="which kctl cannot run"):
        make_deserializer("com.example.Mine", None)
    with pytest.raises(CliError, match="which kctl cannot run"):
        parse_formatter("com.example.Mine")
    with pytest.raises(CliError, match="which kctl cannot run"):
        require_line_reader("com.example.Mine")


def test_classes_of_old_and_new_packages_are_known() -> None:
    offsets = "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter"
    assert parse_formatter(offsets) is JavaFormatter.OFFSETS
    assert parse_formatter("kafka.tools.DefaultMessageFormatter") is JavaFormatter.DEFAULT
    require_line_reader("kafka.tools.ConsoleProducer$LineMessageReader")
