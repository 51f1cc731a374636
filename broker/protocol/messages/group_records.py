"""Keys and values of the records in `__consumer_offsets`. The key's version tells the kind."""

from broker.protocol.schema import Message, Struct, wire


class OffsetCommitKey(Message, versions=(0, 1)):
    """Versions 0 and 1 of a key: the offset of one partition for one group."""

    group: str = wire("string", until=1)
    topic: str = wire("string", until=1)
    partition: int = wire("int32", until=1)


class OffsetCommitValue(Message, versions=(0, 4), flexible=4):
    """A committed offset."""

    offset: int = wire("int64")
    leader_epoch: int = wire("int32", since=3, default=-1, ignorable=True)
    metadata: str = wire("string")
    commit_timestamp: int = wire("int64")
    expire_timestamp: int = wire("int64", since=1, until=1, default=-1, ignorable=True)


class GroupMetadataKey(Message, versions=(2, 2)):
    """Version 2 of a key: a group."""

    group: str = wire("string", since=2, until=2)


class MemberMetadata(Struct):
    member_id: str = wire("string")
    group_instance_id: str | None = wire(
        "string", since=3, nullable=3, default=None, ignorable=True
    )
    client_id: str = wire("string")
    client_host: str = wire("string")
    rebalance_timeout: int = wire("int32", since=1, default=-1, ignorable=True)
    session_timeout: int = wire("int32")
    subscription: bytes = wire("bytes")
    assignment: bytes = wire("bytes")


class GroupMetadataValue(Message, versions=(0, 4), flexible=4):
    """A group's generation and members."""

    protocol_type: str = wire("string")
    generation: int = wire("int32")
    protocol: str | None = wire("string", nullable=0)
    leader: str | None = wire("string", nullable=0)
    current_state_timestamp: int = wire("int64", since=2, default=-1, ignorable=True)
    members: list[MemberMetadata] = wire([MemberMetadata])
