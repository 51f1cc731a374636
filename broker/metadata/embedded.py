"""The embedded store: the metadata of a single broker in an SQLite file.

The whole tree is in memory, and all reads are served from there. A change is applied to the tree,
then written as one SQLite transaction, then reported to the watches. If it cannot be written, it is
undone in memory and the caller gets StoreWriteFailed. Commits are flushed (`synchronous=FULL`), so
that an acknowledged change survives a crash of the process and of the machine.

Ephemeral nodes are never written: they end with the process, however it ends. Their zxids must not
repeat after a crash nevertheless (Kafka's broker epoch is one). A zxid is therefore composed as in
ZooKeeper: the upper half counts how often the store was opened, the lower half its changes.

SQLite's own lock is held as long as the store is open: a second process gets StoreInUse.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from broker.clock import Clock, SystemClock
from broker.metadata.errors import SessionExpired, StoreError, StoreInUse, StoreWriteFailed
from broker.metadata.session import Session, SessionState
from broker.metadata.store import (
    Delete,
    EventKind,
    MetadataStore,
    Operation,
    Result,
    Stat,
    Watch,
    WatchCallback,
    WatchEvent,
    Znode,
    check_path,
)
from broker.metadata.tree import Change, ChangeStamp, Node, Tree

logger = logging.getLogger(__name__)

_LOG_INTERVAL_S = 60.0

METADATA_FILE = "metadata.db"
FORMAT_VERSION = 1  # SQLite's user_version; 0 is a new file

# `opened` counts how often the store was opened: one row. A znode's columns are the fields of Node
# in their order, without those that only ephemeral nodes and memory need.
SCHEMA = """
BEGIN;
CREATE TABLE znode (
    path TEXT PRIMARY KEY,
    data BLOB,
    czxid INTEGER NOT NULL,
    mzxid INTEGER NOT NULL,
    pzxid INTEGER NOT NULL,
    ctime INTEGER NOT NULL,
    mtime INTEGER NOT NULL,
    version INTEGER NOT NULL,
    num_created INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE opened (times INTEGER NOT NULL);
INSERT INTO opened VALUES (0);
PRAGMA user_version = 1;
COMMIT;
"""


class EmbeddedStore(MetadataStore):
    """A store in the file `path`; created with `open`.

    Field `_tree`: all nodes. Invariant: its persistent nodes are those in the file.
    Field `_zxid`: of the last change. Invariant: grows only, over restarts too.
    Field `_watches`: by path. Invariant: no empty lists.
    """

    def __init__(self, path: Path, database: sqlite3.Connection, clock: Clock) -> None:
        self.path = path
        self.session = Session()
        self._database = database
        self._clock = clock
        self._tree = Tree()
        self._zxid = 0
        self._watches: dict[str, list[_Subscription]] = {}
        self._quiet_until = float("-inf")
        """When to log a failed write again: a full disk makes every request fail."""

    @classmethod
    def open(cls, path: Path, clock: Clock | None = None) -> Self:
        """Open the store, creating the file if it does not exist; StoreInUse, or StoreError."""
        # It holds credentials: only its owner has access. SQLite gives its journal the same mode.
        with suppress(OSError):
            path.touch(0o600)
        try:
            database = sqlite3.connect(path, timeout=0, isolation_level=None)
        except sqlite3.Error as error:
            raise _understood(path, error) from error
        store = cls(path, database, clock or SystemClock())
        try:
            store._load()
        except sqlite3.Error as error:
            database.close()
            raise _understood(path, error) from error
        except StoreError:
            database.close()
            raise
        store.session.move_to(SessionState.CONNECTED, store._next_zxid())
        return store

    def _load(self) -> None:
        """Lock the file and read it."""
        self._database.executescript(
            "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        )
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        if version == 0:
            self._database.executescript(SCHEMA)
        elif version != FORMAT_VERSION:
            raise StoreError(str(self.path), f"written by a newer kctl: format {version}")
        (times,) = self._database.execute(
            "UPDATE opened SET times = times + 1 RETURNING times"
        ).fetchone()
        self._zxid = times << 32
        # Sorted by path: a parent comes before its children.
        for path, *fields in self._database.execute("SELECT * FROM znode ORDER BY path"):
            self._tree.load(path, Node(*fields))

    async def get(self, path: str) -> Znode:
        """See MetadataStore."""
        node = self._tree.node(path)
        return Znode(node.data, node.stat())

    async def exists(self, path: str) -> Stat | None:
        """See MetadataStore."""
        check_path(path)
        node = self._tree.nodes.get(path)
        return node.stat() if node else None

    async def children(self, path: str) -> list[str]:
        """See MetadataStore."""
        return sorted(self._tree.node(path).children)

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """See MetadataStore; one SQLite transaction."""
        if self.session.state is not SessionState.CONNECTED:
            raise SessionExpired(str(self.path), "the store is closed")
        return self._change(operations).results

    def _change(self, operations: Sequence[Operation]) -> Change:
        stamp = ChangeStamp(self._next_zxid(), self._clock.now_ms(), self.session.id)
        change = self._tree.apply(operations, stamp)
        try:
            self._write(change)
        except sqlite3.Error as error:
            change.roll_back()
            raise self._write_failed(error) from error
        if self._watches:
            for event in change.events():
                self._notify(event)
        return change

    def _write(self, change: Change) -> None:
        if not change.persistent:
            return
        nodes = {path: self._tree.nodes.get(path) for path in change.persistent}
        rows = [_row(path, node) for path, node in nodes.items() if node]
        gone = [(path,) for path, node in nodes.items() if not node]
        self._database.execute("BEGIN")
        try:
            self._database.executemany(
                "INSERT OR REPLACE INTO znode VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows
            )
            self._database.executemany("DELETE FROM znode WHERE path = ?", gone)
            self._database.execute("COMMIT")
        except sqlite3.Error:
            with suppress(sqlite3.Error):  # some errors have ended the transaction already
                self._database.execute("ROLLBACK")
            raise

    def _write_failed(self, error: sqlite3.Error) -> StoreWriteFailed:
        failed = StoreWriteFailed(str(self.path), str(error))
        now = self._clock.monotonic()
        if now >= self._quiet_until:
            self._quiet_until = now + _LOG_INTERVAL_S
            logger.error("%s", failed)
        return failed

    def _next_zxid(self) -> int:
        self._zxid += 1
        return self._zxid

    def watch_data(self, path: str, callback: WatchCallback) -> Watch:
        """See MetadataStore."""
        return self._watch(path, callback, children=False)

    def watch_children(self, path: str, callback: WatchCallback) -> Watch:
        """See MetadataStore."""
        return self._watch(path, callback, children=True)

    def _watch(self, path: str, callback: WatchCallback, *, children: bool) -> Watch:
        check_path(path)
        watch = _Subscription(self._watches, path, callback, children)
        self._watches.setdefault(path, []).append(watch)
        return watch

    def _notify(self, event: WatchEvent) -> None:
        """Schedule the callbacks, so that the writer finishes first and is not re-entered."""
        for watch in self._watches.get(event.path, ()):
            if watch.wants(event.kind):
                asyncio.get_running_loop().call_soon(watch.deliver, event)

    def expire_session(self) -> None:
        """Expire the session as ZooKeeper does after a timeout; for tests of failures."""
        ended = list(self._tree.ephemerals(self.session.id))
        self.session.move_to(SessionState.EXPIRED)
        for path in list(self._watches):
            self._notify(WatchEvent(EventKind.SESSION_EXPIRED, path))
        self._change([Delete(path) for path in ended])
        self.session.move_to(SessionState.CONNECTED, self._next_zxid())

    async def close(self) -> None:
        """See MetadataStore; closing twice is allowed."""
        self._watches.clear()
        self._database.close()
        if self.session.state is not SessionState.CLOSED:
            self.session.move_to(SessionState.CLOSED)


class _Subscription(Watch):
    """A watch on one node, registered in its store under the node's path."""

    def __init__(
        self,
        registry: dict[str, list["_Subscription"]],
        path: str,
        callback: WatchCallback,
        children: bool,
    ) -> None:
        self._registry = registry
        self._path = path
        self._callback = callback
        self._children = children

    def wants(self, kind: EventKind) -> bool:
        return kind is EventKind.SESSION_EXPIRED or self._children == (kind is EventKind.CHILDREN)

    def deliver(self, event: WatchEvent) -> None:
        if self in self._registry.get(self._path, ()):
            self._callback(event)

    def cancel(self) -> None:
        with suppress(KeyError, ValueError):  # cancelled before, or the store is closed
            self._registry[self._path].remove(self)
            if not self._registry[self._path]:
                del self._registry[self._path]


def _row(path: str, node: Node) -> tuple[object, ...]:
    return (
        path,
        node.data,
        node.czxid,
        node.mzxid,
        node.pzxid,
        node.ctime,
        node.mtime,
        node.version,
        node.num_created,
    )


def _understood(path: Path, error: sqlite3.Error) -> StoreError:
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
        return StoreInUse(str(path))
    return StoreError(str(path), str(error))
