"""A real controller and store with simulated brokers, which record the requests they get.

The store is the embedded one; brokers are registered in it by hand, and answer as told. Broker 1 is
the controller's own.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from broker.clock import ManualClock
from broker.config import BrokerConfig
from broker.config.dynamic import DynamicConfig
from broker.controller.controller_channel_manager import ControlRequest
from broker.controller.kafka_controller import KafkaController
from broker.errors import ErrorCode
from broker.metadata.embedded import EmbeddedStore
from broker.metadata.recursive import ensure_path
from broker.metadata.znodes.brokers import BrokerIdZnode, Endpoint
from broker.metadata.znodes.layout import persistent_paths
from broker.metadata.znodes.topics import PartitionStateZnode, TopicZnode
from broker.model import TopicPartition
from broker.net.broker_connection import BrokerConnection, Node
from broker.net.failures import ConnectionFailed
from broker.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from broker.protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)
from broker.protocol.messages.update_metadata import (
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)

CONTROLLER = 1


class SimulatedBroker:
    """Answers the controller's requests and records them."""

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.requests: list[ControlRequest] = []
        self.states: dict[TopicPartition, Any] = {}
        """The last state of each partition in a LeaderAndIsr."""
        self.metadata: dict[TopicPartition, Any] = {}
        """The last state in an UpdateMetadata of each partition that is not being deleted."""
        self.live: set[int] = set()
        self.deleted: set[TopicPartition] = set()
        self.failed_dirs: set[TopicPartition] = set()
        """Partitions that it reports as offline, with KAFKA_STORAGE_ERROR."""
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    is_open = True

    def close(self) -> None:
        """As BrokerConnection."""

    async def send(self, request: ControlRequest) -> Any:
        """As BrokerConnection."""
        await self.may_answer.wait()
        self.requests.append(request)
        match request:
            case LeaderAndIsrRequest():
                return self._led(request)
            case StopReplicaRequest():
                return self._stopped(request)
            case UpdateMetadataRequest():
                return self._updated(request)

    leader_and_isr = update_metadata = stop_replica = send

    def _led(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        topics = []
        for topic in request.topic_states:
            errors = []
            for state in topic.partition_states:
                name = TopicPartition(topic.topic_name, state.partition_index)
                is_lost = name in self.failed_dirs
                code = ErrorCode.KAFKA_STORAGE_ERROR if is_lost else ErrorCode.NONE
                self.states[name] = state
                self.deleted.discard(name)
                errors.append(
                    LeaderAndIsrPartitionError(partition_index=name.partition, error_code=code)
                )
            topics.append(LeaderAndIsrTopicError(topic_id=topic.topic_id, partition_errors=errors))
        return LeaderAndIsrResponse(topics=topics)

    def _stopped(self, request: StopReplicaRequest) -> StopReplicaResponse:
        errors = []
        for topic in request.topic_states:
            for state in topic.partition_states:
                name = TopicPartition(topic.topic_name, state.partition_index)
                is_lost = name in self.failed_dirs
                code = ErrorCode.KAFKA_STORAGE_ERROR if is_lost else ErrorCode.NONE
                self.states.pop(name, None)
                if state.delete_partition and not is_lost:
                    self.deleted.add(name)
                errors.append(
                    StopReplicaPartitionError(
                        topic_name=name.topic, partition_index=name.partition, error_code=code
                    )
                )
        return StopReplicaResponse(partition_errors=errors)

    def _updated(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        self.live = {broker.id for broker in request.live_brokers}
        for topic in request.topic_states:
            for state in topic.partition_states:
                name = TopicPartition(topic.topic_name, state.partition_index)
                if state.leader == -2:
                    self.metadata.pop(name, None)
                else:
                    self.metadata[name] = state
        return UpdateMetadataResponse()


class Simulation:
    """The controller, its store and its brokers."""

    def __init__(self, store: EmbeddedStore, settings: dict[str, str]) -> None:
        self.store = store
        self.brokers: dict[int, SimulatedBroker] = {}
        config = BrokerConfig.parse({"log.dirs": "/nowhere", **settings})
        self.configs = DynamicConfig(config, CONTROLLER)
        self.clock = ManualClock(1_700_000_000_000)
        self.controller: KafkaController

    async def add_broker(self, broker_id: int, rack: str | None = None) -> SimulatedBroker:
        """Register a broker, as a new process without memory of a previous one."""
        broker = self.brokers[broker_id] = SimulatedBroker(broker_id)
        await self.register(broker_id, 9000 + broker_id, rack)
        return broker

    async def register(self, broker_id: int, port: int, rack: str | None = None) -> None:
        endpoint = Endpoint("PLAINTEXT", "127.0.0.1", port, "PLAINTEXT")
        node = BrokerIdZnode(broker_id, (endpoint,), rack)
        path = BrokerIdZnode.path(broker_id)
        if await self.store.exists(path):
            await self.store.set(path, node.encode())
        else:
            await self.store.create(path, node.encode())

    async def kill(self, broker_id: int) -> None:
        """Delete a broker's registration."""
        await self.store.delete(BrokerIdZnode.path(broker_id))

    async def bounce(self, broker_id: int) -> None:
        """Delete and create a broker's registration before the controller looks."""
        await asyncio.gather(self.kill(broker_id), self.add_broker(broker_id))

    def start_controller(self) -> None:
        """Create a controller; `controller.start` lets it take part in the election."""
        self.controller = KafkaController(
            self.store, self.configs, _Own(self), self._connect, self.clock
        )

    async def _connect(self, node: Node) -> BrokerConnection:
        broker = self.brokers.get(node.node_id)
        if broker is None:
            raise ConnectionFailed(f"{node} is not there")
        return broker  # type: ignore[return-value]

    # Inspection

    async def until(self, is_so: Callable[[], Any]) -> Any:
        """Run the loop until the condition is true; returns its value."""
        async with asyncio.timeout(5):
            while not (result := is_so()):  # noqa: ASYNC110 - it becomes true on this loop
                await asyncio.sleep(0)
        return result

    async def settle(self) -> None:
        """Run until all events and requests caused so far are processed."""
        for _ in range(20):
            await self.controller._events.call("settled", _nothing)
            for broker_id in self.brokers:
                if (active := self.controller._active) is not None:
                    await active.services.channels.flush(broker_id)

    async def state(self, topic: str, index: int = 0) -> PartitionStateZnode:
        """A partition's state in the store."""
        name = TopicPartition(topic, index)
        node = await self.store.get(PartitionStateZnode.path(name))
        return PartitionStateZnode.decode(name, node.data)

    async def topic(self, name: str) -> TopicZnode:
        """A topic's assignment in the store."""
        return TopicZnode.decode(name, (await self.store.get(TopicZnode.path(name))).data)

    def epoch_of(self, broker_id: int) -> int:
        """The broker epoch that the controller knows."""
        active = self.controller._active
        assert active is not None
        return active.services.context.brokers[broker_id].broker_epoch


async def _nothing() -> None:
    """An event that runs when all before it are processed."""


class _Own:
    """The controller's own broker, looked up at every request."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    async def send(self, request: ControlRequest) -> Any:
        return await self._simulation.brokers[CONTROLLER].send(request)

    leader_and_isr = update_metadata = stop_replica = send


@asynccontextmanager
async def simulation(
    directory: Path, brokers: int = 3, **settings: object
) -> AsyncIterator[Simulation]:
    """A started controller among `brokers` brokers; `num_partitions=3` sets num.partitions."""
    wanted = {key.replace("_", "."): str(value) for key, value in settings.items()}
    store = EmbeddedStore.open(directory / "metadata.db", ManualClock())
    world = Simulation(store, wanted)
    for path in persistent_paths():
        await ensure_path(store, path)
    for broker_id in range(1, brokers + 1):
        await world.add_broker(broker_id)
    world.start_controller()
    await world.controller.start()
    try:
        yield world
    finally:
        await world.controller.stop()
        await store.close()
