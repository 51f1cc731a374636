"""/controller and /controller_epoch: who decides, and how often that has changed."""

from dataclasses import dataclass
from typing import ClassVar

from broker.metadata.znodes.json_text import decode_json, encode_json, reading

NO_KRAFT_EPOCH = -1


@dataclass(frozen=True, slots=True)
class ControllerZnode:
    """/controller: the controller's id; ephemeral, whoever creates it is the controller."""

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
    """/controller_epoch: the epoch as a number in text; its node's version fences old ones."""

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
