"""The tree of an embedded store in memory, with ZooKeeper's rules. No files, no clock, no loop.

A list of operations is atomic: if one of them fails, those before it are undone in reverse order,
before any other code can run.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from broker.metadata.errors import (
    BadVersion,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    StoreError,
)
from broker.metadata.store import (
    ANY_VERSION,
    MISSING_PARENT,
    Check,
    Create,
    Delete,
    EventKind,
    Operation,
    Result,
    SetData,
    Stat,
    WatchEvent,
    check_created_path,
    check_path,
    name_of,
    parent_of,
)


@dataclass(slots=True)
class Node:
    """One node.

    Field `num_created`: the number of children ever created, the next sequence number.
    Invariant: num_created >= len(children).
    """

    data: bytes | None
    czxid: int
    mzxid: int
    pzxid: int
    ctime: int
    mtime: int
    version: int = 0
    num_created: int = 0
    ephemeral_owner: int = 0
    children: set[str] = field(default_factory=set)

    def stat(self) -> Stat:
        """The node's attributes. cversion counts each child's creation, and the deletions."""
        return Stat(
            self.czxid,
            self.mzxid,
            self.pzxid,
            self.ctime,
            self.mtime,
            self.version,
            2 * self.num_created - len(self.children),
            self.ephemeral_owner,
            len(self.children),
        )


@dataclass(frozen=True, slots=True)
class ChangeStamp:
    """The zxid, the time and the session of a change."""

    zxid: int
    now_ms: int
    session_id: int


@dataclass(slots=True)
class Change:
    """The outcome of a list of operations.

    Field `persistent`: nodes whose row in the file must be written, or deleted if the tree no
    longer has them.
    Field `happened`: the kind of each change and its node, in order.
    Field `undo`: functions that undo the changes, in order.
    """

    stamp: ChangeStamp
    results: list[Result] = field(default_factory=list)
    persistent: dict[str, None] = field(default_factory=dict)
    happened: list[tuple[EventKind, str]] = field(default_factory=list)
    undo: list[Callable[[], object]] = field(default_factory=list)

    def events(self) -> Iterator[WatchEvent]:
        """The events for watches, each once, in order."""
        told: dict[WatchEvent, None] = {}
        for kind, path in self.happened:
            told[WatchEvent(kind, path)] = None
            if kind is not EventKind.CHANGED:  # created or deleted
                told[WatchEvent(EventKind.CHILDREN, path)] = None
                told[WatchEvent(EventKind.CHILDREN, parent_of(path))] = None
        return iter(told)

    def roll_back(self) -> None:
        """Undo all changes."""
        for step in reversed(self.undo):
            step()


class Tree:
    """All nodes by path. Invariant: `/` exists, and so does every node's parent."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {"/": Node(None, 0, 0, 0, 0, 0)}

    def node(self, path: str) -> Node:
        """The node at `path`; NoNode."""
        try:
            return self.nodes[path]
        except KeyError:
            check_path(path)
            raise NoNode(path) from None

    def load(self, path: str, node: Node) -> None:
        """Add a stored node; its parent must have been added before."""
        self.nodes[path] = node
        if path != "/":
            self.nodes[parent_of(path)].children.add(name_of(path))

    def _unload(self, path: str) -> None:
        del self.nodes[path]
        self.nodes[parent_of(path)].children.remove(name_of(path))

    def ephemerals(self, session_id: int) -> Iterator[str]:
        """The ephemeral nodes of a session."""
        return (path for path, node in self.nodes.items() if node.ephemeral_owner == session_id)

    def apply(self, operations: Sequence[Operation], stamp: ChangeStamp) -> Change:
        """Make all changes, or none and raise the error of the first that fails."""
        change = Change(stamp)
        try:
            for operation in operations:
                change.results.append(self._apply(operation, change))
        except (StoreError, ValueError):
            change.roll_back()
            raise
        return change

    def _apply(self, operation: Operation, change: Change) -> Result:
        match operation:
            case Create():
                return self._create(operation, change)
            case SetData():
                return self._set(operation, change)
            case Delete():
                self._delete(operation, change)
            case Check(path, version):
                _check_version(path, self.node(path), version)
        return None

    def _create(self, create: Create, change: Change) -> str:
        check_created_path(create)
        parent_path = parent_of(create.path)
        parent = self.nodes.get(parent_path)
        if not parent:
            raise NoNode(create.path, MISSING_PARENT)
        path = create.path + (f"{parent.num_created:010d}" if create.sequence else "")
        if path in self.nodes:
            raise NodeExists(create.path)
        if parent.ephemeral_owner:
            raise NoChildrenForEphemerals(create.path)
        stamp = change.stamp
        owner = stamp.session_id if create.ephemeral else 0
        self.nodes[path] = Node(
            create.data, stamp.zxid, stamp.zxid, stamp.zxid, stamp.now_ms, stamp.now_ms
        )
        self.nodes[path].ephemeral_owner = owner
        self._note_child(parent_path, path, change, parent.num_created + 1)
        parent.children.add(name_of(path))
        change.undo.append(lambda: self._unload(path))
        change.happened.append((EventKind.CREATED, path))
        return path

    def _set(self, operation: SetData, change: Change) -> Stat:
        path, node = operation.path, self.node(operation.path)
        _check_version(path, node, operation.version)
        before = (node.data, node.mzxid, node.mtime, node.version)

        def undo() -> None:
            node.data, node.mzxid, node.mtime, node.version = before

        change.undo.append(undo)
        node.data, node.version = operation.data, node.version + 1
        node.mzxid, node.mtime = change.stamp.zxid, change.stamp.now_ms
        if not node.ephemeral_owner:
            change.persistent[path] = None
        change.happened.append((EventKind.CHANGED, path))
        return node.stat()

    def _delete(self, operation: Delete, change: Change) -> None:
        path, node = operation.path, self.node(operation.path)
        if path == "/":
            raise ValueError("the root of the store cannot be deleted")
        _check_version(path, node, operation.version)
        if node.children:
            raise NotEmpty(path)
        parent_path = parent_of(path)
        num_created = self.nodes[parent_path].num_created
        self._note_child(parent_path, path, change, num_created)
        self._unload(path)
        change.undo.append(lambda: self.load(path, node))
        change.happened.append((EventKind.DELETED, path))

    def _note_child(self, parent_path: str, path: str, change: Change, num_created: int) -> None:
        """Update the parent of a node that is created or deleted.

        For an ephemeral child nothing is written: after a restart it no longer exists.
        """
        parent = self.nodes[parent_path]
        before = (parent.pzxid, parent.num_created)

        def undo() -> None:
            parent.pzxid, parent.num_created = before

        change.undo.append(undo)
        parent.pzxid, parent.num_created = change.stamp.zxid, num_created
        if not self.nodes[path].ephemeral_owner:
            change.persistent[parent_path] = None
            change.persistent[path] = None


def _check_version(path: str, node: Node, version: int) -> None:
    if version not in (ANY_VERSION, node.version):
        raise BadVersion(path, f"expected {version}, found {node.version}")
