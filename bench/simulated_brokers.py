"""Brokers without logs, for `bench controller_scale`: to a controller they look like real ones.

Each is registered in ZooKeeper and listens on a port. They answer ApiVersions, LeaderAndIsr,
UpdateMetadata and StopReplica at once. What LeaderAndIsr says goes into one table for all brokers;
a leader whose follower is alive and not in the ISR proposes it with AlterPartition, as if it had
caught up. Nothing is replicated, so what is measured is the controller and ZooKeeper.
"""

import asyncio
import json
import struct
import time
from dataclasses import dataclass
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from broker.errors import ApiError
from broker.metadata.znodes.brokers import BrokerIdZnode, Endpoint
from broker.model import Uuid
from broker.net.broker_connection import BrokerConnection, Node, open_connection
from broker.protocol.api_keys import ApiKey
from broker.protocol.codec import decode, encode
from broker.protocol.headers import read_request_header, start_response
from broker.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from broker.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from broker.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from broker.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from broker.protocol.messages.stop_replica import StopReplicaResponse
from broker.protocol.messages.update_metadata import UpdateMetadataResponse
from broker.protocol.schema import Request, Response

_SIZE = struct.Struct(">i")
_SERVED: Final = {
    ApiKey.LEADER_AND_ISR: (0, 7),
    ApiKey.STOP_REPLICA: (0, 4),
    ApiKey.UPDATE_METADATA: (0, 8),
    ApiKey.API_VERSIONS: (0, 3),
}
_BATCH_S: Final = 0.05
"""How long a leader collects partitions before it sends AlterPartition."""
_TIMEOUT_S: Final = 600.0
NAME = tuple[Uuid, int]


