"""/consumers: groups of old consumers, which stored members, owners and offsets in ZooKeeper.

Kafka still stores offsets there for OffsetCommit and OffsetFetch version 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from broker.metadata.znodes.json_text import decode_json, encode_json, reading
from broker.model import TopicPartition

CONSUMERS_PATH = "/consumers"


class ConsumerOffsetZnode:
    """/consumers/G/offsets/T/N: the next offset to read, as a number in text."""

    @staticmethod
    def path(group: str, partition: TopicPartition) -> str:
        """The path of a committed offset."""
        return f"{CONSUMERS_PATH}/{group}/offsets/{partition.topic}/{partition.partition}"

    @staticmethod
    def encode(offset: int) -> bytes:
        """As Kafka writes it."""
        return str(offset).encode()

    @staticmethod
    def decode(path: str, data: bytes | None) -> int | None:
        """The offset; None for a node without data."""
        if data is None:
            return None
        with reading(path, data):
            return int(data.decode())


@dataclass(frozen=True, slots=True)
class ConsumerIdZnode:
    """/consumers/G/ids/C: a live member, with the number of its threads by topic; ephemeral."""

    subscription: Mapping[str, int]
    pattern: str
    """How the keys of the subscription select topics: `static`, `white_list`, `black_list`."""
    timestamp: int

    STATIC: ClassVar[str] = "static"

    @staticmethod
    def path(group: str, consumer_id: str) -> str:
        """The path of a member's registration."""
        return f"{CONSUMERS_PATH}/{group}/ids/{consumer_id}"

    def encode(self) -> bytes:
        """As old consumers wrote it."""
        return encode_json(
            {
                "version": 1,
                "subscription": self.subscription,
                "pattern": self.pattern,
                "timestamp": str(self.timestamp),
            }
        )

    @classmethod
    def decode(cls, path: str, data: bytes | None) -> "ConsumerIdZnode":
        """The member."""
        fields = decode_json(path, data)
        with reading(path, data):
            subscription = {topic: int(n) for topic, n in fields["subscription"].items()}
            return cls(subscription, fields["pattern"], int(fields.get("timestamp", 0)))


def consumer_owner_path(group: str, partition: TopicPartition) -> str:
    """The ephemeral node whose data is the id of the thread that reads the partition."""
    return f"{CONSUMERS_PATH}/{group}/owners/{partition.topic}/{partition.partition}"
