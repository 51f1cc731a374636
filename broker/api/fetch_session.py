"""Fetch sessions (KIP-227): a client that repeats a fetch names only what has changed.

    request                          meaning
    id 0,  epoch -1                  no session: all partitions are named and answered
    id 0,  epoch  0                  the same, and open a session if there is a free slot
    id n,  epoch  0                  close session n, then the same
    id n,  epoch -1                  close session n, and open no new one
    id n,  epoch  e                  continue session n: e must be its next epoch

Within a session the response contains a partition only if it has records, an error, or a watermark
that the client has not seen. A partition with records moves to the end of the order, so that
another one comes first when the next response is full.

A session reads only its *pending* partitions: those that the client has named, that have changed,
or that had more than fitted into the last response. A broker that follows a thousand idle
partitions therefore costs its leader no more than one that follows a single one. The price is that
every change must be noted here: a `FetchSessionPartition` watches its partition for that.
"""

import random
from collections import OrderedDict
from typing import Final, NamedTuple

from broker.errors import ApiError, ErrorCode
from broker.model import Uuid
from broker.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData
from broker.replica.delayed_operations import DelayedFetch
from broker.replica.in_sync import RemoteReplica
from broker.replica.partition import Partition
from broker.replica.purgatory import Purgatory

FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
NO_SESSION: Final = 0

Key = tuple[str | Uuid, int]
"""A partition in a request: by topic name up to version 12, by topic id from 13 on."""


class FetchSessionPartition:
    """One partition of a session: what is requested, and what the client has seen.

    It is a `FetchWatcher`: any change of the partition makes it pending in its session.

    Field `requested`: what the client last asked for.
    Field `high_watermark`, `log_start_offset`: what the client has last been sent; -1 for nothing.
    Field `partition`: the partition that was found at the last read, which it watches if the
    session watches.
    Field `replica`: what the leader knows about the client, if that is a follower.
    """

    __slots__ = (
        "high_watermark",
        "log_start_offset",
        "partition",
        "replica",
        "requested",
        "session",
        "topic",
    )

    def __init__(
        self, session: "FetchSession", topic: str | Uuid, requested: FetchPartition
    ) -> None:
        self.session = session
        self.topic = topic
        self.requested = requested
        self.high_watermark = -1
        self.log_start_offset = -1
        self.partition: Partition | None = None
        self.replica: RemoteReplica | None = None

    def set_partition(self, partition: Partition | None) -> None:
        """Watch this partition and no other; None if the session drops the partition."""
        is_watching = self.session.is_watching
        if is_watching:
            self.unwatch()
        self.partition = partition
        self.replica = None
        if is_watching:
            self.watch()

    def watch(self) -> None:
        """Be notified of changes of the partition."""
        if self.partition is not None:
            watchers = self.partition.watchers
            (watchers.followers if self.session.is_follower else watchers.consumers)[self] = None

    def unwatch(self) -> None:
        """Stop being notified."""
        if self.partition is not None:
            self.partition.watchers.followers.pop(self, None)
            self.partition.watchers.consumers.pop(self, None)
            replica = self.replica
            if replica is not None and replica.idle_session is self.session:
                replica.end_idle()

    def log_end_advanced(self) -> None:
        """There are more records for a follower."""
        session = self.session
        session.pending[self] = None
        session.wake()

    def high_watermark_advanced(self) -> None:
        """There are more records for a consumer. A follower gets the value with its next fetch."""
        session = self.session
        session.pending[self] = None
        if not session.is_follower:
            session.wake()

    def read_at_next_fetch(self) -> None:
        """Read the partition with the next fetch, without ending the wait of this one."""
        self.session.pending[self] = None

    def wake(self) -> None:
        """Read the partition now if a fetch waits, otherwise with the next fetch."""
        self.session.pending[self] = None
        self.session.wake()

    def has_missed_wakeup(self) -> bool:
        """Whether the partition should be pending and is not.

        Consumers are checked against the last stable offset, because the session does not know
        their isolation level.
        """
        partition = self.partition
        if partition is None or self in self.session.pending:
            return False
        offset = self.requested.fetch_offset
        if not self.session.is_follower:
            return partition.log.last_stable_offset > offset
        replica = self.replica
        return partition.log.log_end_offset > offset or (
            replica is not None and replica.broker_id not in partition.state.isr
        )

    def update_sent(self, data: PartitionData) -> bool:
        """Record what the client is sent; returns whether the partition must be in the response."""
        is_changed = (
            bool(data.records)
            or data.error_code != ErrorCode.NONE
            or data.high_watermark != self.high_watermark
            or data.log_start_offset != self.log_start_offset
            or data.preferred_read_replica >= 0
            or data.diverging_epoch.epoch >= 0
        )
        self.high_watermark = data.high_watermark
        self.log_start_offset = data.log_start_offset
        return is_changed


