"""Members of a group, JoinGroup requests, and the results of joins and syncs."""

from dataclasses import dataclass, field
from typing import Protocol, TypeVar
from uuid import uuid4

from broker.errors import ErrorCode

Protocols = tuple[tuple[str, bytes], ...]
"""Assignment protocols of a member in order of preference, each with its metadata."""

UNKNOWN_MEMBER_ID = ""
NO_GENERATION = -1

ResultT = TypeVar("ResultT", contravariant=True)


class Reply(Protocol[ResultT]):
    """The recipient of a result; an asyncio future is one."""

    def set_result(self, result: ResultT, /) -> None:
        """Complete the request. Called at most once."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JoiningMember:
    """A JoinGroup request of any version."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    require_known_member_id: bool = False
    """Whether a new dynamic member only gets an id, with which it must rejoin (KIP-394)."""
    can_skip_assignment: bool = False
    """Whether a returning static leader understands `skip_assignment` (KIP-814)."""
    reason: str = "not provided"

    def generate_member_id(self) -> str:
        """A unique member id that starts with the client id or group instance id."""
        prefix = self.client_id if self.group_instance_id is None else self.group_instance_id
        return f"{prefix}-{uuid4()}"


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """A member in the leader's JoinGroup response."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinResult:
    """The result of a join. A failed one has only the member id and the error."""

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
    """The result of a sync."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(slots=True, kw_only=True)
class Member:
    """The state of a member."""

    member_id: str
    """Changes when a static member returns; the new id fences the old one."""
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    """Invariant: not empty, and at least one is supported by every member."""
    assignment: bytes = b""
    is_new: bool = field(default=False)
    """Whether it has joined but is in no generation yet. It cannot send heartbeats, so its deadline
    is longer, and it applies even while its join waits."""
    session_deadline_ms: int | None = field(default=None)
    """When its session expires; None while it has no deadline."""

    @property
    def is_static(self) -> bool:
        """Whether it has a group instance id, and so stays a member while it is disconnected."""
        return self.group_instance_id is not None

    def metadata(self, protocol_name: str) -> bytes:
        """Its metadata for this protocol; KeyError if it does not support it."""
        return dict(self.protocols)[protocol_name]

    def vote(self, candidates: set[str]) -> str:
        """The candidate it prefers."""
        return next(name for name, _ in self.protocols if name in candidates)
