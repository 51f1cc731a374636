"""One face for the clients people use: what the contracts ask, whatever the library behind it.

A new client is one class with these methods, and one entry in `adapters.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

TIMEOUT_S = 20

CODECS = ("gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True)
class Message:
    """A record, sent or received; two are equal when a reader could not tell them apart."""

    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp_ms: int | None = field(default=None, compare=False)
    offset: int = field(default=-1, compare=False)


@dataclass(frozen=True)
class Sending:
    """How a producer sends."""

    acks: int = -1
    compression: str | None = None
    is_idempotent: bool = False
    linger_ms: int = 0
    batch_bytes: int = 16_384


PLAINLY = Sending()


@dataclass(frozen=True)
class Joining:
    """How a consumer takes part."""

    group_id: str | None = None
    group_instance_id: str | None = None
    is_cooperative: bool = False
    isolation_level: str = "read_uncommitted"


ALONE = Joining()


class ClientConsumer(Protocol):
    """A consumer; it does not commit by itself, and starts at the beginning."""

    def subscribe(self, topic: str) -> None:
        """Join the group."""

    def assign(self, topic: str, positions: Mapping[int, int]) -> None:
        """Read partitions from offsets, without a group."""

    def poll(self, timeout_s: float = 0.05) -> list[Message]:
        """What has come."""

    def partitions(self) -> set[int]:
        """Those assigned by the group."""

    def commit(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Commit, and wait until it is so."""

    def commit_async(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Commit; it will be so."""

    def committed(self, topic: str, partition: int) -> int | None:
        """What the group has committed; None if nothing."""

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        """The first record as late as this; None behind the last."""

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """First and end offset."""

    def close(self) -> None:
        """Leave the group, unless a static member."""


class ClientAdmin(Protocol):
    """An administrator."""

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> None: ...
    def delete_topic(self, name: str) -> None: ...
    def add_partitions(self, name: str, total: int) -> None: ...
    def topics(self) -> dict[str, int]:
        """Number of partitions by name."""

    def topic_config(self, name: str, key: str) -> str | None: ...
    def set_topic_config(self, name: str, key: str, value: str) -> None: ...
    def groups(self) -> set[str]: ...
    def group_state(self, group_id: str) -> str: ...
    def delete_group(self, group_id: str) -> None: ...
    def delete_records(self, topic: str, partition: int, before: int) -> None: ...
    def close(self) -> None: ...


class Client(Protocol):
    """One library."""

    name: ClassVar[str]
    codecs: ClassVar[Sequence[str]]
    """What it can compress with, as it is installed here."""
    abilities: ClassVar[frozenset[str]]
    """Contracts name what they need of it."""

    def produce(
        self, servers: str, topic: str, messages: Sequence[Message], how: Sending = PLAINLY
    ) -> list[int]:
        """Send all, wait for all; their offsets (-1 where nobody acknowledges)."""

    def consumer(self, servers: str, how: Joining = ALONE) -> ClientConsumer: ...
    def admin(self, servers: str) -> ClientAdmin: ...


class Refused(Exception):
    """The broker said no; the name of its error code, as Kafka spells it."""


def read(consumer: ClientConsumer, count: int) -> list[Message]:
    """Poll until `count` have come; pytest's own time limit ends it otherwise."""
    messages: list[Message] = []
    while len(messages) < count:
        messages += consumer.poll()
    return messages


def error_name(text: str) -> str:
    """TopicAlreadyExistsError, TOPIC_ALREADY_EXISTS and the like, all as topicalreadyexists."""
    return text.replace("_", "").lower().removesuffix("exception").removesuffix("error")
