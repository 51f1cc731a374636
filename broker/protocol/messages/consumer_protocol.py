"""What consumers tell each other inside JoinGroup and SyncGroup."""

from broker.protocol.schema import Message, Struct, wire


class ResponseTopicPartition(Struct):
    topic: str = wire("string")
    partitions: list[int] = wire("[]int32")


class ConsumerProtocolAssignment(Message, versions=(0, 3)):
    """The partitions one member gets."""

    assigned_partitions: list[ResponseTopicPartition] = wire([ResponseTopicPartition])
    user_data: bytes | None = wire("bytes", nullable=0, default=None)


class ConsumerProtocolSubscription(Message, versions=(0, 3)):
    """A member's subscription, and the partitions it owns."""

    topics: list[str] = wire("[]string")
    user_data: bytes | None = wire("bytes", nullable=0, default=None)
    owned_partitions: list[ResponseTopicPartition] = wire(
        [ResponseTopicPartition], since=1, ignorable=True
    )
    generation_id: int = wire("int32", since=2, default=-1, ignorable=True)
    rack_id: str | None = wire("string", since=3, nullable=3, default=None, ignorable=True)
