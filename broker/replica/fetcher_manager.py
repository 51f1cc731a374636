"""All fetchers of this broker: `num.replica.fetchers` for every broker that it follows."""

import asyncio
import zlib
from collections.abc import Callable, Iterable

from broker.model import TopicPartition
from broker.net.broker_connection import Node
from broker.replica.fetcher import FollowerOf, ReplicaFetcher
from broker.replica.partition import Partition

FetcherId = tuple[int, int]
"""The leader's broker id, and which of the fetchers from it."""


class FetcherManager:
    """Which partition is followed by which fetcher.

    Field `_places`: by partition. A fetcher may have given up one that is still listed here.
    """

    def __init__(
        self, own: FollowerOf, find_node: Callable[[int], Node | None], num_fetchers: int
    ) -> None:
        self._own = own
        self._find_node = find_node
        self._num_fetchers = num_fetchers
        self._fetchers: dict[FetcherId, ReplicaFetcher] = {}
        self._places: dict[TopicPartition, FetcherId] = {}
        self._stopping: set[asyncio.Task[None]] = set()

    def follow(self, partitions: Iterable[Partition]) -> None:
        """Fetch these partitions from their leaders, from their present leader epoch on."""
        by_fetcher: dict[FetcherId, list[Partition]] = {}
        for partition in partitions:
            place = (partition.state.leader, self._number(partition.name))
            by_fetcher.setdefault(place, []).append(partition)
            if self._places.get(partition.name, place) != place:
                self.unfollow([partition.name])
            self._places[partition.name] = place
        for place, added in by_fetcher.items():
            self._fetcher(place).add(added)

    def _number(self, name: TopicPartition) -> int:
        return zlib.crc32(str(name).encode()) % self._num_fetchers

    def _fetcher(self, place: FetcherId) -> ReplicaFetcher:
        fetcher = self._fetchers.get(place)
        if fetcher is None:
            fetcher = ReplicaFetcher(lambda: self._find_node(place[0]), self._own)
            self._fetchers[place] = fetcher
        return fetcher

    def unfollow(self, names: Iterable[TopicPartition]) -> None:
        """Fetch these no more; a fetcher that has nothing left ends."""
        by_fetcher: dict[FetcherId, list[TopicPartition]] = {}
        for name in names:
            place = self._places.pop(name, None)
            if place is not None:
                by_fetcher.setdefault(place, []).append(name)
        for place, removed in by_fetcher.items():
            fetcher = self._fetchers.get(place)
            if fetcher is None:
                continue
            fetcher.remove(removed)
            if not len(fetcher):
                del self._fetchers[place]
                self._end(fetcher)

    def _end(self, fetcher: ReplicaFetcher) -> None:
        task = asyncio.get_running_loop().create_task(fetcher.stop())
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)

    def resize(self, num_fetchers: int, partitions: Iterable[Partition]) -> None:
        """Spread what is followed over another number of fetchers."""
        if num_fetchers == self._num_fetchers:
            return
        followed = [partition for partition in partitions if partition.name in self._places]
        self.unfollow([partition.name for partition in followed])
        self._num_fetchers = num_fetchers
        self.follow(followed)

    async def stop(self) -> None:
        """Follow nobody any more."""
        fetchers = list(self._fetchers.values())
        self._fetchers.clear()
        self._places.clear()
        await asyncio.gather(*(fetcher.stop() for fetcher in fetchers), *self._stopping)
