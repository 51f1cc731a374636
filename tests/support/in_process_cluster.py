"""Brokers in one event loop: real logs, fetchers and handlers, no sockets and no processes.

The test is the controller: it sends decisions to the brokers, and responds to AlterPartition.
"""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from broker.api.context import RequestContext
from broker.api.fetch_session import FetchSessionCache
from broker.api.handlers import fetch, list_offsets
from broker.clock import Clock, SystemClock
from broker.config import BrokerConfig
from broker.config.dynamic import DynamicConfig, EntityType
from broker.errors import ErrorCode
from broker.log.config import LogConfig
from broker.log.manager import LogManager
from broker.log.offsets import FetchIsolation
from broker.metadata_cache import MetadataCache
from broker.model import BrokerEpoch, TopicPartition, Uuid
from broker.net.broker_connection import BrokerConnection, Node
from broker.net.connection import Peer
from broker.net.failures import ConnectionFailed
from broker.protocol.codec import decode, encode
from broker.protocol.messages import response_class
from broker.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)
from broker.protocol.messages.fetch import FetchRequest
from broker.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)
from broker.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from broker.protocol.schema import Request
from broker.replica.controller_requests import ControllerRequests
from broker.replica.manager import ReplicaCluster, ReplicaManager
from broker.replica.partition import Partition
from tests.log.support import batch

TOPIC_ID = Uuid(b"the topic's id..")
NAME = TopicPartition("orders", 0)
LISTENER = "PLAINTEXT"
QUICK = {
    "replica.fetch.wait.max.ms": "50",
    "replica.fetch.backoff.ms": "20",
    "replica.lag.time.max.ms": "400",
}
_HANDLERS: Mapping[int, Any] = {1: fetch, 2: list_offsets}


class InProcessConnection:
    """A connection within the process; messages are encoded and decoded as on a socket."""

    def __init__(
        self, client_id: int, server: "InProcessBroker", cluster: "InProcessCluster"
    ) -> None:
        self._client_id = client_id
        self._server = server
        self._cluster = cluster
        self._is_closed = False

    @property
    def is_open(self) -> bool:
        """Whether the other broker is there."""
        return not self._is_closed and self._server.broker_id in self._cluster.reachable

    def version_for(self, request: Request[Any], at_most: int | None = None) -> int:
        """The highest version."""
        return request.versions[1]

    async def send(self, request: Request[Any], version: int | None = None) -> Any:
        """Send a request to the other broker's handler and return its response."""
        gate = self._cluster.gates.get(self._client_id)
        if gate is not None and request.api_key == FetchRequest.api_key:
            await gate.enter()
        await self._cluster.resumed(self._client_id)
        number = request.versions[1] if version is None else version
        sent = decode(type(request), encode(request, number), number)
        handler = _HANDLERS[request.api_key]
        answer = handler.handle(sent, self._server.context(number))
        if not isinstance(answer, response_class(request.api_key)):
            answer = await answer
        else:
            await asyncio.sleep(0)
        await self._cluster.resumed(self._client_id)
        if not self.is_open:
            raise ConnectionFailed("the broker is gone")
        return decode(response_class(request.api_key), encode(answer, number), number)

    def close(self) -> None:
        """Close the connection."""
        self._is_closed = True


