"""Groups of old consumers (the Scala consumer of Kafka 0.8), which are stored in ZooKeeper only.

    /consumers/G/ids/C         a live member; ephemeral
    /consumers/G/owners/T/N    the thread and member that reads the partition; ephemeral
    /consumers/G/offsets/T/N   the next offset to read

They have no coordinator. Consumers read the offsets stored here when they start.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence

from broker.errors import ErrorCode
from broker.metadata.errors import NoNode
from broker.metadata.recursive import create_recursive, delete_recursive
from broker.metadata.store import MetadataStore, join
from broker.metadata.znodes.brokers import BROKER_IDS_PATH, BrokerIdZnode
from broker.metadata.znodes.consumers import (
    CONSUMERS_PATH,
    ConsumerOffsetZnode,
    consumer_owner_path,
)
from broker.model import TopicPartition
from kctl.admin.group_offsets import Offsets, Outcomes
from kctl.model.cluster import Broker
from kctl.model.groups import DEAD, EMPTY, STABLE, Group, GroupListing, Member
from kctl.model.outcomes import Outcome

TYPE = "zookeeper"
NO_COORDINATOR = Broker(-1, "", -1, None)
"""The coordinator of such a group: none."""

_CONSUMER_ID = re.compile(r"_(?P<host>.+)-\d+-[0-9a-f]+")
"""The part of a member id after the group: host, time, and hexadecimal digits."""


class OldGroups:
    """The groups below /consumers of one store. A `GroupSource`."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    async def listed(self, states: Sequence[str] = ()) -> list[GroupListing]:
        """All groups sorted by name, or those in one of `states`."""
        names = await self._children(CONSUMERS_PATH)
        groups = await self.described(names)
        wanted = {state.lower() for state in states}
        return [
            GroupListing(group.group_id, "consumer", group.state, TYPE)
            for group in groups
            if group.state.lower() in wanted or not wanted
        ]

    async def described(self, names: Iterable[str]) -> list[Group]:
        """The groups sorted by name; unknown ones are Dead."""
        return list(await asyncio.gather(*(self._describe(name) for name in sorted(names))))

    async def committed(self, names: Iterable[str]) -> dict[str, Offsets]:
        """Committed offsets by group; empty for a group without offsets."""
        wanted = list(names)
        found = await asyncio.gather(*(self._offsets(name) for name in wanted))
        return dict(zip(wanted, found, strict=True))

    async def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> Outcomes:
        """Store offsets; live members would overwrite them."""
        for place, offset in offsets.items():
            path, data = ConsumerOffsetZnode.path(group, place), ConsumerOffsetZnode.encode(offset)
            try:
                await self._store.set(path, data)
            except NoNode:
                await create_recursive(self._store, path, data)
        return dict.fromkeys(offsets, ErrorCode.NONE)

    async def deleted(self, names: Iterable[str]) -> list[Outcome]:
        """Delete groups without members; outcomes sorted by name."""
        return [await self._delete(group) for group in await self.described(names)]

    async def _delete(self, group: Group) -> Outcome:
        if not group.exists:
            return Outcome(group.group_id, ErrorCode.GROUP_ID_NOT_FOUND)
        if group.members:
            return Outcome(group.group_id, ErrorCode.NON_EMPTY_GROUP)
        await delete_recursive(self._store, join(CONSUMERS_PATH, group.group_id))
        return Outcome(group.group_id)

    async def _describe(self, group: str) -> Group:
        top = join(CONSUMERS_PATH, group)
        if not await self._store.exists(top):
            return Group(group, DEAD, "", (), NO_COORDINATOR)
        ids = await self._children(f"{top}/ids")
        owners = await self._owners(group) if ids else {}
        members = tuple(_member(group, consumer_id, owners) for consumer_id in ids)
        return Group(group, STABLE if members else EMPTY, "", members, NO_COORDINATOR)

    async def _owners(self, group: str) -> dict[TopicPartition, str]:
        places = await self._places(f"{CONSUMERS_PATH}/{group}/owners")
        texts = await asyncio.gather(
            *(self._text(consumer_owner_path(group, place)) for place in places)
        )
        return {place: text for place, text in zip(places, texts, strict=True) if text}

    async def _offsets(self, group: str) -> Offsets:
        places = await self._places(f"{CONSUMERS_PATH}/{group}/offsets")
        paths = [ConsumerOffsetZnode.path(group, place) for place in places]
        texts = await asyncio.gather(*map(self._text, paths))
        return {
            place: offset
            for place, path, text in zip(places, paths, texts, strict=True)
            if text and (offset := ConsumerOffsetZnode.decode(path, text.encode())) is not None
        }

    async def _places(self, top: str) -> list[TopicPartition]:
        """The partitions that have a node below `top`/topic/number."""
        topics = await self._children(top)
        numbers = await asyncio.gather(*(self._children(join(top, topic)) for topic in topics))
        return [
            TopicPartition(topic, int(number))
            for topic, found in zip(topics, numbers, strict=True)
            for number in found
        ]

    async def _children(self, path: str) -> list[str]:
        try:
            return await self._store.children(path)
        except NoNode:
            return []

    async def _text(self, path: str) -> str:
        try:
            return ((await self._store.get(path)).data or b"").decode()
        except NoNode:  # deleted since its parent was read
            return ""


def _member(group: str, consumer_id: str, owners: Mapping[TopicPartition, str]) -> Member:
    """A member and the partitions of its threads `ID-0`, `ID-1` and so on."""
    known = _CONSUMER_ID.fullmatch(consumer_id.removeprefix(group))
    own = tuple(place for place, owner in owners.items() if owner.rpartition("-")[0] == consumer_id)
    return Member(consumer_id, None, "", known["host"] if known else "", own)


async def registered_brokers(store: MetadataStore, security_protocol: str) -> list[str]:
    """Addresses of the live brokers' listeners with this security protocol."""
    try:
        ids = await store.children(BROKER_IDS_PATH)
    except NoNode:
        return []
    nodes = await asyncio.gather(*(store.get(f"{BROKER_IDS_PATH}/{broker}") for broker in ids))
    return [
        str(endpoint).partition("://")[2]
        for broker, node in zip(ids, nodes, strict=True)
        for endpoint in BrokerIdZnode.decode(int(broker), node.data).endpoints
        if endpoint.security_protocol == security_protocol
    ]
