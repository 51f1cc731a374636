"""The metadata store as a controller uses it: every write checks that it still is the controller.

A controller that was paused, or cut off, may go on deciding after another has been elected. Each of
its writes therefore carries a check of the version of /controller_epoch, in the same transaction:
the election of the next controller has raised it, and nothing is written (ControllerMoved).

Reads of many nodes, and writes that need several transactions, are under way all at once: over a
network the way there and back is what takes the time.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from broker.controller.context import LiveBroker
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

Key = TypeVar("Key")
Value = TypeVar("Value")


class ControllerMoved(Exception):
    """This broker is not the controller any more: nothing was written."""


class FencedStore:
    """Reads, and writes of one controller epoch."""

    def __init__(self, store: MetadataStore, epoch: int, epoch_version: int) -> None:
        self.store = store
        self.epoch = epoch
        self._fence = Check(ControllerEpochZnode.PATH, epoch_version)
        self._is_over = False

    def close(self) -> None:
        """Write nothing from now on, not even if nobody else has been elected yet."""
        self._is_over = True

    # Reading

    async def get_all(self, paths: Mapping[Key, str]) -> dict[Key, Znode]:
        """The nodes that exist, of many."""
        found = await asyncio.gather(*(self.maybe_get(path) for path in paths.values()))
        return {key: node for key, node in zip(paths, found, strict=True) if node is not None}

    async def maybe_get(self, path: str) -> Znode | None:
        """The node; None where there is none."""
        try:
            return await self.store.get(path)
        except NoNode:
            return None

    async def children(self, path: str) -> list[str]:
        """The names of a node's children; none where there is no node."""
        try:
            return await self.store.children(path)
        except NoNode:
            return []

    async def brokers(self) -> dict[int, LiveBroker]:
        """Every registered broker."""
        paths = {int(i): f"{BROKER_IDS_PATH}/{i}" for i in await self.children(BROKER_IDS_PATH)}
        nodes = await self.get_all(paths)
        found = {}
        for broker_id, node in sorted(nodes.items()):
            registration = _readable(BrokerIdZnode.decode, broker_id, node)
            if registration is not None:
                found[broker_id] = LiveBroker(registration, node.stat.czxid)
        return found

    async def topic_names(self) -> list[str]:
        """Every topic."""
        return await self.children(TOPICS_PATH)

    async def topics(self, names: Iterable[str]) -> list[TopicZnode]:
        """Topics and their replicas; what cannot be read is left out, with an error in the log."""
        nodes = await self.get_all({name: TopicZnode.path(name) for name in names})
        read = (_readable(TopicZnode.decode, topic, node) for topic, node in nodes.items())
        return [topic for topic in read if topic is not None]

    async def leaderships(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, Leadership]:
        """Leaders and ISRs; a partition that was never led has none.

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
        """Make all changes or none; ControllerMoved, or the error of the one that cannot be made.

        After a broken connection they are tried again: who wants to know whether the first try was
        carried out, sees it from the error of the second one.
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
        """As `write`, in as many transactions as needed, one after the other."""
        results: list[Result] = []
        for batch in batches(operations):
            results += await self.write(batch)
        return results

    async def update_leaderships(
        self, updates: Mapping[TopicPartition, Leadership]
    ) -> dict[TopicPartition, Leadership]:
        """Write what was decided; gives what was written, with its new partition epoch.

        What is missing was changed, or deleted, by somebody else since it was read.
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
        """A batch of updates; one that fails because of few is divided, to get the others done."""
        try:
            results = await self.write(batch)
        except (BadVersion, NoNode):
            if len(batch) == 1:
                return {}
            middle = len(batch) // 2
            return await self._update(batch[:middle]) | await self._update(batch[middle:])
        return {
            operation.path: result
            for operation, result in zip(batch, results, strict=True)
            if isinstance(result, Stat)
        }

    async def create_leaderships(
        self, new: Mapping[TopicPartition, Leadership], first_of: Collection[str] = ()
    ) -> dict[TopicPartition, Leadership]:
        """Write the first state of partitions; gives what the store has now.

        Field `first_of`: topics that have no partitions in the store yet. Where that turns out to
        be otherwise (a controller crashed here) it is made node by node, and what is there stays.
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
        for name, state in new.items():
            await ensure_path(self.store, partition_path(name))
            create = Create(PartitionStateZnode.path(name), state.znode().encode())
            with contextlib.suppress(NodeExists):
                await self.write([create])
        return await self.leaderships(new)

    async def set_topic(self, topic: TopicZnode) -> None:
        """Replace the replicas of a topic's partitions."""
        await self.write([SetData(TopicZnode.path(topic.topic), topic.encode())])

    async def set_or_create(self, path: str, data: bytes) -> None:
        """Give a node this data, whether or not it exists."""
        try:
            await self.write([SetData(path, data)])
        except NoNode:
            await self.write([Create(path, data)])

    async def delete(self, paths: Iterable[str]) -> None:
        """Remove nodes without children; what is gone already is no error."""
        found = list(paths)
        try:
            await self.write_in_batches([Delete(path) for path in found])
        except NoNode:
            for path in found:
                with contextlib.suppress(NoNode):
                    await self.write([Delete(path)])

    async def delete_branch(self, path: str) -> None:
        """Remove a node and all below it."""
        await self.delete([node.path for node in reversed(await read_branch(self.store, path))])


def _readable(decode: Callable[[Key, bytes | None], Value], key: Key, node: Znode) -> Value | None:
    """What a node holds; None, with an error in the log, if that makes no sense."""
    try:
        return decode(key, node.data)
    except MalformedZnode as error:
        logger.error("a node is left out because it cannot be read: %s", error)
        return None
