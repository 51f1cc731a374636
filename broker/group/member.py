"""A member of a group, what it asks when it joins, and what it is answered."""

from dataclasses import dataclass, field
from typing import Protocol, TypeVar
from uuid import uuid4

from broker.errors import ErrorCode

Protocols = tuple[tuple[str, bytes], ...]
"""Assignment protocols a member knows, best liked first, each with its metadata."""

UNKNOWN_MEMBER_ID = ""
NO_GENERATION = -1

ResultT = TypeVar("ResultT", contravariant=True)


class Reply(Protocol[ResultT]):
    """Where an answer goes when there is one; an asyncio future is such a place."""

    def set_result(self, result: ResultT, /) -> None:
        """Give the answer; at most once."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JoiningMember:
    """One JoinGroup request, free of its version."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    require_known_member_id: bool = False
    """A new dynamic member is only given an id, and must join again with it (KIP-394)."""
    can_skip_assignment: bool = False
    """A static leader that comes back understands that it need not assign (KIP-814)."""
    reason: str = "not provided"

    def generate_member_id(self) -> str:
        """An id nobody else has, that begins with a name people know."""
        prefix = self.client_id if self.group_instance_id is None else self.group_instance_id
        return f"{prefix}-{uuid4()}"


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """What the leader is told of a member."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinResult:
    """The answer to a join. A failed one tells no more than the member id and the error."""

    member_id: str
    error: ErrorCode = ErrorCode.NONE
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncResult:
    """The answer to a sync."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(slots=True, kw_only=True)
class Member:
    """A member as the group remembers it."""

    member_id: str
    """Changes when a static member comes back; the new id fences the old one."""
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    """Invariant: one of them is known to every member, and never empty."""
    assignment: bytes = b""
    is_new: bool = field(default=False)
    """Joined, but in no generation yet: it has no id to send heartbeats with, so it is given a
    longer time, and that time runs even while its join waits."""
    session_deadline_ms: int | None = field(default=None)
    """When it is taken for dead; None while nothing is expected of it."""

    @property
    def is_static(self) -> bool:
        """Whether it keeps its place while it is away."""
        return self.group_instance_id is not None

    def metadata(self, protocol_name: str) -> bytes:
        """What it says for this protocol; KeyError if it does not know it."""
        return dict(self.protocols)[protocol_name]

    def vote(self, candidates: set[str]) -> str:
        """The candidate it likes best."""
        return next(name for name, _ in self.protocols if name in candidates)
