"""The client that brokers and kctl use: bootstrap, routing, retries, over any Kafka.

    async with Client("host1:9092,host2:9092") as client:
        response = await client.send(MetadataRequest(topics=None))         # any broker
        response = await client.send_to_controller(CreateTopicsRequest(...))

Each call has `request_timeout_s` to succeed. Within that time it is tried again, with a growing
pause, when the connection is lost or when the answer says nothing else than that the wrong broker
was asked or that it was asked too early; metadata is refreshed before. Any other error code is the
caller's business. A request that may have been carried out is not sent again (READ_ONLY ones are).
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition
from broker.net.authentication import PLAINTEXT, Security
from broker.net.broker_connection import BrokerConnection, Node, open_connection
from broker.net.failures import ConnectionFailed, SecurityFailed
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from broker.protocol.schema import Request, ResponseT, Struct

ASK_ELSEWHERE_OR_LATER: Final = frozenset(
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
"""Codes that say the request was not carried out here and now, but may be elsewhere or soon."""

READ_ONLY: Final = frozenset(
    api
    for api in ApiKey
    if api.name.startswith(("DESCRIBE_", "LIST_", "CONSUMER_GROUP_DESCRIBE"))
    or api in (ApiKey.METADATA, ApiKey.API_VERSIONS, ApiKey.FIND_COORDINATOR, ApiKey.FETCH)
    or api in (ApiKey.OFFSET_FETCH, ApiKey.OFFSET_FOR_LEADER_EPOCH)
)
"""APIs that change nothing, so that a request can be sent again when its answer was lost."""

TELL_ERRORS: Final = frozenset(
    {ApiKey.METADATA, ApiKey.DESCRIBE_TOPIC_PARTITIONS, ApiKey.DESCRIBE_LOG_DIRS}
)
"""APIs whose codes are the very thing asked for: that a partition has no leader is an answer."""

DEFAULT_PORT: Final = 9092
_CONNECTION_FAILURES: Final = 4
"""How often a broker may be unreachable before a request is given up: a matter of a second."""

GROUP: Final = 0
TRANSACTION: Final = 1
"""Key types of coordinators."""


class NoBrokerAvailable(ConnectionFailed):
    """None of the brokers could be reached; the text says why for each."""


class RequestTimedOut(TimeoutError):
    """No answer in time; names the API and the broker that was asked last."""


@dataclass(frozen=True)
class Cluster:
    """What Metadata said last."""

    cluster_id: str | None = None
    controller_id: int = -1
    nodes: Mapping[int, Node] = field(default_factory=dict)
    leaders: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Leader ids; -1 for a partition without one."""


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
        """By node id; the bootstrap connection is known under its id as soon as it tells it."""
        self._seed: BrokerConnection | None = None
        """A connection to whichever bootstrap address answered."""
        self._connecting: dict[int, asyncio.Lock] = {}
        """By node id; -1 for the bootstrap connection. Two that want the same one share it."""
        self._unreachable: set[int] = set()
        """Brokers that did not answer: they may have come back elsewhere, so metadata is asked."""

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

    # sending

    async def send(self, request: Request[ResponseT]) -> ResponseT:
        """Ask any broker."""
        return await self._retrying(request, self._any_connection)

    async def send_to(self, node_id: int, request: Request[ResponseT]) -> ResponseT:
        """Ask the broker with this id."""
        return await self._retrying(request, lambda: self._connection_to(node_id))

    async def send_to_controller(self, request: Request[ResponseT]) -> ResponseT:
        """Ask the controller, whoever that is by now."""
        return await self._retrying(request, self._controller_connection)

    async def send_to_leader(
        self, partition: TopicPartition, request: Request[ResponseT]
    ) -> ResponseT:
        """Ask the leader of a partition, whoever that is by now."""
        return await self._retrying(request, lambda: self._leader_connection(partition))

    async def send_to_coordinator(
        self, key: str, request: Request[ResponseT], key_type: int = GROUP
    ) -> ResponseT:
        """Ask the coordinator of a group or a transactional id, whoever that is by now."""
        return await self._retrying(request, lambda: self._coordinator_connection(key, key_type))

    async def send_to_all(self, request: Request[ResponseT]) -> dict[int, ResponseT | Exception]:
        """Ask every broker at once; one that fails has its exception in the result."""
        await self.refresh_metadata()
        nodes = sorted(self.cluster.nodes)
        answers = await asyncio.gather(
            *(self.send_to(node_id, request) for node_id in nodes), return_exceptions=True
        )
        failures = (ConnectionFailed, RequestTimedOut, ApiError)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, failures):
                raise answer
        return dict(zip(nodes, answers, strict=True))  # type: ignore[arg-type]

    async def versions_of(self, node_id: int) -> Mapping[int, tuple[int, int]]:
        """What a broker serves: lowest and highest version by API key."""
        return (await self._connection_to(node_id)).versions

    # what the cluster looks like

    async def refresh_metadata(self, topics: Iterable[str] | None = ()) -> MetadataResponse:
        """Ask for brokers, controller and the leaders of `topics` (None: all of them)."""
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        response = await self.send(request)
        self._learn(response)
        return response

    async def leaders_of(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[int, list[TopicPartition]]:
        """Partitions by the broker that leads them; -1 for those without a leader or unknown."""
        partitions = list(partitions)
        if any(partition not in self.cluster.leaders for partition in partitions):
            await self.refresh_metadata({partition.topic for partition in partitions})
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            by_leader.setdefault(self.cluster.leaders.get(partition, -1), []).append(partition)
        return by_leader

    def _learn(self, response: MetadataResponse) -> None:
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

    # connections

    async def _any_connection(self) -> BrokerConnection:
        """One that is open; else to the bootstrap addresses in random order, then known brokers."""
        async with self._connecting.setdefault(-1, asyncio.Lock()):
            for connection in (self._seed, *self._connections.values()):
                if connection is not None and connection.is_open:
                    return connection
            self._seed = await self._first_that_answers()
            return self._seed

    async def _first_that_answers(self) -> BrokerConnection:
        candidates = random.sample(self._bootstrap, len(self._bootstrap))
        reasons = []
        for node in (*candidates, *self.cluster.nodes.values()):
            try:
                return await self._open(node)
            except SecurityFailed:
                raise  # the others are set up alike
            except ConnectionFailed as error:
                reasons.append(str(error))
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
            raise ConnectionFailed("the cluster has no controller at present")
        return await self._connection_to(self.cluster.controller_id)

    async def _leader_connection(self, partition: TopicPartition) -> BrokerConnection:
        [leader] = await self.leaders_of([partition])
        if leader < 0:
            raise ConnectionFailed(f"{partition} has no leader at present")
        return await self._connection_to(leader)

    async def _coordinator_connection(self, key: str, key_type: int) -> BrokerConnection:
        connection = await self._any_connection()
        # Version 3 at most: from 4 on the same question is asked for many keys at once.
        request = FindCoordinatorRequest(key=key, key_type=key_type)
        response = await connection.send(request, version=3)
        if response.error_code:
            raise ApiError(ErrorCode(response.error_code), response.error_message or "")
        if response.node_id not in self.cluster.nodes:
            await self.refresh_metadata()
        return await self._connection_to(response.node_id)

    async def _open(self, node: Node) -> BrokerConnection:
        return await open_connection(node, self.client_id, self._connect_timeout_s, self._security)

    # retries

    async def _retrying(
        self, request: Request[ResponseT], route: Callable[[], Awaitable[BrokerConnection]]
    ) -> ResponseT:
        """Try until there is an answer that counts, time is up, or nobody can be reached."""
        attempts = failures = 0
        again: _TryAgain | None = None
        try:
            async with asyncio.timeout(self.request_timeout_s):
                while True:
                    try:
                        return await self._attempt(request, route)
                    except _TryAgain as error:
                        again = error
                    attempts += 1
                    failures += again.is_connection_failure
                    if failures == _CONNECTION_FAILURES:
                        raise again.reason
                    self._forget_routes()
                    await asyncio.sleep(_pause_s(attempts))
        except TimeoutError as error:
            raise RequestTimedOut(self._timed_out(request, again)) from error

    async def _attempt(
        self, request: Request[ResponseT], route: Callable[[], Awaitable[BrokerConnection]]
    ) -> ResponseT:
        """One try; _TryAgain if nothing was done and another try may help."""
        try:
            connection = await route()
        except (NoBrokerAvailable, SecurityFailed):
            raise
        except ConnectionFailed as error:
            raise _TryAgain(error) from error
        except ApiError as error:
            if error.code in ASK_ELSEWHERE_OR_LATER:
                raise _TryAgain(error) from error
            raise
        try:
            response = await connection.send(request)
        except ConnectionFailed as error:
            if request.api_key in READ_ONLY:
                raise _TryAgain(error) from error
            raise  # it may have been carried out
        codes = [] if request.api_key in TELL_ERRORS else outcomes(response)
        if codes and all(code in ASK_ELSEWHERE_OR_LATER for code in codes):
            raise _TryAgain(ApiError(ErrorCode(codes[0])))
        return response

    def _forget_routes(self) -> None:
        """Who leads and who controls is asked again; addresses are kept, to ask at all."""
        self.cluster = Cluster(self.cluster.cluster_id, -1, self.cluster.nodes)

    def _timed_out(self, request: Request[Any], again: "_TryAgain | None") -> str:
        api = ApiKey(request.api_key).display_name
        last = f"; last: {again.reason}" if again else ""
        return f"{api} was not answered within {self.request_timeout_s:g} s{last}"


class _TryAgain(Exception):
    """An attempt that changed nothing."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(reason)
        self.reason = reason

    @property
    def is_connection_failure(self) -> bool:
        return isinstance(self.reason, ConnectionFailed)


def _pause_s(attempts: int) -> float:
    """Grows with the attempts, with some chance in it so that clients do not return together."""
    return min(1.0, 0.1 * 2.0 ** min(attempts - 1, 4)) * random.uniform(0.8, 1.2)  # noqa: S311


def outcomes(struct: Struct) -> list[int]:
    """The error codes of a response, one per thing that was asked for; 0 is success.

    A code of 0 above others says only that the parts were looked at, so it does not count.
    """
    own: list[int] = []
    nested: list[int] = []
    for declared in struct.fields:
        value = getattr(struct, declared.name)
        if declared.name.endswith("error_code"):
            own.append(value)
        elif isinstance(value, Struct):
            nested += outcomes(value)
        elif declared.is_array and value and isinstance(value[0], Struct):
            nested += [code for item in value for code in outcomes(item)]
    return [code for code in own if code] + nested or own


def parse_bootstrap(bootstrap: str | Iterable[str]) -> list[Node]:
    """`host:port,host:port` → addresses; the port may be left out (9092). ValueError if bad."""
    parts = bootstrap.split(",") if isinstance(bootstrap, str) else bootstrap
    nodes = [_parse_address(part.strip()) for part in parts if part.strip()]
    if not nodes:
        raise ValueError("no bootstrap server was given; wanted is host:port[,host:port]")
    return nodes


def _parse_address(text: str) -> Node:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):  # no port
        host, port = text, str(DEFAULT_PORT)
    is_bare_ipv6 = ":" in host and not (host.startswith("[") and host.endswith("]"))
    is_port = port.isdecimal() and 0 < int(port) < 65536
    if not host or is_bare_ipv6 or not is_port:
        raise ValueError(f"{text!r} is not an address; wanted is host:port or [ipv6]:port")
    return Node(-1, host.removeprefix("[").removesuffix("]"), int(port))
