"""The metadata store of a controller: every write is fenced by its controller epoch.

A controller that was paused, or cut off from ZooKeeper, may continue to decide after another one
has been elected. Each of its writes therefore checks the version of /controller_epoch in the same
transaction. The election of the next controller has changed it, so that nothing is written and the
caller gets ControllerMoved.

Reads of many nodes, and writes that need several transactions, are sent concurrently: over a
network the round trips take most of the time.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, TypeVar

from broker.controller.controller_context import LiveBroker
from broker.controller.leadership import Leadership
from broker.metadata.errors import (
    BadVersion,
    ConnectionLoss,
    NodeExists,
    NoNode,
    SessionExpired,
)
from broker.metadata.recursive import batches, ensure_path, read_branch
from broker.metadata.store import (
    Check,
    Create,
    Delete,
    MetadataStore,
    Operation,
    Result,
    SetData,
    Stat,
    Znode,
)
from broker.metadata.znodes.brokers import BROKER_IDS_PATH, BrokerIdZnode
from broker.metadata.znodes.controller import ControllerEpochZnode
from broker.metadata.znodes.json_text import MalformedZnode
from broker.metadata.znodes.topics import (
    TOPICS_PATH,
    PartitionStateZnode,
    TopicZnode,
    partition_path,
    partitions_path,
)
from broker.model import TopicPartition

logger = logging.getLogger(__name__)

_CONCURRENT_READS: Final = 5000
"""Reads in flight at once. Each is a task: a million of them would take a gigabyte."""

Key = TypeVar("Key")
Value = TypeVar("Value")


class ControllerMoved(Exception):
    """This broker is no longer the controller; nothing was written."""


class FencedStore:
    """Reads from the store, and writes to it in one controller epoch.

    Field `store`: the store itself, for reads and watches.
    Field `epoch`: the controller epoch, written into every partition state.
    Field `_fence`: the check that is part of every write.
    Field `_is_over`: set when this broker resigns; then nothing is written, even if no other
    controller has been elected yet.
    """

    def __init__(self, store: MetadataStore, epoch: int, epoch_version: int) -> None:
        self.store = store
        self.epoch = epoch
        self._fence = Check(ControllerEpochZnode.PATH, epoch_version)
        self._is_over = False

    def close(self) -> None:
        """Reject all further writes."""
        self._is_over = True

    # Reading

    async def get_all(self, paths: Mapping[Key, str]) -> dict[Key, Znode]:
        """Read many nodes; those that do not exist are left out."""
        nodes: dict[Key, Znode] = {}
        keys = iter(paths)
        while chunk := list(islice(keys, _CONCURRENT_READS)):
            found = await asyncio.gather(*(self.maybe_get(paths[key]) for key in chunk))
            nodes |= {k: node for k, node in zip(chunk, found, strict=True) if node is not None}
        return nodes

    async def maybe_get(self, path: str) -> Znode | None:
        """The node, or None if it does not exist."""
        try:
            return await self.store.get(path)
        except NoNode:
            return None

    async def children(self, path: str) -> list[str]:
        """The names of a node's children; empty if the node does not exist."""
        try:
            return await self.store.children(path)
        except NoNode:
            return []

    async def brokers(self) -> dict[int, LiveBroker]:
        """All registered brokers, with their epochs."""
        paths = {int(i): f"{BROKER_IDS_PATH}/{i}" for i in await self.children(BROKER_IDS_PATH)}
        nodes = await self.get_all(paths)
        found = {}
        for broker_id, node in sorted(nodes.items()):
            registration = _readable(BrokerIdZnode.decode, broker_id, node)
            if registration is not None:
                found[broker_id] = LiveBroker(registration, node.stat.czxid)
        return found

    async def topic_names(self) -> list[str]:
        """The names of all topics."""
        return await self.children(TOPICS_PATH)

    async def topics(self, names: Iterable[str]) -> list[TopicZnode]:
        """Topics and their assignments; malformed ones are logged and left out."""
        nodes = await self.get_all({name: TopicZnode.path(name) for name in names})
        read = (_readable(TopicZnode.decode, topic, node) for topic, node in nodes.items())
        return [topic for topic in read if topic is not None]

    async def created_partitions(
        self, assignments: Mapping[str, Iterable[int]]
    ) -> list[TopicPartition]:
        """Of these partitions (topic → indexes) the ones that have a node of their own.

        Only they can have a state: this takes one read per topic, where reading the states takes
        one per partition.
        """
        created = []
        for topic, indexes in assignments.items():
            names = set(await self.children(partitions_path(topic)))
            created += [TopicPartition(topic, index) for index in indexes if str(index) in names]
        return created

    async def leaderships(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, Leadership]:
        """Leaders and ISRs; a partition that never had a leader is left out.

        ControllerMoved if a later controller has written one of them.
        """
        nodes = await self.get_all({name: PartitionStateZnode.path(name) for name in partitions})
        found = {}
        for name, node in nodes.items():
            state = _readable(PartitionStateZnode.decode, name, node)
            if state is None:
                continue
            if state.controller_epoch > self.epoch:
                raise ControllerMoved(
                    f"{name} was written in controller epoch {state.controller_epoch}, "
                    f"this one is {self.epoch}"
                )
            found[name] = Leadership.of(state, node.stat.version)
        return found

    # Writing

    async def write(self, operations: Sequence[Operation]) -> list[Result]:
        """Make all changes or none; ControllerMoved, or the error of the first that fails.

        After a broken connection they are repeated. If the first attempt had been applied, the
        second one fails with NodeExists, NoNode or BadVersion, which callers must expect.
        """
        while not self._is_over:
            try:
                return (await self.store.multi([self._fence, *operations]))[1:]
            except ConnectionLoss:
                continue  # the next call waits for the next connection
            except SessionExpired as error:
                raise ControllerMoved(str(error)) from error
            except (BadVersion, NoNode) as error:
                if error.path == self._fence.path:
                    raise ControllerMoved("another controller has been elected") from error
                raise
        raise ControllerMoved("this broker has resigned")

    async def write_in_batches(self, operations: Iterable[Operation]) -> list[Result]:
        """As `write`, in as many transactions as needed: each is atomic, all together are not."""
        results: list[Result] = []
        for batch in batches(operations):
            results += await self.write(batch)
        return results

    async def update_leaderships(
        self, updates: Mapping[TopicPartition, Leadership]
    ) -> dict[TopicPartition, Leadership]:
        """Write new leaders and ISRs; returns what was written, with the new partition epochs.

        Partitions that are missing in the result were changed or deleted by another writer since
        they were read.
        """
        stamped = {
            name: replace(state, controller_epoch=self.epoch) for name, state in updates.items()
        }
        names = {PartitionStateZnode.path(name): name for name in updates}
        operations = [
            SetData(path, stamped[name].znode().encode(), stamped[name].partition_epoch)
            for path, name in names.items()
        ]
        written: dict[TopicPartition, Leadership] = {}
        for results in await asyncio.gather(*map(self._update, batches(operations))):
            for path, stat in results.items():
                name = names[path]
                written[name] = replace(stamped[name], partition_epoch=stat.version)
        return written

    async def _update(self, batch: Sequence[Operation]) -> dict[str, Stat]:
        """Write a batch; if one update fails, bisect, so that the others are written."""
        try:
            results = await self.write(batch)
        except (BadVersion, NoNode):
            if len(batch) == 1:
                return await self._applied_before(batch[0])
            middle = len(batch) // 2
            return await self._update(batch[:middle]) | await self._update(batch[middle:])
        return {
            operation.path: result
            for operation, result in zip(batch, results, strict=True)
            if isinstance(result, Stat)
        }

    async def _applied_before(self, update: Operation) -> dict[str, Stat]:
        """The update's node if the store has exactly what was to be written; otherwise nothing.

        A write whose connection broke may have been applied; the repeated write is then refused.
        If that were mistaken for a change by another writer, the state would be read back and
        found to need no change, and the brokers would never be sent the new leader epoch. Only
        this controller can have written the next version with the same data: the fence excludes
        others.
        """
        if not isinstance(update, SetData):
            return {}
        node = await self.maybe_get(update.path)
        if node is None or node.data != update.data or node.stat.version != update.version + 1:
            return {}
        return {update.path: node.stat}

    async def create_leaderships(
        self, new: Mapping[TopicPartition, Leadership], first_of: Collection[str] = ()
    ) -> dict[TopicPartition, Leadership]:
        """Write the first state of partitions; returns the states that the store has now.

        `first_of` are topics without any partition node in the store. If there are nodes already,
        because a controller crashed half-way, these are kept and only the missing ones written.
        """
        stamped = {name: replace(s, controller_epoch=self.epoch) for name, s in new.items()}
        operations: list[Operation] = [Create(partitions_path(topic)) for topic in first_of]
        for name, state in stamped.items():
            operations.append(Create(partition_path(name)))
            operations.append(Create(PartitionStateZnode.path(name), state.znode().encode()))
        try:
            await self.write_in_batches(operations)
        except (NodeExists, NoNode):
            return await self._create_missing(stamped)
        return stamped

    async def _create_missing(
        self, new: Mapping[TopicPartition, Leadership]
    ) -> dict[TopicPartition, Leadership]:
        """As `create_leaderships`, keeping the nodes that exist.

        Nodes cannot appear between the reads and the writes: an earlier controller is fenced.
        """
        topics: dict[str, list[int]] = {}
        for name in new:
            topics.setdefault(name.topic, []).append(name.partition)
        for topic in topics:
            await ensure_path(self.store, partitions_path(topic))
        created = set(await self.created_partitions(topics))
        existing = await self.get_all({name: PartitionStateZnode.path(name) for name in created})
        missing = {name: state for name, state in new.items() if name not in existing}
        operations: list[Operation] = []
        for name, state in missing.items():
            if name not in created:
                operations.append(Create(partition_path(name)))
            operations.append(Create(PartitionStateZnode.path(name), state.znode().encode()))
        await self.write_in_batches(operations)
        return missing | await self.leaderships(existing)

    async def set_topic(self, topic: TopicZnode) -> None:
        """Replace a topic's assignment."""
        await self.write([SetData(TopicZnode.path(topic.topic), topic.encode())])

    async def set_or_create(self, path: str, data: bytes) -> None:
        """Write a node's data, creating the node if it does not exist."""
        try:
            await self.write([SetData(path, data)])
        except NoNode:
            await self.write([Create(path, data)])

    async def delete(self, paths: Iterable[str]) -> None:
        """Delete nodes without children; those that do not exist are ignored."""
        found = list(paths)
        try:
            await self.write_in_batches([Delete(path) for path in found])
        except NoNode:
            for path in found:
                with contextlib.suppress(NoNode):
                    await self.write([Delete(path)])

    async def delete_branch(self, path: str) -> None:
        """Delete a node and everything below it."""
        await self.delete([node.path for node in reversed(await read_branch(self.store, path))])


def _readable(decode: Callable[[Key, bytes | None], Value], key: Key, node: Znode) -> Value | None:
    """The decoded contents of a node; None, and an error in the log, if they are malformed."""
    try:
        return decode(key, node.data)
    except MalformedZnode as error:
        logger.error("Ignoring malformed node: %s", error)
        return None
