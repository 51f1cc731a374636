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
"""

import random
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from broker.errors import ApiError, ErrorCode
from broker.model import Uuid
from broker.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData

FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
NO_SESSION: Final = 0

Key = tuple[str | Uuid, int]
"""A partition in a request: by topic name up to version 12, by topic id from 13 on."""


@dataclass(slots=True)
class Target:
    """One partition to fetch, and within a session what the client was last told of it."""

    topic: str | Uuid
    asked: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1

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


@dataclass(slots=True)
class FetchSession:
    """One client's session. Invariant: `epoch` is the one its next request must carry."""

    session_id: int
    uses_topic_ids: bool
    targets: OrderedDict[Key, Target] = field(default_factory=OrderedDict)
    epoch: int = INITIAL_EPOCH + 1
    last_used_s: float = 0.0

    def update(self, request: FetchRequest) -> None:
        """Add, change and forget partitions as the request says."""
        for key, target in targets_of(request):
            known = self.targets.get(key)
            if known is None:
                self.targets[key] = target
            else:
                known.asked = target.asked
        for topic in request.forgotten_topics_data:
            name = topic.topic_id if self.uses_topic_ids else topic.topic
            for index in topic.partitions:
                self.targets.pop((name, index), None)

    def move_to_end(self, target: Target) -> None:
        """Let the others come first next time."""
        self.targets.move_to_end((target.topic, target.asked.partition))


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """What one request wants, whether it named it or its session did."""

    targets: list[Target]
    session: FetchSession | None
    is_incremental: bool

    @property
    def session_id(self) -> int:
        """What the response carries."""
        return self.session.session_id if self.session else NO_SESSION


class FetchSessionCache:
    """The sessions of a broker: at most `slots`; one long idle gives way to a new one."""

    def __init__(self, slots: int, eviction_ms: int) -> None:
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
        self._sessions.pop(request.session_id, None)
        found = OrderedDict(targets_of(request))
        session = None
        if request.session_epoch == INITIAL_EPOCH and found and self._make_room(now_s):
            session = FetchSession(self._new_id(), uses_topic_ids, found, last_used_s=now_s)
            self._sessions[session.session_id] = session
        return FetchPlan(list(found.values()), session, is_incremental=False)

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
        if not session.targets:
            del self._sessions[session.session_id]
            return FetchPlan([], None, is_incremental=False)
        return FetchPlan(list(session.targets.values()), session, is_incremental=True)

    def _make_room(self, now_s: float) -> bool:
        if len(self._sessions) < self._slots:
            return True
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now_s - oldest.last_used_s < self._eviction_s:
            return False
        del self._sessions[oldest.session_id]
        return True

    def _new_id(self) -> int:
        while True:
            session_id = random.randint(1, 0x7FFFFFFF)  # noqa: S311  # not a secret
            if session_id not in self._sessions:
                return session_id


def targets_of(request: FetchRequest) -> Iterator[tuple[Key, Target]]:
    """The partitions a request names."""
    for topic in request.topics:
        name = topic.topic or topic.topic_id
        for asked in topic.partitions:
            yield (name, asked.partition), Target(name, asked)


def by_topic(
    answers: Iterable[tuple[Target, PartitionData]],
) -> OrderedDict[str | Uuid, list[PartitionData]]:
    """Group answers by topic; those of a topic that stand next to each other share one entry."""
    topics: OrderedDict[str | Uuid, list[PartitionData]] = OrderedDict()
    for target, answer in answers:
        topics.setdefault(target.topic, []).append(answer)
    return topics
