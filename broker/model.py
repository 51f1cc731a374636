"""The few nouns every room shares."""

import base64
import binascii
import os
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self


class TopicPartition(NamedTuple):
    """One partition of one topic; prints as Kafka prints it, `orders-3`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Uuid(bytes):
    """Kafka's 16-byte id of a topic or directory; prints as Kafka's 22 base64 characters.

    A `bytes` so that it is hashed and compared at C speed: fetch requests look topics up by it.
    """

    __slots__ = ()

    ZERO: ClassVar["Uuid"]

    @classmethod
    def random(cls) -> Self:
        """A new id; never one whose text starts with a dash, which shells take for a flag."""
        while True:
            raw = bytearray(os.urandom(16))
            raw[6] = raw[6] & 0x0F | 0x40  # RFC 9562, version 4
            raw[8] = raw[8] & 0x3F | 0x80
            uuid = cls(raw)
            if not str(uuid).startswith("-"):
                return uuid

    @classmethod
    def parse(cls, text: str) -> Self:
        """The id that prints as `text`; ValueError says what is wrong with it."""
        try:
            raw = base64.urlsafe_b64decode(text + "==")
        except (binascii.Error, ValueError) as error:
            raise ValueError(f"{text!r} is not a Kafka uuid: {error}") from error
        if len(text) != 22 or len(raw) != 16:
            raise ValueError(f"{text!r} is not a Kafka uuid: 22 base64url characters are wanted")
        return cls(raw)

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(self)[:22].decode("ascii")

    def __repr__(self) -> str:
        return f"Uuid({str(self)!r})"


Uuid.ZERO = Uuid(16)


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """What the controller decided of a partition."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    partition_epoch: int = 0
    controller_epoch: int = 0


class BrokerEpoch:
    """The epoch of this broker's registration, in one box for the whole broker.

    Field `value`: the czxid of /brokers/ids/N, -1 before the first registration. A broker that has
    to register again, because its session expired, gets a larger one: requests that name an older
    epoch were meant for its life before, and must not be carried out.
    """

    __slots__ = ("value",)

    UNKNOWN: ClassVar[int] = -1

    def __init__(self, value: int = UNKNOWN) -> None:
        self.value = value

    def is_stale(self, broker_epoch: int) -> bool:
        """Whether a request that names this epoch comes too late; -1 names none."""
        return broker_epoch != self.UNKNOWN and broker_epoch < self.value
