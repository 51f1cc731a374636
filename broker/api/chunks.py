"""Splits a request with very many entries into several requests with few entries each.

Most APIs process entries (partitions, groups, keys) independently of each other. A large request of
such an API is cut into chunks, each chunk is handled like a request of its own, and the responses
are joined: the handler needs no code for it, and other clients are served between two chunks.

What differs from handling it at once: an entry that occurs in two chunks is processed twice, where
some handlers would process it once or refuse both. No client names a partition twice in a request
for thousands.

Other arrays are never long in a request that makes sense, because there are few things to name in
them: states, assignment protocols, brokers. Those have a limit instead.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

from broker.errors import ErrorCode
from broker.protocol.api_keys import ApiKey
from broker.protocol.schema import Request, Response, Struct

StructT = TypeVar("StructT", bound=Struct)

MANY: Final = 500
"""Up to this number of entries a request is always handled at once."""

_CHUNK: Final = 100
_SLOW_CHUNK: Final = 1000
"""Entries per chunk of a larger request. Chunks of APIs that wait for other replicas are larger,
because every chunk waits once."""


class Path(NamedTuple):
    """The paths to the entries of a request and to their results in its response.

    ("topics", "partitions") means the partitions of all topics.
    """

    entries: tuple[str, ...]
    results: tuple[str, ...]
    chunk: int = _CHUNK
    newer_results: tuple[str, ...] = ()
    """Where later versions have the results of the same entries."""


class Limit(NamedTuple):
    """The largest number of elements of an array, and the error if there are more.

    ("topics", "configs") counts the configs of all topics together.
    """

    array: tuple[str, ...]
    at_most: int
    code: ErrorCode = ErrorCode.INVALID_REQUEST


_PARTITIONS: Final = Path(("topics", "partitions"), ("topics", "partitions"))
_INDEXES: Final = Path(("topics", "partition_indexes"), ("topics", "partitions"))

_STATES: Final = ("topic_states", "partition_states")
_UNGROUPED_STATES: Final = ("ungrouped_partition_states",)
_ERRORS: Final = ("partition_errors",)

PATHS: Final[Mapping[int, tuple[Path, ...]]] = {
    ApiKey.PRODUCE: (
        Path(
            ("topic_data", "partition_data"),
            ("responses", "partition_responses"),
            chunk=MANY,
        ),
    ),
    ApiKey.LIST_OFFSETS: (_PARTITIONS,),
    ApiKey.LEADER_AND_ISR: (
        Path(_STATES, _ERRORS, MANY, newer_results=("topics", "partition_errors")),
        Path(_UNGROUPED_STATES, _ERRORS, MANY),
    ),
    ApiKey.STOP_REPLICA: (
        Path(_STATES, _ERRORS, MANY),
        Path(("topics", "partition_indexes"), _ERRORS, MANY),
        Path(("ungrouped_partitions",), _ERRORS, MANY),
    ),
    ApiKey.METADATA: (Path(("topics",), ("topics",), chunk=MANY),),
    ApiKey.FIND_COORDINATOR: (Path(("coordinator_keys",), ("coordinators",), chunk=MANY),),
    ApiKey.ADD_PARTITIONS_TO_TXN: (Path(("transactions",), ("results_by_transaction",)),),
    ApiKey.OFFSET_COMMIT: (_PARTITIONS._replace(chunk=_SLOW_CHUNK),),
    ApiKey.TXN_OFFSET_COMMIT: (_PARTITIONS._replace(chunk=_SLOW_CHUNK),),
    ApiKey.OFFSET_FETCH: (
        _INDEXES,
        Path(("groups", "topics", "partition_indexes"), ("groups", "topics", "partitions")),
    ),
    ApiKey.OFFSET_DELETE: (_PARTITIONS._replace(chunk=_SLOW_CHUNK),),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (_PARTITIONS,),
    ApiKey.DELETE_RECORDS: (_PARTITIONS,),
    ApiKey.DESCRIBE_GROUPS: (Path(("groups",), ("groups",)),),
    ApiKey.DELETE_GROUPS: (Path(("groups_names",), ("results",)),),
    ApiKey.LEAVE_GROUP: (Path(("members",), ("members",)),),
    ApiKey.DELETE_TOPICS: (
        Path(("topics",), ("responses",)),
        Path(("topic_names",), ("responses",)),
    ),
    ApiKey.WRITE_TXN_MARKERS: (
        Path(("markers", "topics", "partition_indexes"), ("markers", "topics", "partitions")),
    ),
    ApiKey.DESCRIBE_PRODUCERS: (_INDEXES,),
    ApiKey.DESCRIBE_TRANSACTIONS: (Path(("transactional_ids",), ("transaction_states",)),),
    ApiKey.ALTER_CONFIGS: (Path(("resources",), ("responses",)),),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (Path(("resources",), ("responses",)),),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (
        Path(("dirs", "topics", "partitions"), ("results", "partitions")),
    ),
    ApiKey.ELECT_LEADERS: (
        Path(("topic_partitions", "partitions"), ("replica_election_results", "partition_result")),
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (
        Path(("topics", "partitions"), ("responses", "partitions"), chunk=_SLOW_CHUNK),
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (_INDEXES,),
    ApiKey.ALTER_CLIENT_QUOTAS: (Path(("entries",), ("entries",)),),
    ApiKey.CREATE_ACLS: (Path(("creations",), ("results",)),),
    ApiKey.DELETE_ACLS: (Path(("filters",), ("filter_results",)),),
}
"""The APIs whose entries are independent of each other. A request has entries at one of the
paths of its API: which one depends on the version."""

_TRANSACTIONS: Final = ("transactions", "topics", "partitions")

LIMITS: Final[Mapping[int, tuple[Limit, ...]]] = {
    ApiKey.LEADER_AND_ISR: tuple(
        Limit((*path, array), 50_000)
        for path in (_STATES, _UNGROUPED_STATES)
        for array in ("replicas", "isr", "adding_replicas", "removing_replicas")
    ),
    ApiKey.UPDATE_METADATA: (Limit(("live_brokers", "endpoints"), 10_000),),
    ApiKey.JOIN_GROUP: (Limit(("protocols",), 1000, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),),
    ApiKey.SYNC_GROUP: (Limit(("assignments",), 20_000),),
    ApiKey.LIST_GROUPS: (Limit(("states_filter",), 1000), Limit(("types_filter",), 1000)),
    ApiKey.LIST_TRANSACTIONS: (
        Limit(("state_filters",), 1000),
        Limit(("producer_id_filters",), 50_000),
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        Limit(("v3_and_below_topics", "partitions"), 20_000),
        Limit(_TRANSACTIONS, 20_000),
    ),
    ApiKey.CREATE_TOPICS: (
        Limit(("topics",), 10_000, ErrorCode.POLICY_VIOLATION),
        Limit(("topics", "assignments", "broker_ids"), 50_000, ErrorCode.POLICY_VIOLATION),
        Limit(("topics", "configs"), 50_000, ErrorCode.POLICY_VIOLATION),
    ),
    ApiKey.CREATE_PARTITIONS: (
        Limit(("topics",), 10_000, ErrorCode.POLICY_VIOLATION),
        Limit(("topics", "assignments", "broker_ids"), 50_000, ErrorCode.POLICY_VIOLATION),
    ),
    ApiKey.ALTER_CONFIGS: (Limit(("resources", "configs"), 20_000),),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (Limit(("resources", "configs"), 20_000),),
    ApiKey.DESCRIBE_CONFIGS: (Limit(("resources", "configuration_keys"), 200_000),),
    ApiKey.DESCRIBE_LOG_DIRS: (Limit(("topics", "partitions"), 50_000),),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (Limit(("topics", "partitions", "replicas"), 20_000),),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (Limit(("components",), 1000),),
    ApiKey.ALTER_CLIENT_QUOTAS: (
        Limit(("entries", "entity"), 20_000),
        Limit(("entries", "ops"), 20_000),
    ),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (Limit(("users",), 20_000),),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (
        Limit(("deletions",), 10_000),
        Limit(("upsertions",), 10_000),
    ),
    ApiKey.UPDATE_FEATURES: (Limit(("feature_updates",), 1000),),
    ApiKey.CREATE_DELEGATION_TOKEN: (Limit(("renewers",), 1000),),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (Limit(("owners",), 1000),),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (Limit(("group_ids",), 20_000),),
}
"""Limits far above what a meaningful request contains. For an API that is cut into chunks, the
limit applies to each chunk."""

ERROR_PATHS: Final[Mapping[int, Path]] = {
    ApiKey.CREATE_TOPICS: Path(("topics",), ("topics",)),
    ApiKey.CREATE_PARTITIONS: Path(("topics",), ("results",)),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Path(("group_ids",), ("groups",)),
    ApiKey.DESCRIBE_CONFIGS: Path(("resources",), ("results",)),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Path(("users",), ("results",)),
}
"""Where a response repeats the error of a request above its limit."""

UNANSWERED: Final = frozenset(
    {ApiKey.ALTER_USER_SCRAM_CREDENTIALS, ApiKey.UPDATE_FEATURES, ApiKey.ALTER_CLIENT_QUOTAS}
)
"""APIs whose responses would repeat the error for every entry of two arrays, or the array that is
above its limit: the connection is closed instead."""


def exceeded_limit(request: Request[Any]) -> Limit | None:
    """The limit that a request exceeds, if any."""
    for limit in LIMITS.get(request.api_key, ()):
        if _weight(request, limit.array, limit.at_most) > limit.at_most:
            return limit
    return None


def large_path(request: Request[Any]) -> Path | None:
    """The path of a request that has to be cut; None if it is handled at once."""
    for path in PATHS.get(request.api_key, ()):
        at_once = path.chunk if path.chunk > MANY else MANY
        if _weight(request, path.entries, at_once) > at_once:
            return path
    return None


def _weight(struct: Struct, path: tuple[str, ...], limit: int) -> int:
    """The number of entries, at least one for each struct on the way; exact only up to `limit`."""
    entries = getattr(struct, path[0], None) or ()
    if len(path) == 1 or len(entries) > limit:
        return len(entries)
    weight = 0
    for entry in entries:
        weight += max(_weight(entry, path[1:], limit), 1)
        if weight > limit:
            break
    return weight


def cut(request: Request[Any], path: Path) -> Iterator[Request[Any]]:
    """The request in chunks. Takes the entries out of the request, so that they can be freed."""
    name, *inner = path.entries
    entries: list[Any] = getattr(request, name)
    setattr(request, name, [])
    for taken in _take_all(entries, tuple(inner), path.chunk):
        chunk = _copy(request)
        setattr(chunk, name, taken)
        yield chunk


def _take_all(entries: list[Any], path: tuple[str, ...], count: int) -> Iterator[list[Any]]:
    """Lists with up to `count` entries at the end of `path`; `entries` is empty in the end."""
    entries.reverse()  # they are removed from the end, which is cheap
    if not path:
        while entries:
            taken = entries[: -count - 1 : -1]
            del entries[-count:]
            yield taken
        return
    taken, room = [], count
    while entries:
        entry = entries.pop()
        weight = max(_weight(entry, path, count), 1)
        if weight > count:
            for some in _take_all(getattr(entry, path[0]), path[1:], count):
                part = _copy(entry)
                setattr(part, path[0], some)
                yield [*taken, part]
                taken, room = [], count
            continue
        if weight > room:
            yield taken
            taken, room = [], count
        taken.append(entry)
        room -= weight
    if taken:
        yield taken


def _copy(struct: StructT) -> StructT:
    """A shallow copy. Fields that the version lacks are attributes of the class, and read-only."""
    copied = object.__new__(type(struct))
    for name in (*(field.name for field in struct.fields), "unknown_tags"):
        with suppress(AttributeError):
            setattr(copied, name, getattr(struct, name))
    return copied


def join(whole: Response, part: Response, path: Path) -> None:
    """Add the results of a later chunk to those of the chunks before it."""
    for results in (path.results, path.newer_results):
        if results:
            _join(whole, part, results)
    for name in ("error_code", "error_message"):
        if not getattr(whole, name, None) and getattr(part, name, None):
            setattr(whole, name, getattr(part, name))


def _join(whole: Struct, part: Struct, path: tuple[str, ...]) -> None:
    results: list[Any] = getattr(whole, path[0])
    added: list[Any] = getattr(part, path[0])
    if len(path) > 1 and results and added and _is_same(results[-1], added[0]):
        _join(results[-1], added[0], path[1:])
        added = added[1:]
    results.extend(added)


def _is_same(one: Struct, other: Struct) -> bool:
    """Whether two results are of the same topic or group: its name is their first field."""
    name = one.fields[0].name
    return bool(getattr(one, name) == getattr(other, name))
