"""Lasting watches on ZooKeeper's single-use ones. Everything here runs on the event loop.

A subscription remembers the mark of its node (its zxids) from the time the current watch was set.
When the watch has to be set anew after a broken connection and the mark is another one, something
happened in between, and the subscription says so as if the watch had.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.protocol.states import EventType, WatchedEvent, ZnodeStat

from broker.metadata.store import EventKind, Watch, WatchCallback, WatchEvent

Mark = tuple[int, int] | None
"""None: there is no such node."""

_UNKNOWN: Mark = (-1, -1)
_LOST: Mark = (-2, -2)


class Subscription(Watch):
    """One lasting watch.

    Field `_mark`: the node when the current watch was set. `_UNKNOWN` while the first answer is
    awaited, or that to a request which was sent before anybody was told; `_LOST` when that answer
    never came, so that others may have read before the next watch is set, and have to be told.
    """

    def __init__(self, client: KazooClient, path: str, callback: WatchCallback) -> None:
        self.path = path
        self.forget: Callable[[Subscription], None] = lambda _: None
        self._client = client
        self._callback = callback
        self._mark: Mark = _UNKNOWN
        self._active = True

    @abstractmethod
    def arm(self) -> None:
        """Ask ZooKeeper for its next watch; what it answers goes to `_armed`."""

    @abstractmethod
    def _kind(self, before: Mark, now: Mark) -> EventKind:
        """What to call a change that no watch has reported."""

    @abstractmethod
    def _kind_of(self, event_type: EventType) -> EventKind:
        """What to call a change that a watch has reported."""

    def cancel(self) -> None:
        """See Watch."""
        if self._active:
            self._active = False
            self.forget(self)

    def session_expired(self) -> None:
        """Pass it on; the next session will `arm` again."""
        self._tell(EventKind.SESSION_EXPIRED)

    def _fired(self, event: WatchedEvent) -> None:
        """Called for ZooKeeper's watch. An event without a type says that the connection broke:
        the watch is set again when there is a new one."""
        if not self._active or event.type == EventType.NONE:
            return
        self._mark = _UNKNOWN
        self.arm()
        self._tell(self._kind_of(event.type))

    def _armed(self, mark: Mark) -> None:
        before, self._mark = self._mark, mark
        if before not in (_UNKNOWN, mark):
            self._tell(self._kind(before, mark))

    def _failed(self) -> None:
        """The connection broke; the watch is asked for again when there is a new one."""
        if self._mark == _UNKNOWN:
            self._mark = _LOST

    def _tell(self, kind: EventKind) -> None:
        if self._active:
            self._callback(WatchEvent(kind, self.path))


class DataSubscription(Subscription):
    """Tells when the node is created, changed or deleted."""

    def arm(self) -> None:
        """See Subscription."""
        self._client.exists_async(self.path, watch=self._fired).rawlink(self._exists_answered)

    def _exists_answered(self, answer: Any) -> None:
        if answer.successful():
            self._armed(_data_mark(answer.value))
        else:
            self._failed()

    def _kind(self, before: Mark, now: Mark) -> EventKind:
        if now is None:
            return EventKind.DELETED
        return EventKind.CREATED if before is None else EventKind.CHANGED

    def _kind_of(self, event_type: EventType) -> EventKind:
        return _KINDS[event_type]


class ChildrenSubscription(Subscription):
    """Tells when children come or go. Where there is no node yet, waits for it to be created."""

    def arm(self) -> None:
        """See Subscription."""
        self._client.get_children_async(self.path, watch=self._fired, include_data=True).rawlink(
            self._children_answered
        )

    def _children_answered(self, answer: Any) -> None:
        if answer.successful():
            _, stat = answer.value
            self._armed((stat.czxid, stat.pzxid))
        elif isinstance(answer.exception, NoNodeError):
            self._armed(None)
            self._client.exists_async(self.path, watch=self._fired).rawlink(self._exists_answered)
        else:
            self._failed()

    def _exists_answered(self, answer: Any) -> None:
        if not answer.successful():
            self._failed()
        elif answer.value is not None:  # it was created in between
            self.arm()

    def _kind(self, before: Mark, now: Mark) -> EventKind:
        return EventKind.CHILDREN

    def _kind_of(self, event_type: EventType) -> EventKind:
        return EventKind.CHILDREN


_KINDS = {
    EventType.CREATED: EventKind.CREATED,
    EventType.CHANGED: EventKind.CHANGED,
    EventType.DELETED: EventKind.DELETED,
}


def _data_mark(stat: ZnodeStat | None) -> Mark:
    return (stat.czxid, stat.mzxid) if stat else None
