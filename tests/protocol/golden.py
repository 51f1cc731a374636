"""Golden bytes written by Kafka's own classes and clients, by declared message."""

import base64
import json
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from broker.protocol import headers
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages import (
    consumer_protocol,
    default_principal,
    group_records,
    request_class,
    response_class,
    transaction_records,
)
from broker.protocol.schema import Message, StructMeta

GOLDEN = Path(__file__).parents[1] / "golden"
SAMPLES = ("messages.jsonl", "messages-nullable.jsonl", "messages-4.1.jsonl")
"""By Kafka 3.9.1; with structs that may be null; APIs and versions of Kafka 4.1.1."""
DATA_MODULES = (headers, consumer_protocol, default_principal, group_records, transaction_records)

MessageVersion = tuple[type[Message], int]


class Sample(NamedTuple):
    """One message: its bytes, and Kafka's JSON view of them."""

    data: bytes
    fields: dict[str, Any]


@cache
def samples() -> dict[MessageVersion, list[Sample]]:
    """Every sample of a declared message; each version of each message has three."""
    found: dict[MessageVersion, list[Sample]] = {}
    for line in chain.from_iterable((GOLDEN / name).read_text().splitlines() for name in SAMPLES):
        sample = json.loads(line)
        if (cls := _message_class(sample)) is not None:
            parsed = Sample(bytes.fromhex(sample["hex"]), sample["fields"])
            found.setdefault((cls, sample["version"]), []).append(parsed)
    return found


@cache
def declared() -> dict[type[Message], range]:
    """Every message there is, with its versions."""
    apis = [of(api) for api in ApiKey for of in (request_class, response_class)]
    data = [cls for module in DATA_MODULES for cls in _messages_in(module)]
    return {cls: range(cls.versions[0], cls.versions[1] + 1) for cls in (*apis, *data)}


def _messages_in(module: ModuleType) -> list[type[Message]]:
    return [
        cls
        for cls in vars(module).values()
        if isinstance(cls, StructMeta) and issubclass(cls, Message) and cls is not Message
    ]


def _message_class(sample: dict[str, Any]) -> type[Message] | None:
    """The declared class of a sample; None for messages outside the declared protocol."""
    if sample["kind"] in ("header", "data"):
        for module in DATA_MODULES:
            for name in (sample["message"], sample["message"] + "Data"):
                found: type[Message] | None = getattr(module, name, None)
                if found is not None:
                    return found
        return None
    if sample["api_key"] not in list(ApiKey):
        return None
    of = request_class if sample["kind"] == "request" else response_class
    return of(sample["api_key"])


class Exchange(NamedTuple):
    """A recorded request and its response, without the size."""

    api_key: int
    version: int
    request: bytes
    response: bytes


def exchanges() -> Iterator[Exchange]:
    """Every recorded exchange of a declared API."""
    with (GOLDEN / "frames.jsonl").open() as lines:
        for line in lines:
            frame = json.loads(line)
            if frame["api_key"] in list(ApiKey):
                request, response = (base64.b64decode(frame[k]) for k in ("request", "response"))
                yield Exchange(frame["api_key"], frame["api_version"], request, response)
