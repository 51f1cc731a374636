"""A client of any Kafka cluster, for brokers and kctl: bootstrap, routing, retries.

    async with Client("host1:9092,host2:9092") as client:
        response = await client.send(MetadataRequest(topics=None))         # any broker
        response = await client.send_to_controller(CreateTopicsRequest(...))

Each call has `request_timeout_s` to succeed. Within that time it is retried with exponential
backoff, after a refresh of the metadata, if the connection fails or if all error codes of the
response say that this broker cannot serve the request now (`RETRIABLE`). Other error codes are
returned to the caller. A request that the broker may have executed is retried only if it is
READ_ONLY.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition
from broker.net.authentication import PLAINTEXT, Security
from broker.net.broker_connection import (
    BrokerConnection,
    Node,
    UnsupportedVersion,
    open_connection,
)
from broker.net.failures import ConnectionFailed, SecurityFailed
from broker.protocol.api_keys import ApiKey
from broker.protocol.errors import EncodeError
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from broker.protocol.schema import Request, ResponseT, Struct

RETRIABLE: Final = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)
"""Codes that say: not executed; another broker, or this one a little later, may execute it."""

READ_ONLY: Final = frozenset(
    api
    for api in ApiKey
    if api.name.startswith(("DESCRIBE_", "LIST_"))
    or api.name.endswith("_GROUP_DESCRIBE")
    or api in (ApiKey.METADATA, ApiKey.API_VERSIONS, ApiKey.FIND_COORDINATOR, ApiKey.FETCH)
    or api in (ApiKey.OFFSET_FETCH, ApiKey.OFFSET_FOR_LEADER_EPOCH)
)
"""APIs that change nothing: a request can be sent again if its response was lost."""

REPORTS_ERRORS: Final = frozenset(
    {ApiKey.METADATA, ApiKey.DESCRIBE_TOPIC_PARTITIONS, ApiKey.DESCRIBE_LOG_DIRS}
)
"""APIs whose error codes are part of the result, such as a partition without a leader."""

DEFAULT_PORT: Final = 9092
_NO_AUTO_CREATION_SINCE: Final = 4
"""The first version of Metadata with the field `allow_auto_topic_creation`."""
_CONTROLLER_SINCE: Final = 1
"""The first version of Metadata that names the controller."""
STAGGER_S: Final = 1.0
"""How long a bootstrap server may be silent before the next one is tried as well."""
_CONNECTION_FAILURES: Final = 4
"""After this many failed connections a request fails, which is about a second."""

GROUP: Final = 0
TRANSACTION: Final = 1
"""Key types of FindCoordinator."""


class NoBrokerAvailable(ConnectionFailed):
    """No broker could be reached; the text has the reason for each."""


class RequestTimedOut(TimeoutError):
    """No response in time; names the API and the last failure."""


@dataclass(frozen=True)
class Cluster:
    """The cluster as of the last Metadata response."""

    cluster_id: str | None = None
    controller_id: int = -1
    nodes: Mapping[int, Node] = field(default_factory=dict)
    leaders: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Leader ids; -1 for a partition without a leader."""


