"""/controller and /controller_epoch: the active controller, and the number of elections so far.

/controller_candidates is not Kafka's: it is the queue of `controller.election=fair`.
"""

from dataclasses import dataclass
from typing import ClassVar

from broker.metadata.znodes.json_text import decode_json, encode_json, reading

NO_KRAFT_EPOCH = -1


@dataclass(frozen=True, slots=True)
class ControllerZnode:
    """/controller: the controller's id; ephemeral, the broker that creates it is the controller."""

    broker_id: int
    timestamp: int
    kraft_controller_epoch: int = NO_KRAFT_EPOCH

    PATH: ClassVar[str] = "/controller"

    def encode(self) -> bytes:
        """As Kafka writes it."""
        return encode_json(
            {
                "version": 2,
                "brokerid": self.broker_id,
                "timestamp": str(self.timestamp),
                "kraftControllerEpoch": self.kraft_controller_epoch,
            }
        )

    @classmethod
    def decode(cls, data: bytes | None) -> "ControllerZnode":
        """The controller; version 1 has no KRaft epoch."""
        fields = decode_json(cls.PATH, data)
        with reading(cls.PATH, data):
            return cls(
                int(fields["brokerid"]),
                int(fields.get("timestamp", 0)),
                int(fields.get("kraftControllerEpoch", NO_KRAFT_EPOCH)),
            )


class ControllerEpochZnode:
    """/controller_epoch: the epoch in decimal; the node's version fences older controllers."""

    PATH: ClassVar[str] = "/controller_epoch"
    INITIAL: ClassVar[int] = 0

    @staticmethod
    def encode(controller_epoch: int) -> bytes:
        """As Kafka writes it."""
        return str(controller_epoch).encode()

    @classmethod
    def decode(cls, data: bytes | None) -> int:
        """The epoch."""
        with reading(cls.PATH, data):
            return int((data or b"").decode())


class ControllerCandidateZnode:
    """/controller_candidates/candidate_N: a broker in the queue; ephemeral and sequential."""

    PARENT: ClassVar[str] = "/controller_candidates"
    PREFIX: ClassVar[str] = "/controller_candidates/candidate_"

    @staticmethod
    def encode(broker_id: int) -> bytes:
        """The broker's id, for people who read the node; no code does."""
        return encode_json({"version": 1, "brokerid": broker_id})