class FetchSession:
    """The session of one client; one without an id lasts for a single request.

    Field `epoch`: the one that its next request must have.
    Field `partitions`: everything the client fetches.
    Field `is_follower`: the client is a broker that replicates.
    Field `last_fetch_ms`: when the client last sent a request. For a follower this is also the time
    of its last fetch of every partition that is not pending (see `RemoteReplica.idle_session`).
    Field `is_watching`: it is notified of changes. A session for a single request is not, unless
    that request has to wait: most do not, and save the cost.
    Field `is_woken`: something has changed since it was last read.
    Field `pending`: partitions to read, in this order. Invariant: any other partition has nothing
    for the client, except perhaps a watermark that the client has not been sent.
    """

    # Not in slots: as attributes of the class, defaults that most sessions keep cost nothing.
    epoch = INITIAL_EPOCH + 1
    last_used_s = 0.0
    last_fetch_ms = 0
    is_watching = False
    is_woken = False
    _delayed: DelayedFetch | None = None

    def __init__(
        self, purgatory: Purgatory, session_id: int, replica_id: int, *, uses_topic_ids: bool
    ) -> None:
        self._purgatory = purgatory
        self.session_id = session_id
        self.replica_id = replica_id
        self.is_follower = replica_id >= 0
        self.uses_topic_ids = uses_topic_ids
        self.partitions: dict[Key, FetchSessionPartition] = {}
        self.pending: dict[FetchSessionPartition, None] = {}

    def update(self, request: FetchRequest) -> None:
        """Add and change partitions that the request names."""
        for topic in request.topics:
            name: str | Uuid = topic.topic_id if self.uses_topic_ids else topic.topic
            for requested in topic.partitions:
                key = (name, requested.partition)
                partition = self.partitions.get(key)
                if partition is None:
                    partition = FetchSessionPartition(self, name, requested)
                    self.partitions[key] = partition
                else:
                    partition.requested = requested
                self.pending[partition] = None

    def forget(self, request: FetchRequest) -> None:
        """Remove the partitions that the request lists as forgotten."""
        for forgotten in request.forgotten_topics_data:
            name: str | Uuid = forgotten.topic_id if self.uses_topic_ids else forgotten.topic
            for index in forgotten.partitions:
                self._forget((name, index))

    def _forget(self, key: Key) -> None:
        partition = self.partitions.pop(key, None)
        if partition is not None:
            self.pending.pop(partition, None)
            partition.set_partition(None)

    def watch(self) -> None:
        """Be notified of every change from now on."""
        if not self.is_watching:
            self.is_watching = True
            for partition in self.partitions.values():
                partition.watch()

    def wake(self) -> None:
        """Make the waiting request read again; a request about to wait does not wait."""
        self.is_woken = True
        if self._delayed is not None:
            self._delayed.force_complete()

    def delay(self, deadline_s: float) -> DelayedFetch:
        """Wait until a partition changes, at most until the deadline.

        The wait ends at once if a partition has changed since `is_woken` was reset.
        """
        delayed = self._delayed = DelayedFetch(self._purgatory, deadline_s)
        if self.is_woken:
            delayed.force_complete()
        return delayed

    def close(self) -> None:
        """Stop watching all partitions."""
        if self.is_watching:
            for partition in self.partitions.values():
                partition.unwatch()
        self.partitions.clear()
        self.pending.clear()


class FetchPlan(NamedTuple):
    """What one request fetches: everything in its session.

    `is_incremental`: unchanged partitions are left out of the response.
    """

    session: FetchSession
    is_incremental: bool


class FetchSessionCache:
    """The sessions of a broker, at most `slots`; a new one may evict one that is long idle."""

    def __init__(self, slots: int, eviction_ms: int, purgatory: Purgatory) -> None:
        self._purgatory = purgatory
        self._slots = slots
        self._eviction_s = eviction_ms / 1000
        self.num_evicted = 0
        """Sessions since the start that made room for a new one."""
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        """Invariant: in order of last use, oldest first."""

    def __len__(self) -> int:
        return len(self._sessions)

    def plan(self, request: FetchRequest, version: int, now_s: float) -> FetchPlan:
        """Open, continue or close a session; ApiError if its id or epoch is wrong."""
        uses_topic_ids = version >= 13
        if request.session_epoch not in (INITIAL_EPOCH, FINAL_EPOCH):
            return self._continue(request, uses_topic_ids, now_s)
        if request.session_id != NO_SESSION:
            self._close(request.session_id)
        replica_id = max(request.replica_id, request.replica_state.replica_id)
        session = FetchSession(
            self._purgatory, NO_SESSION, replica_id, uses_topic_ids=uses_topic_ids
        )
        session.update(request)
        if request.session_epoch == INITIAL_EPOCH and session.partitions and self._find_slot(now_s):
            session.session_id = self._new_id()
            session.watch()
            session.last_used_s = now_s
            self._sessions[session.session_id] = session
        return FetchPlan(session, is_incremental=False)

    def _continue(self, request: FetchRequest, uses_topic_ids: bool, now_s: float) -> FetchPlan:
        session = self._sessions.get(request.session_id)
        if session is None:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            raise ApiError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.epoch = 1 if session.epoch == 0x7FFFFFFF else session.epoch + 1
        session.last_used_s = now_s
        self._sessions.move_to_end(session.session_id)
        session.update(request)
        session.forget(request)
        if not session.partitions:
            self._close(session.session_id)
            session.session_id = NO_SESSION
        return FetchPlan(session, is_incremental=True)

    def close(self, session: FetchSession) -> None:
        """Drop a session, whether or not it has an id."""
        self._sessions.pop(session.session_id, None)
        session.close()

    def _close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def _find_slot(self, now_s: float) -> bool:
        if len(self._sessions) < self._slots:
            return True
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now_s - oldest.last_used_s < self._eviction_s:
            return False
        self._close(oldest.session_id)
        self.num_evicted += 1
        return True

    def _new_id(self) -> int:
        while True:
            session_id = random.randint(1, 0x7FFFFFFF)  # noqa: S311  # not a secret
            if session_id not in self._sessions:
                return session_id
