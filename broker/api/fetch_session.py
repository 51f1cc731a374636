"""Fetch sessions (KIP-227): a client that fetches the same partitions again names only changes.

    request                          means
    id 0,  epoch -1                  no session: everything is named, everything is answered
    id 0,  epoch  0                  the same, and open a session if there is room
    id n,  epoch  0                  close session n, then the same
    id n,  epoch -1                  close session n, no new one
    id n,  epoch  e                  go on: e must be the next epoch of session n

Within a session a partition is answered when it has records, an error, or a watermark the client
has not seen. One that had records moves to the end of the line, so that when the response is full
another one comes first next time.

A session looks only at partitions that its client named, that moved, or that had more than fitted
into the last answer: its *pending* ones. So a broker that follows a thousand idle partitions costs
its leader no more than one that follows a single one.
"""

import random
from collections import OrderedDict
from typing import Final, NamedTuple

from broker.errors import ApiError, ErrorCode
from broker.model import Uuid
from broker.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData
from broker.replica.in_sync import RemoteReplica
from broker.replica.partition import Partition
from broker.replica.purgatory import Purgatory, Waiter

FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
NO_SESSION: Final = 0

Key = tuple[str | Uuid, int]
"""A partition in a request: by topic name up to version 12, by topic id from 13 on."""


class Target:
    """One partition to fetch, and what the client was last told of it.

    Whatever happens to the partition puts it among the session's pending ones, if that listens.
    Field `replica`: what the leader knows of the client, if that is a follower.
    """

    __slots__ = (
        "asked",
        "high_watermark",
        "log_start_offset",
        "partition",
        "replica",
        "session",
        "topic",
    )

    def __init__(self, session: "FetchSession", topic: str | Uuid, asked: FetchPartition) -> None:
        self.session = session
        self.topic = topic
        self.asked = asked
        self.high_watermark = -1
        self.log_start_offset = -1
        self.partition: Partition | None = None
        self.replica: RemoteReplica | None = None

    def turn_to(self, partition: Partition | None) -> None:
        """It is about this partition from now on, and about no other."""
        if self.session.listens:
            self.unsubscribe()
        self.partition = partition
        self.replica = None
        if self.session.listens:
            self.subscribe()

    def unsubscribe(self) -> None:
        """Hear of no moves any more."""
        if self.partition is not None:
            self.partition.moves.unsubscribe(self.log_end_moved, self.high_watermark_moved)

    def subscribe(self) -> None:
        """Hear of the partition's moves from now on."""
        partition = self.partition
        if partition is None:
            return
        if self.session.is_follower:
            partition.moves.subscribe(
                at_log_end=self.log_end_moved, at_high_watermark=self.high_watermark_moved
            )
        else:
            partition.moves.subscribe(at_high_watermark=self.high_watermark_moved)

    def log_end_moved(self) -> None:
        """There is more for a follower."""
        session = self.session
        if self not in session.pending:
            session.pending[self] = None
            if self.replica is not None:
                self.replica.still_fetched(session.last_fetch_ms)
        session.wake()

    def high_watermark_moved(self) -> None:
        """There is more for a consumer; a follower hears of it with the next records."""
        session = self.session
        session.pending[self] = None
        if not session.is_follower:
            session.wake()

    def has_news(self, answer: PartitionData) -> bool:
        """Whether the client must be told; remembers what it is told then."""
        news = (
            bool(answer.records)
            or answer.error_code != ErrorCode.NONE
            or answer.high_watermark != self.high_watermark
            or answer.log_start_offset != self.log_start_offset
            or answer.preferred_read_replica >= 0
            or answer.diverging_epoch.epoch >= 0
        )
        self.high_watermark = answer.high_watermark
        self.log_start_offset = answer.log_start_offset
        return news


