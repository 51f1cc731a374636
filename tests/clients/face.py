"""The common interface of client libraries that the contract tests use.

A new client is one class with these methods, and one entry in `adapters.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

TIMEOUT_S = 20

CODECS = ("gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True)
class Message:
    """A record, sent or received; offset and timestamp do not count for equality."""

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
    """How a consumer joins a group."""

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
        """Records that have arrived."""

    def partitions(self) -> set[int]:
        """The assigned partitions."""

    def commit(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Commit, and wait for the response."""

    def commit_async(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Commit without waiting."""

    def committed(self, topic: str, partition: int) -> int | None:
        """The committed offset; None if the group has not committed one."""

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        """The first offset with at least this timestamp; None if all records are older."""

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
    """The codecs that the installed library supports."""
    abilities: ClassVar[frozenset[str]]
    """What the library supports; contracts name what they need."""

    def produce(
        self, servers: str, topic: str, messages: Sequence[Message], how: Sending = PLAINLY
    ) -> list[int]:
        """Send all and wait for all; returns their offsets (-1 with acks=0)."""

    def consumer(self, servers: str, how: Joining = ALONE) -> ClientConsumer: ...
    def admin(self, servers: str) -> ClientAdmin: ...


class Refused(Exception):
    """The broker returned an error; the text is the name of its code."""


def read(consumer: ClientConsumer, count: int) -> list[Message]:
    """Poll until `count` messages have arrived, or pytest's time limit ends the test."""
    messages: list[Message] = []
    while len(messages) < count:
        messages += consumer.poll()
    return messages


def error_name(text: str) -> str:
    """Normalize TopicAlreadyExistsError and TOPIC_ALREADY_EXISTS to topicalreadyexists."""
    return text.replace("_", "").lower().removesuffix("exception").removesuffix("error")
