"""Nodes that exist once per cluster: its id, its features, its producer ids."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from broker.metadata.znodes.json_text import decode_json, encode_json, reading

CLUSTER_PATH = "/cluster"


class ClusterIdZnode:
    """/cluster/id: written once by the first broker; every `meta.properties` contains it too."""

    PATH: ClassVar[str] = "/cluster/id"

    @staticmethod
    def encode(cluster_id: str) -> bytes:
        """As Kafka writes it."""
        return encode_json({"version": "1", "id": cluster_id})

    @classmethod
    def decode(cls, data: bytes | None) -> str:
        """The cluster's id."""
        fields = decode_json(cls.PATH, data)
        with reading(cls.PATH, data):
            return str(fields["id"])


@dataclass(frozen=True, slots=True)
class FeatureZnode:
    """/feature: the finalized features (KIP-584); version 1 has a minimum level for each too."""

    is_enabled: bool
    features: Mapping[str, int] = field(default_factory=dict)
    version: int = 2

    PATH: ClassVar[str] = "/feature"

    def encode(self) -> bytes:
        """As Kafka writes it."""
        names = ("max_version_level", "min_version_level")[: 2 if self.version == 1 else 1]
        features = {name: dict.fromkeys(names, level) for name, level in self.features.items()}
        status = int(self.is_enabled)
        return encode_json({"features": features, "version": self.version, "status": status})

    @classmethod
    def decode(cls, data: bytes | None) -> "FeatureZnode":
        """The features and their maximum levels."""
        fields = decode_json(cls.PATH, data)
        with reading(cls.PATH, data):
            if fields["version"] not in (1, 2) or fields["status"] not in (0, 1):
                raise ValueError("unsupported version or status")
            levels = {n: int(f["max_version_level"]) for n, f in fields["features"].items()}
            return cls(bool(fields["status"]), levels, fields["version"])


@dataclass(frozen=True, slots=True)
class ProducerIdBlockZnode:
    """/latest_producer_id_block: the block of producer ids that was allocated last.

    Kafka creates the node, without data, before the first block is allocated.
    """

    broker_id: int
    first_producer_id: int
    last_producer_id: int

    PATH: ClassVar[str] = "/latest_producer_id_block"
    NUM_IDS: ClassVar[int] = 1000

    def encode(self) -> bytes:
        """As Kafka writes it."""
        return encode_json(
            {
                "version": 1,
                "broker": self.broker_id,
                "block_start": str(self.first_producer_id),
                "block_end": str(self.last_producer_id),
            }
        )

    @classmethod
    def decode(cls, data: bytes | None) -> "ProducerIdBlockZnode":
        """The block."""
        fields = decode_json(cls.PATH, data)
        with reading(cls.PATH, data):
            return cls(int(fields["broker"]), int(fields["block_start"]), int(fields["block_end"]))

    @classmethod
    def next_block(
        cls, broker_id: int, latest: "ProducerIdBlockZnode | None"
    ) -> "ProducerIdBlockZnode":
        """The block after `latest`; the first block begins with 0."""
        first = latest.last_producer_id + 1 if latest else 0
        return cls(broker_id, first, first + cls.NUM_IDS - 1)
