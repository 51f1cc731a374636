"""/brokers/topics: each topic's replicas, and the state of each partition."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from broker.metadata.znodes.json_text import (
    decode_json,
    encode_json,
    reading,
    scala_mutable_map,
)
from broker.model import TopicPartition, Uuid

TOPICS_PATH = "/brokers/topics"


class ReplicaAssignment(NamedTuple):
    """The replicas of a partition; during a reassignment also those added and removed (KIP-455).

    Invariant: adding and removing replicas are among the replicas.
    """

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicZnode:
    """/brokers/topics/T. Version 2 added reassignments (KIP-455), 3 the topic's id (KIP-516)."""

    topic: str
    topic_id: Uuid | None
    assignment: Mapping[int, ReplicaAssignment]

    VERSION: ClassVar[int] = 3

    @staticmethod
    def path(topic: str) -> str:
        """The path of a topic's assignment."""
        return f"{TOPICS_PATH}/{topic}"

    def encode(self) -> bytes:
        """As Kafka writes it."""
        adding = {p: a.adding_replicas for p, a in self.assignment.items() if a.adding_replicas}
        removing = {
            p: a.removing_replicas for p, a in self.assignment.items() if a.removing_replicas
        }
        fields: dict[str, Any] = {
            "partitions": _by_partition({p: a.replicas for p, a in self.assignment.items()})
        }
        if self.topic_id is not None:
            fields["topic_id"] = str(self.topic_id)
        fields["adding_replicas"] = _by_partition(adding)
        fields["removing_replicas"] = _by_partition(removing)
        fields["version"] = self.VERSION
        return encode_json(fields)

    @classmethod
    def decode(cls, topic: str, data: bytes | None) -> "TopicZnode":
        """The assignment, sorted by partition; accepts all versions."""
        path = cls.path(topic)
        fields = decode_json(path, data)
        with reading(path, data):
            adding = fields.get("adding_replicas", {})
            removing = fields.get("removing_replicas", {})
            topic_id = fields.get("topic_id")
            assignment = {
                int(partition): ReplicaAssignment(
                    tuple(replicas),
                    tuple(adding.get(partition, ())),
                    tuple(removing.get(partition, ())),
                )
                for partition, replicas in fields.get("partitions", {}).items()
            }
            return cls(
                topic, Uuid.parse(topic_id) if topic_id else None, dict(sorted(assignment.items()))
            )


def _by_partition(replicas: Mapping[int, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    return scala_mutable_map({str(partition): ids for partition, ids in replicas.items()})


def partitions_path(topic: str) -> str:
    """The parent of a topic's partitions."""
    return f"{TopicZnode.path(topic)}/partitions"


def partition_path(partition: TopicPartition) -> str:
    """The parent of a partition's state."""
    return f"{partitions_path(partition.topic)}/{partition.partition}"


@dataclass(frozen=True, slots=True)
class PartitionStateZnode:
    """/brokers/topics/T/partitions/N/state: leader and ISR.

    The node's version is the partition epoch; it is not part of the data.
    Field `is_recovering`: the leader was elected uncleanly and has not finished recovery (KIP-704).
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    is_recovering: bool = False

    @staticmethod
    def path(partition: TopicPartition) -> str:
        """The path of a partition's state."""
        return f"{partition_path(partition)}/state"

    def encode(self) -> bytes:
        """As Kafka writes it."""
        fields: dict[str, Any] = {
            "controller_epoch": self.controller_epoch,
            "leader": self.leader,
            "version": 1,
        }
        if self.is_recovering:
            fields["leader_recovery_state"] = 1
        fields["leader_epoch"] = self.leader_epoch
        fields["isr"] = self.isr
        return encode_json(fields)

    @classmethod
    def decode(cls, partition: TopicPartition, data: bytes | None) -> "PartitionStateZnode":
        """The state."""
        path = cls.path(partition)
        fields = decode_json(path, data)
        with reading(path, data):
            return cls(
                leader=int(fields["leader"]),
                leader_epoch=int(fields["leader_epoch"]),
                isr=tuple(map(int, fields["isr"])),
                controller_epoch=int(fields["controller_epoch"]),
                is_recovering=bool(fields.get("leader_recovery_state", 0)),
            )
