"""All fetchers of this broker: `num.replica.fetchers` for every leader broker."""

import asyncio
import zlib
from collections.abc import Callable, Iterable

from broker.model import TopicPartition
from broker.net.broker_connection import Node
from broker.replica.fetcher import FetcherContext, ReplicaFetcher
from broker.replica.partition import Partition
from broker.tasks import TaskSet

FetcherId = tuple[int, int]
"""The leader's broker id, and the number of the fetcher among those for that broker."""


class FetcherManager:
    """Assigns partitions to fetchers.

    Field `_fetchers`: by id. Invariant: one without partitions is stopped and removed.
    Field `_assigned`: the fetcher of every followed partition. A fetcher drops a partition whose
    log has failed by itself; such a partition is still listed here.
    Field `_stopping`: fetchers that are being stopped.
    """

    def __init__(
        self, context: FetcherContext, find_node: Callable[[int], Node | None], num_fetchers: int
    ) -> None:
        self._context = context
        self._find_node = find_node
        self._num_fetchers = num_fetchers
        self._fetchers: dict[FetcherId, ReplicaFetcher] = {}
        self._assigned: dict[TopicPartition, FetcherId] = {}
        self._stopping = TaskSet("stop fetchers")

    def follow(self, partitions: Iterable[Partition]) -> None:
        """Fetch these partitions from their leaders, in their present leader epochs."""
        by_fetcher: dict[FetcherId, list[Partition]] = {}
        for partition in partitions:
            fetcher_id = (partition.state.leader, self._number(partition.name))
            by_fetcher.setdefault(fetcher_id, []).append(partition)
            if self._assigned.get(partition.name, fetcher_id) != fetcher_id:
                self.unfollow([partition.name])
            self._assigned[partition.name] = fetcher_id
        for fetcher_id, added in by_fetcher.items():
            self._fetcher(fetcher_id).add(added)

    def _number(self, name: TopicPartition) -> int:
        return zlib.crc32(str(name).encode()) % self._num_fetchers

    def _fetcher(self, fetcher_id: FetcherId) -> ReplicaFetcher:
        fetcher = self._fetchers.get(fetcher_id)
        if fetcher is None:
            fetcher = ReplicaFetcher(lambda: self._find_node(fetcher_id[0]), self._context)
            self._fetchers[fetcher_id] = fetcher
        return fetcher

    def unfollow(self, names: Iterable[TopicPartition]) -> None:
        """Stop fetching these partitions; a fetcher without partitions is stopped."""
        by_fetcher: dict[FetcherId, list[TopicPartition]] = {}
        for name in names:
            fetcher_id = self._assigned.pop(name, None)
            if fetcher_id is not None:
                by_fetcher.setdefault(fetcher_id, []).append(name)
        for fetcher_id, removed in by_fetcher.items():
            fetcher = self._fetchers.get(fetcher_id)
            if fetcher is None:
                continue
            fetcher.remove(removed)
            if not len(fetcher):
                del self._fetchers[fetcher_id]
                self._stopping.spawn(fetcher.stop())

    def resize(self, num_fetchers: int, partitions: Iterable[Partition]) -> None:
        """Distribute the followed partitions over another number of fetchers per leader."""
        if num_fetchers == self._num_fetchers:
            return
        followed = [partition for partition in partitions if partition.name in self._assigned]
        self.unfollow([partition.name for partition in followed])
        self._num_fetchers = num_fetchers
        self.follow(followed)

    async def stop(self) -> None:
        """Stop all fetchers."""
        fetchers = list(self._fetchers.values())
        self._fetchers.clear()
        self._assigned.clear()
        await asyncio.gather(*(fetcher.stop() for fetcher in fetchers), self._stopping.wait())
