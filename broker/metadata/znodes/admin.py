"""/admin: requests to the controller that tools make by creating a znode."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from broker.metadata.znodes.json_text import decode_json, encode_json, reading
from broker.model import TopicPartition

ADMIN_PATH = "/admin"
DELETE_TOPICS_PATH = "/admin/delete_topics"


def delete_topic_path(topic: str) -> str:
    """The node that requests a topic's deletion; it has no data."""
    return f"{DELETE_TOPICS_PATH}/{topic}"


class PartitionsZnode:
    """A node with a list of partitions; base class."""

    PATH: ClassVar[str]

    @classmethod
    def encode(cls, partitions: Iterable[TopicPartition]) -> bytes:
        """As Kafka writes it, in the given order."""
        return encode_json({"version": 1, "partitions": [tp._asdict() for tp in partitions]})

    @classmethod
    def decode(cls, data: bytes | None) -> list[TopicPartition]:
        """The partitions."""
        fields = decode_json(cls.PATH, data)
        with reading(cls.PATH, data):
            return [_partition(item) for item in fields["partitions"]]


class PreferredReplicaElectionZnode(PartitionsZnode):
    """/admin/preferred_replica_election: partitions whose preferred leaders are to be elected."""

    PATH: ClassVar[str] = "/admin/preferred_replica_election"


class ReassignPartitionsZnode:
    """/admin/reassign_partitions: requested replicas by partition; superseded by KIP-455."""

    PATH: ClassVar[str] = "/admin/reassign_partitions"

    @staticmethod
    def encode(reassignment: Mapping[TopicPartition, tuple[int, ...]]) -> bytes:
        """As Kafka writes it, in the given order."""
        partitions = [{**tp._asdict(), "replicas": ids} for tp, ids in reassignment.items()]
        return encode_json({"version": 1, "partitions": partitions})

    @classmethod
    def decode(cls, data: bytes | None) -> dict[TopicPartition, tuple[int, ...]]:
        """The replicas by partition."""
        fields = decode_json(cls.PATH, data)
        with reading(cls.PATH, data):
            return {_partition(p): tuple(map(int, p["replicas"])) for p in fields["partitions"]}


def _partition(item: Mapping[str, Any]) -> TopicPartition:
    return TopicPartition(str(item["topic"]), int(item["partition"]))
