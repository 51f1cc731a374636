"""Persistent watches, built on ZooKeeper's one-time watches. All code here runs on the event loop.

A subscription remembers the zxids of its node (its mark) from the time when the current watch was
set. When the watch is set again after a broken connection and the mark has changed, the node has
changed meanwhile, and the subscription reports that as the watch would have done.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.protocol.states import EventType, WatchedEvent, ZnodeStat

from broker.metadata.store import EventKind, Watch, WatchCallback, WatchEvent

Mark = tuple[int, int] | None
"""The zxids that identify the state of a node; None if it does not exist."""

_UNKNOWN: Mark = (-1, -1)
_LOST: Mark = (-2, -2)


class Subscription(Watch):
    """One persistent watch.

    Field `_mark`: the node's mark when the current watch was set. `_UNKNOWN` until the response to
    the request that sets the watch arrives; a change before that needs no event, as the subscriber
    reads after it. `_LOST` if the connection broke before that response: the subscriber may have
    read already, so that the next response is reported as a change.
    Field `_active`: false once cancelled.
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
        """Set the next watch; the response goes to `_armed`."""

    @abstractmethod
    def _kind(self, before: Mark, now: Mark) -> EventKind:
        """The kind of a change that no watch has reported."""

    @abstractmethod
    def _kind_of(self, event_type: EventType) -> EventKind:
        """The kind of a change that a watch has reported."""

    def cancel(self) -> None:
        """See Watch."""
        if self._active:
            self._active = False
            self.forget(self)

    def session_expired(self) -> None:
        """Report the expiry; the store calls `arm` in the next session."""
        self._notify(EventKind.SESSION_EXPIRED)

    def _fired(self, event: WatchedEvent) -> None:
        """Called by ZooKeeper's watch. An event of type NONE means that the connection broke: the
        watch is set again by the next connection."""
        if not self._active or event.type == EventType.NONE:
            return
        self._mark = _UNKNOWN
        self.arm()
        self._notify(self._kind_of(event.type))

    def _armed(self, mark: Mark) -> None:
        before, self._mark = self._mark, mark
        if before not in (_UNKNOWN, mark):
            self._notify(self._kind(before, mark))

    def _failed(self) -> None:
        """The connection broke; the watch is set again by the next connection."""
        if self._mark == _UNKNOWN:
            self._mark = _LOST

    def _notify(self, kind: EventKind) -> None:
        if self._active:
            self._callback(WatchEvent(kind, self.path))


class DataSubscription(Subscription):
    """Reports that the node was created, changed or deleted."""

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
    """Reports added and removed children. Without a node it waits for its creation."""

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
