"""The follower's side of a fetch session (KIP-227): a request names only what has changed.

response of the leader       next request
no session, or an error      all partitions, and opens a new session
a session                    its next epoch; partitions that were added, changed or removed
"""

from typing import Final

from broker.model import TopicPartition, Uuid
from broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from broker.replica.follower_state import FollowerState

_FIRST_EPOCH: Final = 0
_TOPIC_IDS: Final = 13
"""The first version that identifies topics by id."""
_REPLICA_STATE: Final = 15
"""The first version with a field for the follower's broker epoch."""

Key = tuple[str | Uuid, int]
"""A partition in a request: by topic name up to version 12, by topic id from 13 on."""


class FetchLimits:
    """The limits in a follower's requests: `replica.fetch.*`."""

    __slots__ = ("max_bytes", "max_wait_ms", "min_bytes", "partition_max_bytes")

    def __init__(
        self, max_wait_ms: int, min_bytes: int, max_bytes: int, partition_max_bytes: int
    ) -> None:
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.partition_max_bytes = partition_max_bytes


class FollowerSession:
    """The partitions in the leader's session, and what the next request must name.

    Field `_session_id`, `_epoch`: of the next request; id 0 and epoch 0 open a session.
    Field `_version`: the version of the last request. Partitions have other keys in other versions.
    Field `_known`: partitions that the leader has, by their key in this version.
    Field `_changed`, `_forgotten`: what the next request adds or changes, and what it removes.
    Invariant: no partition is in both.
    """

    def __init__(self) -> None:
        self._session_id = 0
        self._epoch = _FIRST_EPOCH
        self._version = -1
        self._known: dict[Key, FollowerState] = {}
        self._changed: dict[TopicPartition, FollowerState] = {}
        self._forgotten: dict[TopicPartition, FollowerState] = {}

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to fetch."""
        return not self._known and not self._changed

    def change(self, state: FollowerState) -> None:
        """Fetch this partition from its present position."""
        name = state.partition.name
        known = self._known.get(self._key(state))
        if known is not None:
            known.is_sent = False
        state.is_sent = False
        self._changed[name] = state
        self._forgotten.pop(name, None)

    def forget(self, state: FollowerState) -> None:
        """Stop fetching this partition."""
        name = state.partition.name
        self._changed.pop(name, None)
        if self._known.pop(self._key(state), None) is not None:
            self._forgotten[name] = state

    def find(self, topic: str | Uuid, index: int) -> FollowerState | None:
        """The partition that data in a response belongs to; None if it has changed meanwhile."""
        state = self._known.get((topic, index))
        return state if state is not None and state.is_sent else None

    def restart(self) -> None:
        """The leader has no session any more: the next request names everything."""
        self._session_id, self._epoch = 0, _FIRST_EPOCH
        self._forgotten.clear()
        for state in self._known.values():
            self._changed.setdefault(state.partition.name, state)
        self._known.clear()

    def answered(self, session_id: int) -> None:
        """The leader has responded; id 0 if it keeps no session for this follower."""
        if session_id == 0:
            self.restart()
            return
        self._session_id = session_id
        self._epoch = 1 if self._epoch == 0x7FFFFFFF else self._epoch + 1

    def _key(self, state: FollowerState) -> Key:
        partition = state.partition
        by_id = self._version >= _TOPIC_IDS
        return (partition.topic_id if by_id else partition.name.topic, partition.name.partition)

    def request(
        self, version: int, replica_id: int, broker_epoch: int, limits: FetchLimits
    ) -> FetchRequest:
        """The next request. The changes in it are not named again."""
        if version != self._version:
            self.restart()
            self._version = version
        topics: dict[str | Uuid, FetchTopic] = {}
        for state in self._changed.values():
            name, index = key = self._key(state)
            self._known[key] = state
            state.is_sent = True
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = FetchTopic(
                    topic=state.partition.name.topic, topic_id=state.partition.topic_id
                )
            topic.partitions.append(_asked(state, index, limits))
        self._changed = {}
        forgotten, self._forgotten = self._forgotten, {}
        has_state = version >= _REPLICA_STATE
        return FetchRequest(
            replica_id=-1 if has_state else replica_id,
            replica_state=ReplicaState(replica_id=replica_id, replica_epoch=broker_epoch)
            if has_state
            else ReplicaState(),
            max_wait_ms=limits.max_wait_ms,
            min_bytes=limits.min_bytes,
            max_bytes=limits.max_bytes,
            session_id=self._session_id,
            session_epoch=self._epoch,
            topics=list(topics.values()),
            forgotten_topics_data=[
                ForgottenTopic(
                    topic=state.partition.name.topic,
                    topic_id=state.partition.topic_id,
                    partitions=[state.partition.name.partition],
                )
                for state in forgotten.values()
            ],
        )


def _asked(state: FollowerState, index: int, limits: FetchLimits) -> FetchPartition:
    return FetchPartition(
        partition=index,
        current_leader_epoch=state.leader_epoch,
        fetch_offset=state.fetch_offset,
        last_fetched_epoch=state.last_fetched_epoch,
        log_start_offset=state.log_start_offset,
        partition_max_bytes=limits.partition_max_bytes,
    )
