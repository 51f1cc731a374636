"""The groups that this broker coordinates, and their partitions of the offsets topic.

A partition is *loading* from the moment this broker leads it until its log is read, then *owned*
until another broker leads it. Requests for groups of other partitions are refused with the error
that makes the client wait or find the coordinator again.
"""

import logging
from collections.abc import Iterable

from broker.clock import Clock
from broker.errors import ApiError, ErrorCode
from broker.group.config import GroupConfig
from broker.group.group import Group
from broker.group.states import DEAD
from broker.java_strings import partition_for
from broker.metrics.load_times import LoadTimes
from broker.replica.coordinator_topic import CoordinatorTopic

logger = logging.getLogger(__name__)


class GroupRegistry:
    """Groups by id. Invariant: none is DEAD, and each is in an owned partition."""

    def __init__(self, config: GroupConfig, topic: CoordinatorTopic, clock: Clock) -> None:
        self.config = config
        self.topic = topic
        self.clock = clock
        self.is_active = False
        """False before start and after stop: all requests are refused."""
        self.groups: dict[str, Group] = {}
        self.load_times = LoadTimes()
        self._owned: set[int] = set()
        self._loading: dict[int, int] = {}
        """Partitions being loaded, with the leader epoch of the load."""
        self._epochs: dict[int, int] = {}
        """The highest leader epoch seen, by partition; changes of older epochs are ignored."""

    def partition_for(self, group_id: str) -> int:
        """The partition of the offsets topic that stores the group."""
        return partition_for(group_id, self.topic.num_partitions)

    @property
    def is_loading(self) -> bool:
        """Whether a partition is being loaded."""
        return bool(self._loading)

    def check(self, group_id: str, *, may_be_empty: bool = False) -> None:
        """ApiError unless this broker serves the group now.

        Old versions of Kafka stored offsets for the empty group id. They can still be read,
        committed, described and deleted, but the group cannot be joined.
        """
        if not group_id and not may_be_empty:
            raise ApiError(ErrorCode.INVALID_GROUP_ID)
        if not self.is_active:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        partition = self.partition_for(group_id)
        if partition in self._loading:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if partition not in self._owned:
            raise ApiError(ErrorCode.NOT_COORDINATOR)

    def find(self, group_id: str) -> Group | None:
        """The group; None if it is unknown."""
        return self.groups.get(group_id)

    def find_or_create(self, group_id: str) -> Group:
        """The group; a new empty one if it is unknown."""
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = self.new_group(group_id)
        return group

    def new_group(self, group_id: str) -> Group:
        """A new group that is not registered yet."""
        return Group(group_id, self.config, self.clock)

    def remove(self, group: Group) -> None:
        """Remove a group."""
        if self.groups.get(group.group_id) is group:
            del self.groups[group.group_id]

    # Partitions

    def begin_loading(self, partition: int, leader_epoch: int) -> bool:
        """Mark a partition as loading; False if it is owned or loading, or the epoch is old."""
        if not self._accept_epoch(partition, leader_epoch):
            return False
        if partition in self._owned or partition in self._loading:
            return False
        self._loading[partition] = leader_epoch
        return True

    def is_being_loaded(self, partition: int, leader_epoch: int | None = None) -> bool:
        """Whether the partition is loading (in this epoch); False after it was unloaded."""
        epoch = self._loading.get(partition)
        return epoch is not None and leader_epoch in (None, epoch)

    def finish_loading(self, partition: int, groups: Iterable[Group]) -> None:
        """Register the loaded groups, and serve the partition from now on."""
        self._loading.pop(partition, None)
        self._owned.add(partition)
        for group in groups:
            self.groups[group.group_id] = group

    def unload(self, partition: int, leader_epoch: int | None) -> list[Group]:
        """Stop serving a partition (no epoch: its replica was removed); returns its groups."""
        if leader_epoch is not None and not self._accept_epoch(partition, leader_epoch):
            return []
        self._owned.discard(partition)
        self._loading.pop(partition, None)
        leaving = [g for g in self.groups.values() if self.partition_for(g.group_id) == partition]
        for group in leaving:
            group.unload()
            del self.groups[group.group_id]
        return leaving

    def _accept_epoch(self, partition: int, leader_epoch: int) -> bool:
        """Remember the leader epoch; False if a higher one was seen."""
        known = self._epochs.get(partition, -1)
        self._epochs[partition] = max(known, leader_epoch)
        return leader_epoch >= known

    def mark_dead(self, group: Group) -> None:
        """Make the group DEAD and remove it."""
        group.transition_to(DEAD)
        self.remove(group)
        logger.info("group is dead group=%s generation=%s", group.group_id, group.generation_id)
