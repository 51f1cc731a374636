"""Znodes and descriptions of their data."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Explained:
    """The data of a znode, as text and as a value."""

    kind: str
    """`topic`, `partition state` and so on; empty for a node that only has children."""
    summary: str
    value: Any
    """The data: an object, a number or a text, with secrets masked."""


@dataclass(frozen=True)
class Znode:
    """A znode with its attributes and the description of its data."""

    path: str
    data: bytes | None
    explained: Explained
    version: int
    """How often the data was set."""
    num_children: int
    is_ephemeral: bool
    created_ms: int
    modified_ms: int
    czxid: int
    """The id of the change that created the node."""
    mzxid: int
    """The id of the last change of its data."""

    @property
    def name(self) -> str:
        """The last part of its path; `/` for the root."""
        return self.path.rpartition("/")[2] or "/"

    @property
    def depth(self) -> int:
        """The number of its ancestors."""
        return 0 if self.path == "/" else self.path.count("/")