class Gate:
    """Holds a fetcher before each of its fetch requests, until the test lets one pass."""

    def __init__(self) -> None:
        self._has_arrived = asyncio.Event()
        self._passes = asyncio.Semaphore(0)

    async def enter(self) -> None:
        """Wait for the test."""
        self._has_arrived.set()
        await self._passes.acquire()

    async def step(self, timeout_s: float = 0.5) -> bool:
        """Let one request pass, until its response is processed; False if none is sent."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._has_arrived.wait()
        except TimeoutError:
            return False
        self._has_arrived.clear()
        self._passes.release()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._has_arrived.wait()
        return True


@dataclass
class InProcessBroker:
    """One broker: its replicas, and its handlers of requests."""

    broker_id: int
    replicas: ReplicaManager
    requests: ControllerRequests
    services: SimpleNamespace

    def context(self, version: int) -> RequestContext:
        """The context of a request, as if it came through a socket."""
        return RequestContext(
            version, 0, "test", Peer("127.0.0.1", 1, LISTENER), cast(Any, self.services), 0
        )

    @property
    def partition(self) -> Partition:
        """Its replica of the partition that most tests are about."""
        return self.replicas.partitions[NAME]

    def append(self, *values: str, acks: int = 1) -> int:
        """Append one batch as a producer does; the offset after it."""
        return self.partition.append_as_leader(batch(*values), acks).last_offset + 1

    def bytes(self) -> bytes:
        """Everything in its log."""
        log = self.partition.log
        found = log.read(log.log_start_offset, 1 << 30, FetchIsolation.LOG_END)
        return b"" if found.records is None else found.records.read()


@dataclass
class InProcessCluster:
    """Brokers by id, and the test as their controller."""

    brokers: dict[int, InProcessBroker] = field(default_factory=dict)
    reachable: set[int] = field(default_factory=set)
    isr_asked: list[tuple[int, ...]] = field(default_factory=list)
    """Every ISR that a leader has requested."""
    isr_answer: ErrorCode = ErrorCode.NONE
    """The controller's response to such requests."""
    isr_requested: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when an AlterPartition request has arrived at the controller."""
    isr_changed: asyncio.Event = field(default_factory=asyncio.Event)
    clock: Clock = field(default_factory=SystemClock)
    gates: dict[int, "Gate"] = field(default_factory=dict)
    """Brokers whose fetch requests are sent one by one, by the test."""
    paused: dict[int, asyncio.Event] = field(default_factory=dict)
    """Brokers whose requests and responses are held back, as if stopped by SIGSTOP."""
    controller_resumed: asyncio.Event = field(default_factory=asyncio.Event)
    """While cleared, the controller does not respond to AlterPartition."""

    def __post_init__(self) -> None:
        self.controller_resumed.set()

    partition_epoch: int = 0
    leader_epoch: int = -1

    def __getitem__(self, broker_id: int) -> InProcessBroker:
        return self.brokers[broker_id]

    def add(self, broker_id: int, directory: Path, settings: Mapping[str, str]) -> None:
        """Start a broker."""
        texts = {"broker.id": str(broker_id), "log.dirs": str(directory)} | QUICK | dict(settings)
        config = BrokerConfig.parse(texts)
        dynamic = DynamicConfig(config, broker_id)
        logs = LogManager(config.log_directories, lambda topic: LogConfig.of(dynamic.topic(topic)))
        logs.startup()
        metadata = MetadataCache("cluster")
        around = ReplicaCluster(
            metadata,
            BrokerEpoch(7),
            self,
            functools.partial(self._connect, broker_id),
            lambda other: Node(other, "x", other) if metadata.is_alive(other) else None,
            self.clock,
        )
        replicas = ReplicaManager(broker_id, logs, dynamic, around)
        replicas.load_high_watermarks()
        services = SimpleNamespace(
            authorizer=None,
            replicas=replicas,
            metadata=metadata,
            config=config,
            dynamic=dynamic,
            clock=self.clock,
            purgatory=replicas.purgatory,
            fetch_sessions=FetchSessionCache(10, 1000, replicas.purgatory),
        )
        self.brokers[broker_id] = InProcessBroker(
            broker_id, replicas, ControllerRequests(replicas), services
        )
        self.reachable.add(broker_id)

    async def _connect(self, client_id: int, node: Node) -> BrokerConnection:
        if node.node_id not in self.reachable:
            raise ConnectionFailed(f"{node} is gone")
        return cast(
            BrokerConnection, InProcessConnection(client_id, self.brokers[node.node_id], self)
        )

    def pause(self, broker_id: int) -> None:
        """Hold back the broker's requests to others, and the responses to them."""
        self.paused[broker_id] = asyncio.Event()

    def resume(self, broker_id: int) -> None:
        """Deliver what was held back."""
        self.paused.pop(broker_id).set()

    async def resumed(self, broker_id: int) -> None:
        """Wait until the broker is not paused."""
        while broker_id in self.paused:
            await self.paused[broker_id].wait()

    # the test as controller

    async def lead(
        self, leader: int, isr: Iterable[int] | None = None, replicas: Iterable[int] | None = None
    ) -> dict[int, LeaderAndIsrResponse]:
        """Start a new leader epoch: notify every reachable broker."""
        self.leader_epoch += 1
        self.partition_epoch += 1
        every = tuple(self.brokers if replicas is None else replicas)
        members = tuple(every if isr is None else isr)
        for broker_id in sorted(self.reachable):
            await self.tell_metadata(broker_id, leader, members, every)
        return {
            broker_id: await self.brokers[broker_id].requests.leader_and_isr(
                self.decision(leader, members, every)
            )
            for broker_id in sorted(self.reachable.intersection(every))
        }

    def decision(
        self, leader: int, isr: Iterable[int], replicas: Iterable[int], **others: Any
    ) -> LeaderAndIsrRequest:
        """The controller's LeaderAndIsr request in the current epochs."""
        state = LeaderAndIsrPartitionState(
            partition_index=NAME.partition,
            leader=leader,
            leader_epoch=self.leader_epoch,
            isr=list(isr),
            partition_epoch=self.partition_epoch,
            replicas=list(replicas),
        )
        topic = LeaderAndIsrTopicState(
            topic_name=NAME.topic, topic_id=TOPIC_ID, partition_states=[state]
        )
        asked: dict[str, Any] = {"controller_id": 9, "controller_epoch": 1, "broker_epoch": 7}
        return LeaderAndIsrRequest(**(asked | others), topic_states=[topic])

    async def tell_metadata(
        self,
        broker_id: int,
        leader: int,
        isr: tuple[int, ...] = (),
        replicas: tuple[int, ...] = (),
    ) -> None:
        """Send UpdateMetadata to one broker: the leader, and the brokers that are reachable."""
        state = UpdateMetadataPartitionState(
            partition_index=NAME.partition,
            leader=leader,
            leader_epoch=self.leader_epoch,
            isr=list(isr),
            replicas=list(replicas),
        )
        topic = UpdateMetadataTopicState(
            topic_name=NAME.topic, topic_id=TOPIC_ID, partition_states=[state]
        )
        live = [
            UpdateMetadataBroker(
                id=live_id,
                rack=f"rack{live_id}",
                endpoints=[UpdateMetadataEndpoint(host="x", port=live_id, listener=LISTENER)],
            )
            for live_id in self.reachable
        ]
        request = UpdateMetadataRequest(
            controller_id=9,
            controller_epoch=1,
            broker_epoch=7,
            topic_states=[topic],
            live_brokers=live,
        )
        await self.brokers[broker_id].requests.update_metadata(request)

    async def send(self, request: Any) -> Any:
        """Handle a request to the controller: AlterPartition."""
        assert isinstance(request, AlterPartitionRequest)
        self.isr_requested.set()
        await asyncio.sleep(0)
        await self.controller_resumed.wait()
        topics = []
        for topic in request.topics:
            answers = []
            for asked in topic.partitions:
                isr = [member.broker_id for member in asked.new_isr_with_epochs]
                self.isr_asked.append(tuple(isr))
                if self.isr_answer == ErrorCode.NONE:
                    self.partition_epoch += 1
                answers.append(
                    ResponsePartitionData(
                        partition_index=asked.partition_index,
                        error_code=self.isr_answer,
                        leader_id=request.broker_id,
                        leader_epoch=asked.leader_epoch,
                        isr=isr,
                        partition_epoch=self.partition_epoch,
                    )
                )
            topics.append(ResponseTopicData(topic_id=topic.topic_id, partitions=answers))
        self.isr_changed.set()
        return AlterPartitionResponse(topics=topics)

    # waiting

    async def replicated(self, leader: int, offset: int) -> None:
        """Wait until the leader's high watermark has reached the offset."""
        await wait_for(self[leader].partition, lambda p: p.log.high_watermark >= offset)

    async def followed(self, follower: int, high_watermark: int) -> None:
        """Wait until a follower knows of the high watermark."""
        partition = self[follower].partition
        await wait_for(partition, lambda p: p.log.high_watermark >= high_watermark)

    def set_topic(self, **settings: str) -> None:
        """Settings of the topic, on every broker."""
        texts = {key.replace("_", "."): value for key, value in settings.items()}
        for broker in self.brokers.values():
            broker.services.dynamic.apply(EntityType.TOPIC, NAME.topic, texts)


