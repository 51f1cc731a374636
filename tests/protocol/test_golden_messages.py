"""Every message, every version, against bytes and values that Kafka's own classes wrote."""

import pytest

from broker.protocol.codec import decode, encode
from broker.protocol.json_view import to_json
from broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from broker.protocol.schema import Message
from tests.protocol.golden import Sample, declared, samples


@pytest.mark.parametrize(
    ("cls", "version", "of_version"),
    [
        pytest.param(*key, found, id=f"{key[0].__name__}-v{key[1]}")
        for key, found in samples().items()
    ],
)
def test_decode_gives_kafkas_values_and_encode_gives_kafkas_bytes(
    cls: type[Message], version: int, of_version: list[Sample]
) -> None:
    for data, fields in of_version:
        for buffer in (data, bytearray(data), memoryview(data)):
            message = decode(cls, buffer, version)
            assert to_json(message, version) == fields
            assert encode(message, version) == data


def test_every_declared_version_has_samples() -> None:
    wanted = {(cls, version) for cls, versions in declared().items() for version in versions}
    newer_than_the_kafka_that_wrote_them = {(ConsumerGroupHeartbeatResponse, 1)}
    assert wanted - samples().keys() == newer_than_the_kafka_that_wrote_them
