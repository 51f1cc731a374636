"""The groups this broker coordinates, and the partitions of the offsets topic they live in.

A partition is *loading* from the moment this broker leads it until its log was read, then *owned*
until it leads it no more. Requests for its groups are refused before and after, each in the way
that tells the client what to do about it.
"""

import logging
from collections.abc import Iterable

from broker.clock import Clock
from broker.errors import ApiError, ErrorCode
from broker.group.config import GroupConfig
from broker.group.group import Group
from broker.group.states import DEAD
from broker.group.storage import OffsetsTopic
from broker.java_strings import partition_for

logger = logging.getLogger(__name__)


class GroupRegistry:
    """Groups by id. Invariant: none of them is DEAD, and each lies in an owned partition."""

    def __init__(self, config: GroupConfig, topic: OffsetsTopic, clock: Clock) -> None:
        self.config = config
        self.topic = topic
        self.clock = clock
        self.is_active = False
        """False before start and after stop: then nothing is answered."""
        self.groups: dict[str, Group] = {}
        self._owned: set[int] = set()
        self._loading: dict[int, int] = {}
        """The leader epoch in which a partition is being read; an older reading has no say."""
        self._epochs: dict[int, int] = {}
        """The highest leader epoch heard of, by partition: older news is ignored."""

    def partition_for(self, group_id: str) -> int:
        """The partition of the offsets topic that keeps the group."""
        return partition_for(group_id, self.topic.num_partitions)

    @property
    def is_loading(self) -> bool:
        """Whether some groups are not known yet."""
        return bool(self._loading)

    def check(self, group_id: str, *, may_be_empty: bool = False) -> None:
        """ApiError unless this broker can answer for the group now.

        Offsets could once be stored for a group without a name; they can still be read, committed,
        described and deleted, but nobody can join it.
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
        """The group, if there is one."""
        return self.groups.get(group_id)

    def find_or_create(self, group_id: str) -> Group:
        """The group; an empty one if there was none."""
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = self.new_group(group_id)
        return group

    def new_group(self, group_id: str) -> Group:
        """A group that nobody knows of yet."""
        return Group(group_id, self.config, self.clock)

    def remove(self, group: Group) -> None:
        """The group is dead."""
        if self.groups.get(group.group_id) is group:
            del self.groups[group.group_id]

    # Partitions

    def begin_loading(self, partition: int, leader_epoch: int) -> bool:
        """False if the partition is here already, or the news is old."""
        if not self._is_news(partition, leader_epoch):
            return False
        if partition in self._owned or partition in self._loading:
            return False
        self._loading[partition] = leader_epoch
        return True

    def is_being_loaded(self, partition: int, leader_epoch: int | None = None) -> bool:
        """Whether it is (in this epoch); False once it was taken away while it was read."""
        epoch = self._loading.get(partition)
        return epoch is not None and leader_epoch in (None, epoch)

    def finish_loading(self, partition: int, groups: Iterable[Group]) -> None:
        """These are the groups of the partition; from now on it answers."""
        self._loading.pop(partition, None)
        self._owned.add(partition)
        for group in groups:
            self.groups[group.group_id] = group

    def take_away(self, partition: int, leader_epoch: int | None) -> list[Group]:
        """The partition has another leader (None: or is gone); gives the groups that were in it."""
        if leader_epoch is not None and not self._is_news(partition, leader_epoch):
            return []
        self._owned.discard(partition)
        self._loading.pop(partition, None)
        leaving = [g for g in self.groups.values() if self.partition_for(g.group_id) == partition]
        for group in leaving:
            group.unload()
            del self.groups[group.group_id]
        return leaving

    def _is_news(self, partition: int, leader_epoch: int) -> bool:
        known = self._epochs.get(partition, -1)
        self._epochs[partition] = max(known, leader_epoch)
        return leader_epoch >= known

    def bury(self, group: Group) -> None:
        """Make the group DEAD and forget it."""
        group.transition_to(DEAD)
        self.remove(group)
        logger.info("group is dead group=%s generation=%s", group.group_id, group.generation_id)
