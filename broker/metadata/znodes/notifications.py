"""Notifications from brokers to the controller: a changed ISR, a failed log directory."""

from typing import ClassVar

from broker.metadata.znodes.admin import PartitionsZnode
from broker.metadata.znodes.json_text import decode_json, encode_json, reading

LOG_DIR_FAILURE = 1


class IsrChangeZnode(PartitionsZnode):
    """/isr_change_notification/isr_change_N: partitions whose leader has written a new ISR.

    Superseded by AlterPartition (KIP-497); Kafka still reads them.
    """

    PARENT: ClassVar[str] = "/isr_change_notification"
    PATH: ClassVar[str] = PARENT
    PREFIX: ClassVar[str] = "/isr_change_notification/isr_change_"


class LogDirEventZnode:
    """/log_dir_event_notification/log_dir_event_N: a broker has lost a log directory."""

    PARENT: ClassVar[str] = "/log_dir_event_notification"
    PREFIX: ClassVar[str] = "/log_dir_event_notification/log_dir_event_"

    @staticmethod
    def encode(broker_id: int) -> bytes:
        """As Kafka writes it."""
        return encode_json({"version": 1, "broker": broker_id, "event": LOG_DIR_FAILURE})

    @classmethod
    def decode(cls, data: bytes | None) -> int:
        """The broker's id."""
        fields = decode_json(cls.PARENT, data)
        with reading(cls.PARENT, data):
            return int(fields["broker"])
