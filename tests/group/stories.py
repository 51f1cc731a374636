"""Sequences of group requests, for our broker and for Apache Kafka.

`tell` runs every story against one server and returns the responses, with ids and ports replaced
and unordered lists sorted: two servers with the same behaviour return the same text.
"""

import asyncio
import re
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, TypedDict

from broker.net.broker_connection import BrokerConnection, Node, open_connection
from broker.protocol.json_view import to_json
from broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.end_txn import EndTxnRequest
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from broker.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from broker.protocol.messages.list_groups import ListGroupsRequest
from broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from broker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from broker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from broker.protocol.schema import Request

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NOT_ALIKE = ("host", "port", "nodeId", "errorMessage")
"""Fields that differ between servers: addresses and messages."""
SUBSCRIPTION = b"\x00\x00\x00\x00\x00\x01\x00\x05story\xff\xff\xff\xff"


class _TopicFields(TypedDict):
    """A topic in OffsetFetch, whose structs before and since version 8 differ by name only."""

    name: str
    partition_indexes: list[int]


class _ProducerFields(TypedDict):
    """What every request of a transactional producer begins with."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


class Teller:
    """The client of one story: sends requests and records the responses."""

    def __init__(self, address: str, run: str, name: str) -> None:
        host, port = address.rsplit(":", 1)
        self._node = Node(-1, host, int(port))
        self._run = run
        self.topic = f"story-{run}"
        self.group = f"{name}-{run}"
        self._answers: list[tuple[str, Any]] = []
        self._connections: list[BrokerConnection] = []

    async def connect(self) -> BrokerConnection:
        connection = await open_connection(self._node, "teller", 10)
        self._connections.append(connection)
        return connection

    async def ask(self, request: Request[Any], version: int) -> Any:
        """Send a request of this version on a connection of its own."""
        connection = await self.connect()
        place = len(self._answers)
        self._answers.append(("", None))  # recorded in the order of the requests
        answer = await connection.send(request, version)
        self._answers[place] = self._show(request, answer, version)
        return answer

    def _show(self, request: Request[Any], answer: Any, version: int) -> tuple[str, Any]:
        name = type(request).__name__.removesuffix("Request")
        return f"{name} v{version}", to_json(answer, version)

    def lines(self) -> list[str]:
        """The responses, in the order of the requests."""
        ids: dict[str, str] = {}
        told = [f"{what}: {_alike(answer, ids)!r}" for what, answer in self._answers]
        return [line.replace(self._run, "RUN") for line in told]

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    # Requests

    async def join(self, version: int, **changes: Any) -> JoinGroupResponse:
        values: dict[str, Any] = {
            "group_id": self.group,
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": 30_000 if version else -1,
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
        }
        answer: JoinGroupResponse = await self.ask(JoinGroupRequest(**(values | changes)), version)
        if answer.error_code == 79 and "member_id" not in changes:  # MEMBER_ID_REQUIRED
            return await self.join(version, **(changes | {"member_id": answer.member_id}))
        return answer

    async def sync(self, version: int, joined: JoinGroupResponse, **changes: Any) -> Any:
        values: dict[str, Any] = {
            "group_id": self.group,
            "generation_id": joined.generation_id,
            "member_id": joined.member_id,
            "assignments": [
                SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"part")
                for member in joined.members
            ],
        }
        if version >= 5:
            values |= {"protocol_type": "consumer", "protocol_name": "range"}
        return await self.ask(SyncGroupRequest(**(values | changes)), version)

    async def heartbeat(self, version: int, joined: JoinGroupResponse, **changes: Any) -> Any:
        values: dict[str, Any] = {
            "group_id": self.group,
            "generation_id": joined.generation_id,
            "member_id": joined.member_id,
        }
        return await self.ask(HeartbeatRequest(**(values | changes)), version)

    async def leave(self, version: int, *member_ids: str, **changes: Any) -> Any:
        values: dict[str, Any] = {"group_id": self.group}
        if version < 3:
            values["member_id"] = member_ids[0]
        else:
            values["members"] = [MemberIdentity(member_id=member_id) for member_id in member_ids]
        return await self.ask(LeaveGroupRequest(**(values | changes)), version)

    async def commit(self, version: int, *offsets: tuple[str, int, int], **changes: Any) -> Any:
        partition = changes.pop("partition", {})
        topics = [
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        **(
                            {
                                "partition_index": index,
                                "committed_offset": offset,
                                "committed_metadata": "m",
                            }
                            | partition
                        )
                    )
                ],
            )
            for topic, index, offset in offsets
        ]
        values: dict[str, Any] = {"group_id": self.group, "topics": topics}
        return await self.ask(OffsetCommitRequest(**(values | changes)), version)

    async def fetch(self, version: int, *indexes: int, **changes: Any) -> Any:
        named = _TopicFields(name=self.topic, partition_indexes=list(indexes))
        if version < 8:
            topics = [OffsetFetchRequestTopic(**named)] if indexes else None
            request = OffsetFetchRequest(group_id=self.group, topics=topics, **changes)
        else:
            several = [OffsetFetchRequestTopics(**named)] if indexes else None
            groups = [OffsetFetchRequestGroup(group_id=self.group, topics=several)]
            request = OffsetFetchRequest(groups=groups, **changes)
        return await self.ask(request, version)

    async def delete_offsets(self, *where: tuple[str, int]) -> Any:
        topics = [
            OffsetDeleteRequestTopic(
                name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index)]
            )
            for name, index in where
        ]
        return await self.ask(OffsetDeleteRequest(group_id=self.group, topics=topics), 0)

    async def describe(self, version: int = 5, **changes: Any) -> Any:
        return await self.ask(DescribeGroupsRequest(groups=[self.group], **changes), version)

    async def delete(self, version: int = 2) -> Any:
        return await self.ask(DeleteGroupsRequest(groups_names=[self.group]), version)

    async def listed(self, version: int, **filters: Any) -> None:
        """ListGroups, reduced to the groups of this story."""
        connection = await self.connect()
        request = ListGroupsRequest(**filters)
        answer = await connection.send(request, version)
        answer.groups[:] = [group for group in answer.groups if group.group_id == self.group]
        self._answers.append(self._show(request, answer, version))


def _alike(value: Any, ids: dict[str, str]) -> Any:
    """A normalized value: ids numbered in order of appearance, lists sorted."""
    if isinstance(value, str):
        return _UUID.sub(lambda found: ids.setdefault(found[0], f"#{len(ids) + 1}"), value)
    if isinstance(value, list):
        return sorted((_alike(item, ids) for item in value), key=repr)
    if isinstance(value, dict):
        # Fields that are not lists first: they number the ids by which lists are sorted.
        keys = sorted(value, key=lambda key: isinstance(value[key], list))
        return {key: _alike(value[key], ids) for key in keys if key not in NOT_ALIKE}
    return value


async def everyday(teller: Teller, version: int) -> None:
    """The lifecycle of a consumer, in every version of every API."""
    joined = await teller.join(version)
    synced, beat = min(version, 5), min(version, 4)
    await teller.describe(min(version, 5))
    await teller.heartbeat(beat, joined)
    await teller.sync(synced, joined)
    await teller.heartbeat(beat, joined)
    await teller.describe(min(version, 5))
    await teller.listed(min(version, 5))
    member = {}
    if version >= 1:
        member = {
            "generation_id_or_member_epoch": joined.generation_id,
            "member_id": joined.member_id,
        }
    await teller.commit(version, (teller.topic, 0, 5), (teller.topic, 1, 6), **member)
    await teller.fetch(version, 0, 1, 2)
    if version >= 2:
        await teller.fetch(version)
    if version >= 7:
        await teller.fetch(version, 0, require_stable=True)
    await teller.leave(synced, joined.member_id)
    await teller.describe(min(version, 5))
    await teller.fetch(version, 0)
    await teller.delete(min(version, 2))
    await teller.describe(min(version, 5))
    await teller.fetch(version, 0)


async def missing(teller: Teller) -> None:
    """Requests for an unknown group."""
    stranger = JoinGroupResponse(generation_id=1, member_id="stranger")
    await teller.heartbeat(4, stranger)
    await teller.sync(5, stranger)
    await teller.leave(2, "stranger")
    await teller.leave(5, "stranger", "other")
    await teller.describe(include_authorized_operations=True)
    await teller.delete()
    await teller.delete_offsets((teller.topic, 0))
    for version in range(10):
        await teller.fetch(version, 0, 1)
    for version in range(2, 10):
        await teller.fetch(version)
    member = {"generation_id_or_member_epoch": 3, "member_id": "stranger"}
    await teller.commit(9, (teller.topic, 0, 1), **member)
    await teller.join(9, member_id="stranger")
    await teller.listed(5)


async def no_name(teller: Teller) -> None:
    """The empty group id can have offsets, but no members."""
    teller.group = ""
    stranger = JoinGroupResponse(generation_id=1, member_id="stranger")
    await teller.join(9)
    await teller.join(3)
    await teller.sync(5, stranger)
    await teller.heartbeat(4, stranger)
    await teller.leave(5, "stranger")
    await teller.leave(0, "stranger")
    await teller.delete_offsets((teller.topic, 0))
    await teller.commit(9, (teller.topic, 0, 1))
    await teller.fetch(9, 0)
    await teller.describe()
    await teller.delete()


async def refused(teller: Teller) -> None:
    """Refused joins."""
    await teller.join(9, session_timeout_ms=1)
    await teller.join(9, session_timeout_ms=2_000_000_000)
    await teller.join(9, protocols=[])
    await teller.join(9, protocol_type="")
    joined = await teller.join(3)
    other = [JoinGroupRequestProtocol(name="other", metadata=b"")]
    await teller.join(9, protocols=other)
    await teller.join(9, protocol_type="connect")
    await teller.join(9, member_id="stranger")
    await teller.join(5, member_id="stranger", group_instance_id="unknown")
    await teller.sync(5, joined, protocol_type=None)
    await teller.sync(5, joined, protocol_name=None)
    await teller.sync(5, joined, protocol_name="other")
    await teller.sync(5, joined, protocol_type="connect")
    await teller.sync(4, joined, generation_id=7)
    await teller.sync(3, joined, group_instance_id="unknown")
    await teller.sync(3, joined, member_id="stranger")
    await teller.heartbeat(4, joined, generation_id=0)
    await teller.heartbeat(4, joined, member_id="stranger")
    await teller.heartbeat(4, joined, group_instance_id="unknown")
    await teller.leave(5, "stranger", "")
    await teller.delete()
    member = {
        "generation_id_or_member_epoch": joined.generation_id,
        "member_id": joined.member_id,
    }
    offset = (teller.topic, 0, 1)
    await teller.commit(9, offset, **member)  # before the sync
    await teller.sync(5, joined)
    await teller.commit(9, offset)
    await teller.commit(9, offset, **(member | {"generation_id_or_member_epoch": 9}))
    await teller.commit(9, offset, **(member | {"generation_id_or_member_epoch": -1}))
    await teller.commit(9, offset, **(member | {"member_id": "stranger"}))
    await teller.commit(9, offset, **member, group_instance_id="unknown")
    await teller.delete()
    await teller.leave(5, "stranger", joined.member_id, joined.member_id)


async def static(teller: Teller) -> None:
    """A static member returns, and its previous member id is fenced."""
    me = {"group_instance_id": "me"}
    first = await teller.join(9, **me)
    await teller.sync(5, first, **me)
    second = await teller.join(9, **me)
    await teller.sync(5, second, **me)
    await teller.heartbeat(4, first, **me)
    await teller.heartbeat(4, first)
    await teller.sync(5, first, **me)
    await teller.join(9, member_id=first.member_id, **me)
    old = {"generation_id_or_member_epoch": 1, "member_id": first.member_id}
    await teller.commit(9, (teller.topic, 0, 1), **old, **me)
    await teller.heartbeat(4, second, **me)
    third = await teller.join(5, **me)
    await teller.sync(3, third, **me)
    await teller.describe()
    gone = MemberIdentity(member_id=first.member_id, **me)
    await teller.leave(5, members=[gone, MemberIdentity(group_instance_id="other")])
    await teller.leave(5, members=[MemberIdentity(group_instance_id="me", reason="over")])
    await teller.describe()


async def two_members(teller: Teller) -> None:
    """The second member makes the first one rejoin; a third one only gets an id."""
    first = await teller.join(4)
    await teller.sync(3, first)
    rejoining = asyncio.ensure_future(teller.join(3, rebalance_timeout_ms=60_000))
    await _until_rebalancing(teller, first)
    await teller.describe()
    await teller.listed(5, states_filter=["preparingrebalance"])
    await teller.listed(5, states_filter=["Stable"])
    again = await teller.join(4, member_id=first.member_id)
    second = await rejoining
    await teller.describe()
    await teller.join(4, member_id=second.member_id)
    waiting = asyncio.ensure_future(teller.sync(5, second))
    await teller.sync(5, again)
    await waiting
    await teller.sync(5, second)
    await teller.join(4, member_id=second.member_id)
    await teller.describe(include_authorized_operations=True)
    await teller.listed(5, states_filter=["stable"], types_filter=["Classic"])
    await teller.listed(5, types_filter=["consumer"])
    await teller.listed(5, types_filter=["nonsense"])
    await teller.delete_offsets((teller.topic, 0), ("story", 0), ("missing", 0))
    await teller.leave(4, second.member_id, again.member_id)


async def _until_rebalancing(teller: Teller, joined: JoinGroupResponse) -> None:
    """Send heartbeats, which are not recorded, until the group rebalances."""
    connection = await teller.connect()
    request = HeartbeatRequest(
        group_id=teller.group, generation_id=joined.generation_id, member_id=joined.member_id
    )
    async with asyncio.timeout(20):
        while True:
            if (await connection.send(request, 4)).error_code == 27:  # REBALANCE_IN_PROGRESS
                return


async def simple(teller: Teller) -> None:
    """Offsets without members."""
    topic = teller.topic
    await teller.commit(1, (topic, 0, 1), partition={"commit_timestamp": 1_700_000_000_000})
    await teller.commit(2, (topic, 1, 2), retention_time_ms=60_000)
    await teller.commit(9, (topic, 2, 3), partition={"committed_leader_epoch": 4})
    await teller.commit(9, (topic, 0, 4), partition={"committed_metadata": None})
    await teller.fetch(9)
    await teller.fetch(5)
    await teller.fetch(1, 0, 1, 2, 3)
    large = {"committed_metadata": "x" * 4097}
    await teller.commit(9, (topic, 0, 5), partition=large)
    await teller.commit(9, (topic, 0, 6), partition={"committed_metadata": "x" * 4096})
    await teller.commit(9, ("missing", 0, 1), (topic, 99, 1), (topic, -1, 1), (topic, 1, -5))
    await teller.commit(9, ("missing", 0, 1))
    await teller.commit(9, (topic, 0, 7), group_instance_id="me")
    await teller.commit(9, (topic, 0, 7), member_id="me")
    await teller.describe()
    await teller.listed(3)
    await teller.delete_offsets((topic, 0), (topic, 99), ("missing", 0))
    await teller.delete_offsets()
    await teller.fetch(9)
    await teller.delete_offsets((topic, 1), (topic, 2))
    await teller.describe()
    await teller.listed(5)
    await teller.delete()


async def in_znodes(teller: Teller) -> None:
    """Version 0 stores offsets in znodes, as consumers of Kafka 0.8 did."""
    topic = teller.topic
    await teller.fetch(0, 0, 99)
    await teller.commit(0, (topic, 0, 5), ("missing", 0, 1))
    await teller.commit(0, (topic, 0, 6))
    await teller.commit(0, (topic, 1, 6), partition={"committed_metadata": "x" * 4097})
    await teller.fetch(0, 0, 1)
    await teller.fetch(1, 0)
    await teller.describe()
    teller.group = ""
    await teller.commit(0, (topic, 0, 5))
    await teller.fetch(0, 0)


async def not_consumers(teller: Teller) -> None:
    """A group with another protocol type, whose topics are not known."""
    connect = {
        "protocol_type": "connect",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"opaque")],
    }
    joined = await teller.join(3, **connect)
    await teller.sync(3, joined)
    await teller.describe()
    await teller.delete_offsets((teller.topic, 0))
    await teller.leave(3, joined.member_id)
    await teller.delete_offsets((teller.topic, 0))
    await teller.describe()


async def transaction(teller: Teller, version: int) -> None:
    """Offsets of a transaction, in one version of TxnOffsetCommit."""
    transactional_id = f"{teller.group}-id"
    await _until_found(teller, transactional_id)
    init = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
    connection = await teller.connect()
    producer = await connection.send(init, 4)
    same = _ProducerFields(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
    )

    async def commit(offset: int, **changes: Any) -> None:
        partitions = [
            TxnOffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=offset,
                committed_metadata=changes.pop("metadata", "m"),
            )
            for index in (0, 1, 99)
        ]
        topic = TxnOffsetCommitRequestTopic(name=teller.topic, partitions=partitions)
        values: dict[str, Any] = {**same, "group_id": teller.group, "topics": [topic]}
        await teller.ask(TxnOffsetCommitRequest(**(values | changes)), version)

    async def end(committed: bool) -> None:
        await teller.ask(EndTxnRequest(**same, committed=committed), 3)
        await _until_stable(teller)

    async def add() -> None:
        """Retry while the previous transaction is being completed."""
        request = AddOffsetsToTxnRequest(**same, group_id=teller.group)
        async with asyncio.timeout(20):
            while (await connection.send(request, 3)).error_code:
                pass

    await commit(1)  # before the group was added
    await add()
    await commit(2)
    await teller.fetch(7, 0, 1, 2, require_stable=True)
    await teller.fetch(7, 0, 1, 2)
    await teller.fetch(9)
    await teller.describe()
    await end(committed=False)
    await teller.fetch(7, 0, 1, require_stable=True)
    await add()
    await commit(3, metadata=None)
    await end(committed=True)
    await teller.fetch(7, 0, 1, require_stable=True)
    await add()
    await commit(5, producer_epoch=producer.producer_epoch - 1)  # a zombie
    await commit(4, metadata="x" * 4097)
    await commit(5, producer_id=producer.producer_id + 1_000_000)
    if version >= 3:
        await commit(6, member_id="stranger")
        await commit(6, generation_id=5)
        await commit(6, group_instance_id="unknown")
    await commit(7, group_id="")
    await end(committed=True)
    await teller.fetch(9)


async def _until_found(teller: Teller, transactional_id: str) -> None:
    """Wait until the coordinator of a transactional id is available."""
    connection = await teller.connect()
    find = FindCoordinatorRequest(key=transactional_id, key_type=1)
    init = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
    async with asyncio.timeout(20):
        while True:
            found = await connection.send(find, 3)
            if not found.error_code and not (await connection.send(init, 4)).error_code:
                return


async def _until_stable(teller: Teller) -> None:
    """Wait until the marker of a transaction is applied to the group."""
    connection = await teller.connect()
    topics = [OffsetFetchRequestTopic(name=teller.topic, partition_indexes=[0, 1])]
    fetch = OffsetFetchRequest(group_id=teller.group, topics=topics, require_stable=True)
    async with asyncio.timeout(20):
        while True:
            answer = await connection.send(fetch, 7)
            if not any(p.error_code for t in answer.topics for p in t.partitions):
                return


async def new_protocol(teller: Teller) -> None:
    """The consumer group protocol (KIP-848) is not supported."""
    await teller.ask(ConsumerGroupDescribeRequest(group_ids=[teller.group, "other"]), 0)
    request = ConsumerGroupHeartbeatRequest(group_id=teller.group, member_id="m", member_epoch=0)
    await teller.ask(request, 0)


async def coordinator(teller: Teller) -> None:
    """FindCoordinator."""
    for version in range(4):
        await teller.ask(FindCoordinatorRequest(key=teller.group), version)
    for version in range(4, 7):
        await teller.ask(FindCoordinatorRequest(coordinator_keys=[teller.group, ""]), version)
    await teller.ask(FindCoordinatorRequest(key=teller.group, key_type=2), 3)
    await teller.ask(FindCoordinatorRequest(key=teller.group, key_type=9), 3)
    await teller.ask(FindCoordinatorRequest(coordinator_keys=["a"], key_type=2), 5)
    await teller.ask(FindCoordinatorRequest(coordinator_keys=["a"], key_type=2), 6)
    await teller.ask(FindCoordinatorRequest(coordinator_keys=["a"], key_type=9), 6)


Story = Callable[[Teller], Awaitable[None]]


def _everyday(version: int) -> Story:
    return lambda teller: everyday(teller, version)


def _transaction(version: int) -> Story:
    return lambda teller: transaction(teller, version)


STORIES: dict[str, Story] = {
    story.__name__.replace("_", "-"): story
    for story in (
        missing,
        refused,
        static,
        two_members,
        simple,
        in_znodes,
        not_consumers,
        new_protocol,
        no_name,
        coordinator,
    )
}
STORIES |= {f"everyday-v{version}": _everyday(version) for version in range(10)}

ONE_BY_ONE: dict[str, Story] = {
    f"transaction-v{version}": _transaction(version) for version in range(5)
}
"""Stories that cannot run concurrently: Kafka batches their verifications, and mixes up errors."""


async def tell(address: str) -> dict[str, list[str]]:
    """The responses of all stories; most run concurrently."""
    run = uuid.uuid4().hex[:8]
    tellers = {name: Teller(address, run, name) for name in STORIES | ONE_BY_ONE}
    try:
        await _prepare(next(iter(tellers.values())))
        await asyncio.gather(*(story(tellers[name]) for name, story in STORIES.items()))
        for name, story in ONE_BY_ONE.items():
            await story(tellers[name])
    finally:
        for teller in tellers.values():
            teller.close()
    return {name: teller.lines() for name, teller in tellers.items()}


async def _prepare(teller: Teller) -> None:
    """Create a topic, and wait for a coordinator of every group."""
    connection = await teller.connect()
    topic = CreatableTopic(name=teller.topic, num_partitions=4, replication_factor=1)
    await connection.send(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
    find = FindCoordinatorRequest(key=teller.group)
    async with asyncio.timeout(20):
        while True:
            if not (await connection.send(find, 3)).error_code:
                return
