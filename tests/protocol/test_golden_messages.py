"""Every message, every version, against bytes and values that Kafka's own classes wrote."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.protocol import headers
from broker.protocol.api_keys import ApiKey
from broker.protocol.codec import decode, encode
from broker.protocol.json_view import to_json
from broker.protocol.messages import (
    consumer_protocol,
    default_principal,
    group_records,
    request_class,
    response_class,
    transaction_records,
)
from broker.protocol.schema import Message

GOLDEN = Path(__file__).parents[1] / "golden" / "messages.jsonl"
DATA_MODULES = (headers, consumer_protocol, default_principal, group_records, transaction_records)


def message_class(sample: dict[str, Any]) -> type[Message] | None:
    """The declared class of a sample; None for messages outside the declared protocol."""
    if sample["kind"] in ("header", "data"):
        for module in DATA_MODULES:
            for name in (sample["message"], sample["message"] + "Data"):
                if found := getattr(module, name, None):
                    return found  # type: ignore[no-any-return]
        return None
    if sample["api_key"] not in list(ApiKey):
        return None
    of = request_class if sample["kind"] == "request" else response_class
    return of(sample["api_key"])


def samples() -> Iterator[Any]:
    with GOLDEN.open() as lines:
        by_version: dict[tuple[type[Message], int], list[dict[str, Any]]] = {}
        for line in lines:
            sample = json.loads(line)
            if (cls := message_class(sample)) is not None:
                by_version.setdefault((cls, sample["version"]), []).append(sample)
    for (cls, version), of_version in by_version.items():
        yield pytest.param(cls, version, of_version, id=f"{cls.__name__}-v{version}")


@pytest.mark.parametrize(("cls", "version", "samples"), list(samples()))
def test_decode_gives_kafkas_values_and_encode_gives_kafkas_bytes(
    cls: type[Message], version: int, samples: list[dict[str, Any]]
) -> None:
    for sample in samples:
        data = bytes.fromhex(sample["hex"])
        for buffer in (data, bytearray(data), memoryview(data)):
            message = decode(cls, buffer, version)
            assert to_json(message, version) == sample["fields"]
            assert encode(message, version) == data
