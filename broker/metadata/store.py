"""The interface of a metadata store: a tree of versioned nodes, as in ZooKeeper.

Every store guarantees the following; tests/metadata/test_store_contract.py checks it on each:

- Changes are atomic, `multi` included, and are applied in the order of the calls, whether or not
  the caller awaits one before it makes the next.
- `version` guards a change: it is made only if the node still has that version (-1: any).
- The name of a sequence node ends in ten digits: the number of children created before it.
- Ephemeral nodes end with the session that created them, and have no children.
- No data (None) and empty data (b"") are distinguished, as Kafka does.

Watches stay until they are cancelled. An event says that a node has changed, not how: the
subscriber reads it again, and is notified of every change after that read. Changes in quick
succession may give one event, and after a broken connection there may be an event without a change.
When the session expires every watch gets SESSION_EXPIRED, and continues in the next session.
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

# Names separated by single slashes; `.` and `..` are not allowed.
_PATH = re.compile(r"/|(?:/(?!\.{1,2}(?:/|\Z))[^/\0]+)+")


class Stat(NamedTuple):
    """The attributes of a node. A zxid is the id of a change; later changes have greater ones."""

    czxid: int
    """The change that created the node; for a broker's node this is Kafka's broker epoch."""
    mzxid: int
    pzxid: int
    """The last change that added or removed a child."""
    ctime: int
    mtime: int
    version: int
    """How often the data was set; for a partition's state this is Kafka's partition epoch."""
    cversion: int
    """How often a child was added or removed."""
    ephemeral_owner: int
    """The session that owns the node; 0 for a persistent one."""
    num_children: int


class Znode(NamedTuple):
    """The data and the attributes of a node."""

    data: bytes | None
    stat: Stat


@dataclass(frozen=True, slots=True)
class Create:
    """Create a node; its parent must exist."""

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
    """Delete a node without children."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """Change nothing, but fail the whole `multi` unless the node has this version."""

    path: str
    version: int


Operation = Create | SetData | Delete | Check
Result = str | Stat | None
"""The path for Create, the new Stat for SetData, None for the others."""


class EventKind(StrEnum):
    """The kinds of events of a watch."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    CHILDREN = "children"
    SESSION_EXPIRED = "session expired"


class WatchEvent(NamedTuple):
    """An event of the watched node."""

    kind: EventKind
    path: str


WatchCallback = Callable[[WatchEvent], None]


class Watch(ABC):
    """A subscription, until it is cancelled."""

    @abstractmethod
    def cancel(self) -> None:
        """Stop the callbacks, including those of events that are being delivered."""


class MetadataStore(ABC):
    """A metadata store. Paths are absolute, `/` is the root of the store (or its chroot).

    Methods raise the errors of `broker.metadata.errors`, with the path in them; a malformed path
    is a ValueError.
    """

    session: Session

    @abstractmethod
    async def get(self, path: str) -> Znode:
        """The node's data and stat; NoNode."""

    @abstractmethod
    async def exists(self, path: str) -> Stat | None:
        """The node's stat; None if it does not exist."""

    @abstractmethod
    async def children(self, path: str) -> list[str]:
        """The names of the node's children, sorted; NoNode."""

    @abstractmethod
    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Make all changes or none; raises the error of the first operation that fails."""

    async def create(
        self,
        path: str,
        data: bytes | None = None,
        *,
        ephemeral: bool = False,
        sequence: bool = False,
    ) -> str:
        """Create a node and return its path; NodeExists, NoNode (for the parent)."""
        (created,) = await self.multi([Create(path, data, ephemeral, sequence)])
        assert isinstance(created, str)  # noqa: S101 - what a Create results in
        return created

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Stat:
        """Replace the node's data; NoNode, BadVersion."""
        (stat,) = await self.multi([SetData(path, data, version)])
        assert isinstance(stat, Stat)  # noqa: S101 - what a SetData results in
        return stat

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Delete the node; NoNode, BadVersion, NotEmpty."""
        await self.multi([Delete(path, version)])

    @abstractmethod
    def watch_data(self, path: str, callback: WatchCallback) -> Watch:
        """Watch for the node's creation, change and deletion; it need not exist yet."""

    @abstractmethod
    def watch_children(self, path: str, callback: WatchCallback) -> Watch:
        """Watch for children being added or removed; the node need not exist yet."""

    @abstractmethod
    async def close(self) -> None:
        """End the session: its ephemeral nodes are deleted, watches get no more events."""


def check_path(path: str) -> None:
    """ValueError unless `path` is a legal path."""
    if not _PATH.fullmatch(path):
        raise ValueError(f"{path!r} is not a legal path of a node")


def check_created_path(create: Create) -> None:
    """ValueError unless the path is legal once the digits of a sequence node are appended."""
    check_path(f"{create.path}0" if create.sequence else create.path)


def parent_of(path: str) -> str:
    """The path of the parent node; `/` for a top-level node."""
    return path.rpartition("/")[0] or "/"


def name_of(path: str) -> str:
    """The last part of a path."""
    return path.rpartition("/")[2]


def join(path: str, name: str) -> str:
    """The path of a child."""
    return f"/{name}" if path == "/" else f"{path}/{name}"