class Client:
    """A client of one cluster; use it as an async context manager."""

    def __init__(
        self,
        bootstrap: str | Iterable[str],
        *,
        client_id: str = "kctl",
        request_timeout_s: float = 30.0,
        connect_timeout_s: float = 10.0,
        security: Security = PLAINTEXT,
    ) -> None:
        self.client_id = client_id
        self.request_timeout_s = request_timeout_s
        self.cluster = Cluster()
        self._connect_timeout_s = connect_timeout_s
        self._security = security
        self._bootstrap = parse_bootstrap(bootstrap)
        self._connections: dict[int, BrokerConnection] = {}
        """By node id; not including the bootstrap connection."""
        self._seed: BrokerConnection | None = None
        """A connection to the first bootstrap address that accepted one."""
        self._connecting: dict[int, asyncio.Lock] = {}
        """By node id, -1 for the bootstrap connection: concurrent requests open one connection."""
        self._unreachable: set[int] = set()
        """Brokers that could not be reached: their address is looked up before the next try."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        for connection in (*self._connections.values(), *([self._seed] if self._seed else [])):
            connection.close()
        self._connections.clear()
        self._seed = None

    # Sending

    async def send(self, request: Request[ResponseT]) -> ResponseT:
        """Send to any broker."""
        return await self._send_with_retries(request, self._any_connection)

    async def send_to(self, node_id: int, request: Request[ResponseT]) -> ResponseT:
        """Send to the broker with this id."""
        return await self._send_with_retries(request, lambda: self._connection_to(node_id))

    async def send_to_controller(self, request: Request[ResponseT]) -> ResponseT:
        """Send to the active controller."""
        return await self._send_with_retries(request, self._controller_connection)

    async def send_to_leader(
        self, partition: TopicPartition, request: Request[ResponseT]
    ) -> ResponseT:
        """Send to the current leader of a partition."""
        return await self._send_with_retries(request, lambda: self._leader_connection(partition))

    async def send_to_coordinator(
        self, key: str, request: Request[ResponseT], key_type: int = GROUP
    ) -> ResponseT:
        """Send to the current coordinator of a group or a transactional id."""
        return await self._send_with_retries(
            request, lambda: self._coordinator_connection(key, key_type)
        )

    async def probe(self, node_id: int) -> None:
        """Open another connection to a broker, which must answer ApiVersions, and close it.

        Tells a broker that is busy with a request from one that hangs: a broker handles the
        requests of one connection one after the other. ConnectionFailed if it does not answer.
        """
        (await self._open(self.cluster.nodes[node_id])).close()

    async def versions_of(self, node_id: int) -> Mapping[int, tuple[int, int]]:
        """The versions that a broker serves: lowest and highest, by API key."""
        return (await self._connection_to(node_id)).versions

    async def certificate_expiry(self, node_id: int) -> float | None:
        """When the broker's certificate expires, in seconds since 1970; None without TLS."""
        return (await self._connection_to(node_id)).certificate_expiry

    # Metadata

    async def refresh_metadata(self, topics: Iterable[str] | None = ()) -> MetadataResponse:
        """Fetch brokers, controller and the leaders of `topics` (None: all topics)."""
        response = await self.metadata(topics)
        self._update(response)
        return response

    async def metadata(self, topics: Iterable[str] | None) -> MetadataResponse:
        """The metadata of brokers and `topics` (None: all topics); creates no topics.

        Brokers before Kafka 0.11 create topics that a request names, so all topics are requested.
        """
        wanted = None if topics is None else list(topics)
        named = None if wanted is None else [MetadataRequestTopic(name=one) for one in wanted]
        try:
            return await self.send(MetadataRequest(topics=named, allow_auto_topic_creation=False))
        except EncodeError:
            connection = await self._any_connection()
            version = connection.versions.get(ApiKey.METADATA, (0, 0))[1]
            if version >= _NO_AUTO_CREATION_SINCE:
                raise
        # An empty list means all topics in version 0, and no topics later.
        response = await self.send(MetadataRequest(topics=None if version else []))
        if wanted is not None:
            response.topics[:] = [one for one in response.topics if one.name in wanted]
        return response

    async def leaders_of(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[int, list[TopicPartition]]:
        """Partitions by leader id; -1 for unknown ones and those without a leader."""
        partitions = list(partitions)
        if any(partition not in self.cluster.leaders for partition in partitions):
            await self.refresh_metadata({partition.topic for partition in partitions})
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            by_leader.setdefault(self.cluster.leaders.get(partition, -1), []).append(partition)
        return by_leader

    def _update(self, response: MetadataResponse) -> None:
        leaders = {
            TopicPartition(topic.name or "", partition.partition_index): partition.leader_id
            for topic in response.topics
            for partition in topic.partitions
        }
        self.cluster = Cluster(
            response.cluster_id,
            response.controller_id,
            {
                broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack)
                for broker in response.brokers
            },
            {**self.cluster.leaders, **leaders},
        )

    # Connections

    async def _any_connection(self) -> BrokerConnection:
        """An open connection, or one to a bootstrap address (in random order) or a known broker."""
        async with self._connecting.setdefault(-1, asyncio.Lock()):
            for connection in (self._seed, *self._connections.values()):
                if connection is not None and connection.is_open:
                    return connection
            self._seed = await self._first_that_connects()
            return self._seed

    async def _first_that_connects(self) -> BrokerConnection:
        """A connection to one of the bootstrap addresses or known brokers.

        The next one is tried as soon as one fails, or if it has not answered within STAGGER_S: a
        broker that hangs must not delay requests that any other can answer.
        """
        candidates = random.sample(self._bootstrap, len(self._bootstrap))
        candidates += self.cluster.nodes.values()
        attempts: list[asyncio.Task[BrokerConnection]] = []
        reasons: list[str] = []
        try:
            while candidates or not all(attempt.done() for attempt in attempts):
                is_last = len(candidates) <= 1
                if candidates:
                    attempts.append(asyncio.create_task(self._open(candidates.pop(0))))
                pending = [attempt for attempt in attempts if not attempt.done()]
                limit_s = None if is_last else STAGGER_S
                await asyncio.wait(pending, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
                if connection := _connected(pending, reasons):
                    attempts = [one for one in attempts if not _has_result(one, connection)]
                    return connection
        finally:
            await _close_all(attempts)
        raise NoBrokerAvailable("; ".join(reasons))

    async def _connection_to(self, node_id: int) -> BrokerConnection:
        async with self._connecting.setdefault(node_id, asyncio.Lock()):
            connection = self._connections.get(node_id)
            if connection is not None and connection.is_open:
                return connection
            node = self.cluster.nodes.get(node_id)
            if node is None or node_id in self._unreachable:
                await self.refresh_metadata()
                node = self.cluster.nodes.get(node_id)
            if node is None:
                raise ConnectionFailed(f"broker {node_id} is not in the cluster")
            self._unreachable.add(node_id)
            connection = self._connections[node_id] = await self._open(node)
            self._unreachable.discard(node_id)
            return connection

    async def _controller_connection(self) -> BrokerConnection:
        if self.cluster.controller_id < 0:
            await self.refresh_metadata()
        if self.cluster.controller_id < 0:
            versions = (await self._any_connection()).versions.get(ApiKey.METADATA)
            if versions and versions[1] < _CONTROLLER_SINCE:
                raise UnsupportedVersion(
                    ApiKey.METADATA, (1, MetadataRequest.versions[1]), versions
                )
            raise ConnectionFailed("the cluster has no active controller")
        return await self._connection_to(self.cluster.controller_id)

    async def _leader_connection(self, partition: TopicPartition) -> BrokerConnection:
        [leader] = await self.leaders_of([partition])
        if leader < 0:
            raise ConnectionFailed(f"{partition} has no leader")
        return await self._connection_to(leader)

    async def _coordinator_connection(self, key: str, key_type: int) -> BrokerConnection:
        connection = await self._any_connection()
        # At most version 3: from version 4 on the request has a list of keys.
        request = FindCoordinatorRequest(key=key, key_type=key_type)
        response = await connection.send(request, version=3)
        if response.error_code:
            raise ApiError(ErrorCode(response.error_code), response.error_message or "")
        if response.node_id not in self.cluster.nodes:
            await self.refresh_metadata()
        return await self._connection_to(response.node_id)

    async def _open(self, node: Node, timeout_s: float | None = None) -> BrokerConnection:
        timeout_s = self._connect_timeout_s if timeout_s is None else timeout_s
        return await open_connection(node, self.client_id, timeout_s, self._security)

    # Retries

    async def _send_with_retries(
        self, request: Request[ResponseT], route: Callable[[], Awaitable[BrokerConnection]]
    ) -> ResponseT:
        """Retry until a final response, a timeout, or too many failed connections."""
        attempts = failures = 0
        again: _Retriable | None = None
        try:
            async with asyncio.timeout(self.request_timeout_s):
                while True:
                    try:
                        return await self._attempt(request, route)
                    except _Retriable as error:
                        again = error
                    attempts += 1
                    failures += again.is_connection_failure
                    if failures == _CONNECTION_FAILURES:
                        raise again.reason
                    self._forget_routes()
                    await asyncio.sleep(_backoff_s(attempts))
        except TimeoutError as error:
            raise RequestTimedOut(self._timeout_message(request, again)) from error

    async def _attempt(
        self, request: Request[ResponseT], route: Callable[[], Awaitable[BrokerConnection]]
    ) -> ResponseT:
        """One attempt; _Retriable if nothing was executed and another attempt may succeed."""
        try:
            connection = await route()
        except (NoBrokerAvailable, SecurityFailed):
            raise
        except ConnectionFailed as error:
            raise _Retriable(error) from error
        except ApiError as error:
            if error.code in RETRIABLE:
                raise _Retriable(error) from error
            raise
        try:
            response = await connection.send(request)
        except ConnectionFailed as error:
            if request.api_key in READ_ONLY:
                raise _Retriable(error) from error
            raise  # the broker may have executed it
        if request.api_key not in REPORTS_ERRORS:
            # Responses may have 100,000 codes: the first one that is final ends the search.
            first = next(codes := iter_error_codes(response), ErrorCode.NONE)
            if first in RETRIABLE and all(code in RETRIABLE for code in codes):
                raise _Retriable(ApiError(ErrorCode(first)))
        return response

    def _forget_routes(self) -> None:
        """Forget leaders and controller, so that they are looked up again; keep the addresses."""
        self.cluster = Cluster(self.cluster.cluster_id, -1, self.cluster.nodes)

    def _timeout_message(self, request: Request[Any], again: "_Retriable | None") -> str:
        api = ApiKey(request.api_key).display_name
        last = f"; last error: {again.reason}" if again else ""
        return f"no response to {api} within {self.request_timeout_s:g} s{last}"


class _Retriable(Exception):
    """A failed attempt that changed nothing."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(reason)
        self.reason = reason

    @property
    def is_connection_failure(self) -> bool:
        return isinstance(self.reason, ConnectionFailed)


def _connected(
    attempts: Iterable[asyncio.Task[BrokerConnection]], reasons: list[str]
) -> BrokerConnection | None:
    """The first connection that was opened; adds the reasons of those that failed."""
    for attempt in attempts:
        if not attempt.done():
            continue
        try:
            return attempt.result()
        except SecurityFailed:
            raise  # the other brokers are configured alike
        except ConnectionFailed as error:
            reasons.append(str(error))
    return None


def _has_result(attempt: asyncio.Task[BrokerConnection], connection: BrokerConnection) -> bool:
    if not attempt.done() or attempt.cancelled() or attempt.exception():
        return False
    return attempt.result() is connection


async def _close_all(attempts: Iterable[asyncio.Task[BrokerConnection]]) -> None:
    """Cancel attempts that are not complete; close the connections of the others."""
    for attempt in attempts:
        attempt.cancel()
    for result in await asyncio.gather(*attempts, return_exceptions=True):
        if isinstance(result, BrokerConnection):
            result.close()


def _backoff_s(attempts: int) -> float:
    """Exponential backoff with jitter, so that clients do not retry at the same moment."""
    return min(1.0, 0.1 * 2.0 ** min(attempts - 1, 4)) * random.uniform(0.8, 1.2)  # noqa: S311


def error_codes(struct: Struct) -> list[int]:
    """The error codes of a response, one per item that was requested; 0 is success.

    A top-level code of 0 above codes of items is left out: it says nothing about the items.
    """
    return list(iter_error_codes(struct))


def iter_error_codes(struct: Struct) -> Iterator[int]:
    """The codes of `error_codes`, one after the other."""
    own = [
        getattr(struct, declared.name)
        for declared in struct.fields
        if declared.name.endswith("error_code")
    ]
    failed = [code for code in own if code]
    yield from failed
    has_codes = bool(failed)
    for declared in struct.fields:
        value = getattr(struct, declared.name)
        if isinstance(value, Struct):
            items: Iterable[Struct] = (value,)
        elif declared.is_array and value and isinstance(value[0], Struct):
            items = value
        else:
            continue
        for item in items:
            for code in iter_error_codes(item):
                has_codes = True
                yield code
    if not has_codes:
        yield from own


def parse_bootstrap(bootstrap: str | Iterable[str]) -> list[Node]:
    """Parse `host:port,host:port`; the default port is 9092. ValueError if it is malformed."""
    parts = bootstrap.split(",") if isinstance(bootstrap, str) else bootstrap
    nodes = [_parse_address(part.strip()) for part in parts if part.strip()]
    if not nodes:
        raise ValueError("no bootstrap servers: expected host:port[,host:port]")
    return nodes


def _parse_address(text: str) -> Node:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):  # no port
        host, port = text, str(DEFAULT_PORT)
    is_bare_ipv6 = ":" in host and not (host.startswith("[") and host.endswith("]"))
    is_port = port.isdecimal() and 0 < int(port) < 65536
    if not host or is_bare_ipv6 or not is_port:
        raise ValueError(f"invalid address {text!r}: expected host:port or [ipv6]:port")
    try:
        host.encode("idna")  # as getaddrinfo does
    except UnicodeError as error:
        raise ValueError(f"invalid host name in {text!r}: {error.__cause__ or error}") from error
    return Node(-1, host.removeprefix("[").removesuffix("]"), int(port))
