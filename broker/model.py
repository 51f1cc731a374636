"""The types that all packages share."""

import base64
import binascii
import os
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, Self

NO_LEADER: Final = -1
"""The leader id of a partition that has no leader."""
LEADER_DURING_DELETE: Final = -2
"""The leader id of a partition whose topic is being deleted."""


class TopicPartition(NamedTuple):
    """One partition of one topic; prints as Kafka prints it, `orders-3`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class ProducerIdAndEpoch(NamedTuple):
    """A producer: its id, and the epoch that distinguishes it from fenced predecessors."""

    producer_id: int
    producer_epoch: int


class Uuid(bytes):
    """Kafka's 16-byte id of a topic or directory; prints as Kafka's 22 base64 characters.

    A `bytes` so that it is hashed and compared at C speed: fetch requests look topics up by it.
    """

    __slots__ = ()

    ZERO: ClassVar["Uuid"]

    @classmethod
    def random(cls) -> Self:
        """A new id; its text never starts with a dash, which command lines take for an option."""
        while True:
            raw = bytearray(os.urandom(16))
            raw[6] = raw[6] & 0x0F | 0x40  # RFC 9562, version 4
            raw[8] = raw[8] & 0x3F | 0x80
            uuid = cls(raw)
            if not str(uuid).startswith("-"):
                return uuid

    @classmethod
    def parse(cls, text: str) -> Self:
        """The id with this text; ValueError if it is malformed."""
        try:
            raw = base64.urlsafe_b64decode(text + "==")
        except (binascii.Error, ValueError) as error:
            raise ValueError(f"{text!r} is not a Kafka uuid: {error}") from error
        if len(text) != 22 or len(raw) != 16:
            raise ValueError(f"{text!r} is not a Kafka uuid: expected 22 base64url characters")
        return cls(raw)

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(self)[:22].decode("ascii")

    def __repr__(self) -> str:
        return f"Uuid({str(self)!r})"


Uuid.ZERO = Uuid(16)


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """A partition's leader, ISR and replicas, as the controller sends them in LeaderAndIsr."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    partition_epoch: int = 0
    controller_epoch: int = 0
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()

    @property
    def is_reassigning(self) -> bool:
        """Whether the replicas are being reassigned."""
        return bool(self.adding_replicas or self.removing_replicas)


class BrokerEpoch:
    """The epoch of this broker's registration: one mutable object for the whole broker.

    Field `value`: the czxid of /brokers/ids/N, -1 before the first registration. A broker that
    registers again after its session expired gets a larger epoch. Requests with an older epoch were
    meant for the previous registration and must be rejected.
    """

    __slots__ = ("value",)

    UNKNOWN: ClassVar[int] = -1

    def __init__(self, value: int = UNKNOWN) -> None:
        self.value = value

    def is_stale(self, broker_epoch: int) -> bool:
        """Whether a request with this broker epoch is outdated; -1 means that it has none."""
        return broker_epoch != self.UNKNOWN and broker_epoch < self.value
