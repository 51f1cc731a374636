"""Watches one znode: its data and its children, with ZooKeeper's own watches."""

import asyncio
from collections.abc import AsyncGenerator

from broker.metadata.errors import NoNode
from broker.metadata.store import MetadataStore, WatchEvent
from kctl.admin.metadata_place import Place
from kctl.admin.znode_kinds import explain
from kctl.admin.znodes import checked_path
from kctl.model.events import Event, EventKind


async def watch_znode(place: Place, path: str) -> AsyncGenerator[Event, None]:
    """Changes of the node, which need not exist yet, and of the names of its children.

    The first event is the present state. ZooKeeper reports that something changed, not what: of
    changes in quick succession only the last state is seen.
    """
    checked = checked_path(path)
    async with place.opened(create=False) as store:
        changed: asyncio.Queue[WatchEvent] = asyncio.Queue()
        watches = [
            store.watch_data(checked, changed.put_nowait),
            store.watch_children(checked, changed.put_nowait),
        ]
        try:
            before = await _state(store, checked)
            yield Event(EventKind.NODE, checked, after=before[0], detail=before[2])
            while True:
                await changed.get()
                now = await _state(store, checked)
                if now[0] != before[0]:
                    kind = EventKind.NODE_DATA
                    if now[0] is None or before[0] is None:
                        kind = EventKind.NODE_DELETED if now[0] is None else EventKind.NODE_CREATED
                    yield Event(kind, checked, before[0], now[0], now[2])
                for name in sorted(set(before[1]) - set(now[1])):
                    yield Event(EventKind.CHILD_REMOVED, checked, name)
                for name in sorted(set(now[1]) - set(before[1])):
                    yield Event(EventKind.CHILD_ADDED, checked, after=name)
                before = now
        finally:
            for watch in watches:
                watch.cancel()


async def _state(store: MetadataStore, path: str) -> tuple[object, list[str], str]:
    """The data (secrets masked), the children, and the version as text."""
    try:
        data, stat = await store.get(path)
        children = await store.children(path)
    except NoNode:
        return None, [], "no such znode"
    value = explain(path, data).value
    return "" if value is None else value, children, f"version {stat.version}"
