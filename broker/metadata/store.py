"""The tree store: a small file system of versioned nodes, as ZooKeeper has it.

Rules that hold for every store, and that tests/metadata/test_store_contract.py proves on each:

- Changes are atomic, `multi` included, and take effect in the order in which they were called for,
  whether or not the caller awaits one before it calls for the next.
- `version` guards a change: it is made only if the node still has that version (-1: any).
- A sequence node's name ends in ten digits: how many children its parent has been given so far.
- Ephemeral nodes end with the session that made them, and have no children.
- No data (None) and empty data (b"") are different things to Kafka, and are kept apart.

Watches stay until they are cancelled. A watch says that something has changed, not what it is now:
its user reads again, and is told of any change made after that read. Changes that follow each other
quickly may come as one event, and after a broken connection one may come without a change. When the
session expires every watch is told SESSION_EXPIRED, and lives on in the next session.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from broker.metadata.session import Session

ANY_VERSION = -1
MISSING_PARENT = "its parent is missing"

# Names between single slashes; `.` and `..` are none.
_PATH = re.compile(r"/|(?:/(?!\.{1,2}(?:/|\Z))[^/\0]+)+")


class Stat(NamedTuple):
    """What the store knows about a node. zxids are ids of changes: they only grow."""

    czxid: int
    """The change that created the node: of a broker's node, Kafka's broker epoch."""
    mzxid: int
    pzxid: int
    """The change that last gave or took a child."""
    ctime: int
    mtime: int
    version: int
    """How often the data was set; Kafka's partition epoch, for a partition's state."""
    cversion: int
    """How often a child came or went."""
    ephemeral_owner: int
    """The session the node lives by; 0 for a persistent one."""
    num_children: int


class Znode(NamedTuple):
    """A node as it was read."""

    data: bytes | None
    stat: Stat


@dataclass(frozen=True, slots=True)
class Create:
    """Make a node; its parent must exist."""

    path: str
    data: bytes | None = None
    ephemeral: bool = False
    sequence: bool = False


@dataclass(frozen=True, slots=True)
class SetData:
    """Replace a node's data."""

    path: str
    data: bytes | None
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a node without children."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """Change nothing, but fail the `multi` unless the node has this version."""

    path: str
    version: int


Operation = Create | SetData | Delete | Check
Result = str | Stat | None
"""Of Create the path, of SetData the node's new Stat, of the others nothing."""


class EventKind(StrEnum):
    """What a watch is told."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    CHILDREN = "children"
    SESSION_EXPIRED = "session expired"


class WatchEvent(NamedTuple):
    """Something happened to the watched node."""

    kind: EventKind
    path: str


WatchCallback = Callable[[WatchEvent], None]


class Watch(ABC):
    """A subscription, until it is cancelled."""

    @abstractmethod
    def cancel(self) -> None:
        """Never call back again; events under way included."""


class MetadataStore(ABC):
    """Where the metadata lives. Paths are absolute, `/` is the store's own root.

    Methods raise the errors of `broker.metadata.errors`, with the path in them; a malformed path
    is a ValueError.
    """

    session: Session

    @abstractmethod
    async def get(self, path: str) -> Znode:
        """The node's data and stat; NoNode."""

    @abstractmethod
    async def exists(self, path: str) -> Stat | None:
        """The node's stat; None where there is no node."""

    @abstractmethod
    async def children(self, path: str) -> list[str]:
        """The names of the node's children, sorted; NoNode."""

    @abstractmethod
    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Make all changes or none; the error is that of the first operation that cannot be."""

    async def create(
        self,
        path: str,
        data: bytes | None = None,
        *,
        ephemeral: bool = False,
        sequence: bool = False,
    ) -> str:
        """Make a node and return its path; NodeExists, NoNode (of the parent)."""
        (created,) = await self.multi([Create(path, data, ephemeral, sequence)])
        assert isinstance(created, str)  # noqa: S101 - what a Create results in
        return created

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Stat:
        """Replace the node's data; NoNode, BadVersion."""
        (stat,) = await self.multi([SetData(path, data, version)])
        assert isinstance(stat, Stat)  # noqa: S101 - what a SetData results in
        return stat

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove the node; NoNode, BadVersion, NotEmpty."""
        await self.multi([Delete(path, version)])

    @abstractmethod
    def watch_data(self, path: str, callback: WatchCallback) -> Watch:
        """Be told when the node is created, changed or deleted; it need not exist yet."""

    @abstractmethod
    def watch_children(self, path: str, callback: WatchCallback) -> Watch:
        """Be told when children come or go, with the node itself too; it need not exist yet."""

    @abstractmethod
    async def close(self) -> None:
        """End the session: its ephemeral nodes go, watches fall silent."""


def check_path(path: str) -> None:
    """ValueError unless `path` is one that a node can have."""
    if not _PATH.fullmatch(path):
        raise ValueError(f"{path!r} is no path of a node")


def check_created_path(create: Create) -> None:
    """ValueError unless the node can have its path; that of a sequence node gets its digits."""
    check_path(f"{create.path}0" if create.sequence else create.path)


def parent_of(path: str) -> str:
    """The path of the node above; of a topmost node, `/`."""
    return path.rpartition("/")[0] or "/"


def name_of(path: str) -> str:
    """The last part of a path."""
    return path.rpartition("/")[2]


def join(path: str, name: str) -> str:
    """The path of a child."""
    return f"/{name}" if path == "/" else f"{path}/{name}"