async def wait_for(partition: Partition, condition: Any, timeout_s: float = 10) -> None:
    """Wait until `condition(partition)` holds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while not condition(partition):
        is_late = loop.time() > deadline
        assert not is_late, f"{partition.log.log_end_offset=} {partition.log.high_watermark=}"
        await asyncio.sleep(0.002)


@asynccontextmanager
async def cluster(
    directory: Path,
    brokers: int = 3,
    settings: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[InProcessCluster]:
    """Brokers 1 to `brokers`, which have not received any metadata yet."""
    made = InProcessCluster(clock=clock or SystemClock())
    for broker_id in range(1, brokers + 1):
        made.add(broker_id, directory / str(broker_id), settings or {})
    try:
        yield made
        for broker in made.brokers.values():
            broker.replicas.reevaluate_all()
            assert broker.replicas.num_missed_wakeups == 0
    finally:
        for broker in made.brokers.values():
            await broker.replicas.close()


Scenario = Callable[[InProcessCluster], Awaitable[None]]


def run_in_cluster(directory: Path, scenario: Scenario, brokers: int = 3, **settings: str) -> None:
    """Run a scenario on brokers of its own; `min_insync_replicas="2"` sets that config."""
    texts = {key.replace("_", "."): value for key, value in settings.items()}

    async def within() -> None:
        async with asyncio.timeout(20), cluster(directory, brokers, texts) as made:
            await scenario(made)

    asyncio.run(within())