class FetchSession:
    """One client's session; one without id lasts for a single request.

    Field `epoch`: the one its next request must carry.
    Field `targets`: everything it fetches.
    Field `is_follower`: whether a broker fetches.
    Field `listens`: whether it hears of moves. One that lasts for a single request does not before
    that has to wait, which spares most of them the trouble.
    Field `is_woken`: something moved since it was last looked at.
    Field `pending`: those that must be looked at, in this order. Invariant: one that is not among
    them has nothing for the client, except perhaps a watermark that it was not told.
    """

    # Not in slots: what most sessions leave as it is costs them nothing as the class's attribute.
    epoch = INITIAL_EPOCH + 1
    last_used_s = 0.0
    last_fetch_ms = 0
    listens = False
    is_woken = False
    _waiter: Waiter | None = None

    def __init__(
        self, purgatory: Purgatory, session_id: int, replica_id: int, *, uses_topic_ids: bool
    ) -> None:
        self._purgatory = purgatory
        self.session_id = session_id
        self.replica_id = replica_id
        self.is_follower = replica_id >= 0
        self.uses_topic_ids = uses_topic_ids
        self.targets: dict[Key, Target] = {}
        self.pending: dict[Target, None] = {}

    def update(self, request: FetchRequest) -> None:
        """Add and change partitions as the request says."""
        for topic in request.topics:
            name: str | Uuid = topic.topic_id if self.uses_topic_ids else topic.topic
            for asked in topic.partitions:
                key = (name, asked.partition)
                target = self.targets.get(key)
                if target is None:
                    target = self.targets[key] = Target(self, name, asked)
                else:
                    target.asked = asked
                self.pending[target] = None

    def forget(self, request: FetchRequest) -> None:
        """Forget partitions as the request says: one that goes on with a session."""
        for forgotten in request.forgotten_topics_data:
            name: str | Uuid = forgotten.topic_id if self.uses_topic_ids else forgotten.topic
            for index in forgotten.partitions:
                self._forget((name, index))

    def _forget(self, key: Key) -> None:
        target = self.targets.pop(key, None)
        if target is not None:
            self.pending.pop(target, None)
            target.turn_to(None)

    def listen(self) -> None:
        """Hear of every move from now on."""
        if not self.listens:
            self.listens = True
            for target in self.targets.values():
                target.subscribe()

    def wake(self) -> None:
        """Let a request that waits, or is about to, look again."""
        self.is_woken = True
        if self._waiter is not None:
            self._waiter.let_go()

    def moved(self, deadline_s: float) -> Waiter:
        """Waits until a partition moves, or has since `is_woken` was last reset; or time is up."""
        waiter = self._waiter = self._purgatory.wait_until(deadline_s)
        if self.is_woken:
            waiter.let_go()
        return waiter

    def close(self) -> None:
        """Hear of nothing any more."""
        if self.listens:
            for target in self.targets.values():
                target.unsubscribe()
        self.targets.clear()
        self.pending.clear()


class FetchPlan(NamedTuple):
    """What one request wants, whether it named it or its session did."""

    session: FetchSession
    is_incremental: bool


class FetchSessionCache:
    """The sessions of a broker: at most `slots`; one long idle gives way to a new one."""

    def __init__(self, slots: int, eviction_ms: int, purgatory: Purgatory) -> None:
        self._purgatory = purgatory
        self._slots = slots
        self._eviction_s = eviction_ms / 1000
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        """Invariant: in the order of last use, oldest first."""

    def __len__(self) -> int:
        return len(self._sessions)

    def plan(self, request: FetchRequest, version: int, now_s: float) -> FetchPlan:
        """Open, go on with or close a session; ApiError for one that is unknown or out of step."""
        uses_topic_ids = version >= 13
        if request.session_epoch not in (INITIAL_EPOCH, FINAL_EPOCH):
            return self._go_on(request, uses_topic_ids, now_s)
        if request.session_id != NO_SESSION:
            self._close(request.session_id)
        replica_id = max(request.replica_id, request.replica_state.replica_id)
        session = FetchSession(
            self._purgatory, NO_SESSION, replica_id, uses_topic_ids=uses_topic_ids
        )
        session.update(request)
        if request.session_epoch == INITIAL_EPOCH and session.targets and self._make_room(now_s):
            session.session_id = self._new_id()
            session.listen()
            session.last_used_s = now_s
            self._sessions[session.session_id] = session
        return FetchPlan(session, is_incremental=False)

    def _go_on(self, request: FetchRequest, uses_topic_ids: bool, now_s: float) -> FetchPlan:
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
        if not session.targets:
            self._close(session.session_id)
            session.session_id = NO_SESSION
        return FetchPlan(session, is_incremental=True)

    def _close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def _make_room(self, now_s: float) -> bool:
        if len(self._sessions) < self._slots:
            return True
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now_s - oldest.last_used_s < self._eviction_s:
            return False
        self._close(oldest.session_id)
        return True

    def _new_id(self) -> int:
        while True:
            session_id = random.randint(1, 0x7FFFFFFF)  # noqa: S311  # not a secret
            if session_id not in self._sessions:
                return session_id