@dataclass(slots=True)
class State:
    """What the controller decided last for one partition."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: list[int]
    replicas: list[int]


@dataclass
class Counts:
    """What the brokers have received, and when the last of it."""

    requests: int = 0
    received_bytes: int = 0
    decided_partitions: int = 0
    """Partitions in LeaderAndIsr requests, over all brokers."""
    altered_partitions: int = 0
    """Partitions whose ISR the controller has changed by AlterPartition."""
    last_s: float = 0.0


class SimulatedBrokers:
    """All of them, in one event loop.

    Field `states`: by topic id and partition, shared: the newest that any broker was sent.
    Field `_joining`: by leader, the partitions for which it will propose a larger ISR.
    """

    def __init__(self, zookeeper: KazooClient, num_brokers: int) -> None:
        self.ids = range(1, num_brokers + 1)
        self.counts = Counts()
        self.states: dict[NAME, State] = {}
        self.epochs: dict[int, int] = {}
        """The broker epochs of those that are registered."""
        self._zookeeper = zookeeper
        self._ports: dict[int, int] = {}
        self._joining: dict[int, set[NAME]] = {}
        self._connections: dict[int, BrokerConnection] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen, and register all."""
        loop = asyncio.get_running_loop()
        for broker_id in self.ids:
            server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", 0)
            self._ports[broker_id] = server.sockets[0].getsockname()[1]
        for broker_id in self.ids:
            await self.register(broker_id)

    async def register(self, broker_id: int) -> None:
        """Create the broker's registration."""
        endpoint = Endpoint("PLAINTEXT", "127.0.0.1", self._ports[broker_id], "PLAINTEXT")
        znode = BrokerIdZnode(broker_id, (endpoint,), timestamp=int(time.time() * 1000))
        _, stat = await asyncio.to_thread(
            self._zookeeper.create,
            znode.path(broker_id),
            znode.encode(),
            ephemeral=True,
            include_data=True,
        )
        self.epochs[broker_id] = stat.czxid

    async def unregister(self, broker_id: int) -> None:
        """Remove the registration: the broker has died or stopped."""
        del self.epochs[broker_id]
        await asyncio.to_thread(self._zookeeper.delete, BrokerIdZnode.path(broker_id))

    async def shut_down(self, broker_id: int) -> None:
        """Controlled shutdown: the controller moves the leaders away."""
        request = ControlledShutdownRequest(
            broker_id=broker_id, broker_epoch=self.epochs[broker_id]
        )
        await self._send(broker_id, request)

    async def until_quiet(self, seconds: float) -> float:
        """Wait until nothing was received for a while; returns when the last request came."""
        while True:
            await asyncio.sleep(0.05)
            if time.monotonic() - self.counts.last_s >= seconds and not any(self._joining.values()):
                break
        return self.counts.last_s

    def num_led_by(self, broker_id: int) -> int:
        """Partitions whose leader is this broker, or none."""
        return sum(state.leader in (broker_id, -1) for state in self.states.values())

    def are_in_sync(self) -> bool:
        """Whether every partition has all its replicas in the ISR."""
        return all(len(state.isr) == len(state.replicas) for state in self.states.values())

    # --- requests of the controller --------------------------------------------------------------

    def answer(self, frame: memoryview) -> bytes:
        """The response to one request, with its size."""
        api_key, version, correlation_id, _, position = read_request_header(frame)
        if api_key != ApiKey.API_VERSIONS:
            self.counts.requests += 1
            self.counts.received_bytes += len(frame)
            self.counts.last_s = time.monotonic()
        response: Response
        match api_key:
            case ApiKey.LEADER_AND_ISR:
                self._decided(decode(LeaderAndIsrRequest, frame[position:], version))
                response = LeaderAndIsrResponse()
            case ApiKey.UPDATE_METADATA:
                response = UpdateMetadataResponse()
            case ApiKey.STOP_REPLICA:
                response = StopReplicaResponse()
            case _:
                served = [
                    ApiVersion(api_key=key, min_version=low, max_version=high)
                    for key, (low, high) in _SERVED.items()
                ]
                response = ApiVersionsResponse(api_keys=served)
        out = start_response(api_key, version, correlation_id) + encode(response, version)
        _SIZE.pack_into(out, 0, len(out) - 4)
        return bytes(out)

    def _decided(self, request: LeaderAndIsrRequest) -> None:
        for topic in request.topic_states:
            for given in topic.partition_states:
                name = (topic.topic_id, given.partition_index)
                self.counts.decided_partitions += 1
                known = self.states.get(name)
                if known is None or given.partition_epoch >= known.partition_epoch:
                    state = State(
                        given.leader,
                        given.leader_epoch,
                        given.partition_epoch,
                        given.isr,
                        given.replicas,
                    )
                    self.states[name] = state
                    self._maybe_propose(name, state)

    # --- requests to the controller --------------------------------------------------------------

    def _maybe_propose(self, name: NAME, state: State) -> None:
        alive = [broker for broker in state.replicas if broker in self.epochs]
        if state.leader not in self.epochs or set(alive) <= set(state.isr):
            return
        joining = self._joining.setdefault(state.leader, set())
        if not joining:
            task = asyncio.get_running_loop().create_task(self._propose(state.leader))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        joining.add(name)

    async def _propose(self, leader: int) -> None:
        """Send what a leader has collected, until nothing is left."""
        joining = self._joining[leader]
        while joining:
            await asyncio.sleep(_BATCH_S)
            names, proposals = list(joining), dict[Uuid, list[RequestPartitionData]]()
            for name in names:
                state = self.states[name]
                alive = [broker for broker in state.replicas if broker in self.epochs]
                if state.leader != leader or set(alive) <= set(state.isr):
                    joining.discard(name)
                    continue
                proposals.setdefault(name[0], []).append(_proposal(name[1], state, self.epochs))
            if not proposals or leader not in self.epochs:
                joining.clear()
                return
            request = AlterPartitionRequest(
                broker_id=leader,
                broker_epoch=self.epochs[leader],
                topics=[
                    RequestTopicData(topic_id=topic, partitions=partitions)
                    for topic, partitions in proposals.items()
                ],
            )
            response = await self._send(leader, request)
            self.counts.last_s = time.monotonic()
            for topic in response.topics:
                for answer in topic.partitions:
                    if not answer.error_code:
                        state = self.states[topic.topic_id, answer.partition_index]
                        state.isr = answer.isr
                        state.partition_epoch = answer.partition_epoch
                        self.counts.altered_partitions += 1

    async def _send(self, broker_id: int, request: Request[Any]) -> Any:
        """Send to the controller, again after every error."""
        while True:
            try:
                async with asyncio.timeout(_TIMEOUT_S):
                    response = await (await self._controller(broker_id)).send(request)
                if not response.error_code:
                    return response
            except (OSError, ApiError):
                pass
            if (connection := self._connections.pop(broker_id, None)) is not None:
                connection.close()
            await asyncio.sleep(0.1)

    async def _controller(self, broker_id: int) -> BrokerConnection:
        connection = self._connections.get(broker_id)
        if connection is None or not connection.is_open:
            address = await asyncio.to_thread(controller_address, self._zookeeper)
            connection = await open_connection(address, f"simulated-{broker_id}", 30)
            self._connections[broker_id] = connection
        return connection


def _proposal(index: int, state: State, epochs: dict[int, int]) -> RequestPartitionData:
    isr = [broker for broker in state.replicas if broker in epochs]
    return RequestPartitionData(
        partition_index=index,
        leader_epoch=state.leader_epoch,
        new_isr_with_epochs=[BrokerState(broker_id=b, broker_epoch=epochs[b]) for b in isr],
        partition_epoch=state.partition_epoch,
    )


def controller_address(zookeeper: KazooClient) -> Node:
    """Where the present controller listens; ConnectionError without a controller."""
    try:
        broker_id = json.loads(zookeeper.get("/controller")[0])["brokerid"]
        data = zookeeper.get(BrokerIdZnode.path(broker_id))[0]
    except NoNodeError as error:
        raise ConnectionError("there is no controller") from error
    (endpoint, *_) = BrokerIdZnode.decode(broker_id, data).endpoints
    return Node(broker_id, endpoint.host, endpoint.port)


class _Connection(asyncio.Protocol):
    """The connection of a controller to one broker."""

    def __init__(self, brokers: SimulatedBrokers) -> None:
        self._brokers = brokers
        self._buffer = bytearray()
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        buffer = self._buffer
        buffer += data
        while len(buffer) >= _SIZE.size:
            end = _SIZE.size + _SIZE.unpack_from(buffer)[0]
            if len(buffer) < end:
                break
            frame = bytes(buffer[_SIZE.size : end])
            del buffer[:end]
            self._transport.write(self._brokers.answer(memoryview(frame)))
