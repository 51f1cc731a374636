"""What confluent-kafka has consumed, with types: its accessors may return None, those here do not.

They fail the test instead: only an event, such as an error, has no partition, offset or value.
"""

from confluent_kafka import Message


def partition_of(message: Message) -> int:
    """The partition of a record, or of the end of a partition."""
    partition = message.partition()
    assert partition is not None, message.error()
    return partition


def offset_of(message: Message) -> int:
    """The offset of a record."""
    offset = message.offset()
    assert offset is not None, message.error()
    return offset


def value_of(message: Message) -> bytes:
    """The value of a record that is not a tombstone."""
    value = message.value()
    assert value is not None, message.error()
    return value


def headers_of(message: Message) -> list[tuple[str, bytes | None]]:
    """The headers of a record; librdkafka returns their values as bytes only."""
    headers: list[tuple[str, bytes | None]] = []
    for header in message.headers() or ():
        assert isinstance(header, tuple), header
        name, value = header
        assert not isinstance(value, str), value
        headers.append((name, value))
    return headers
