"""How the controller's requests reach the brokers: one ordered queue each, one request at a time.

A request to another broker is sent until it is answered, over a connection that is made anew when
it breaks; only the broker's going away ends that. The controller's own broker gets the very same
request as an object, without a socket.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol

from broker.errors import ApiError
from broker.net.broker_connection import BrokerConnection, Node
from broker.net.failures import ConnectionFailed
from broker.protocol.errors import EncodeError
from broker.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from broker.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from broker.protocol.messages.update_metadata import (
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from broker.protocol.schema import Request, Response

logger = logging.getLogger(__name__)

ControlRequest = LeaderAndIsrRequest | StopReplicaRequest | UpdateMetadataRequest
OnResponse = Callable[[Any], None]
Connect = Callable[[Node], Awaitable[BrokerConnection]]
"""Opens a connection as brokers do among themselves; ConnectionFailed."""

_RETRY_PAUSE_S = 0.1


class LocalBroker(Protocol):
    """The controller's own broker, told what to do as every other one is."""

    async def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Lead or follow partitions."""
        ...

    async def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """Take note of brokers and partitions."""
        ...

    async def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Stop replicas, and delete them where that is wanted."""
        ...


class Channel(Protocol):
    """The way to one broker."""

    async def send(self, request: ControlRequest) -> Response:
        """Send until answered; raises only what no further try can mend."""
        ...

    def close(self) -> None:
        """Give up the connection."""
        ...


class LocalChannel:
    """To the controller's own broker."""

    def __init__(self, broker: LocalBroker) -> None:
        self._broker = broker

    async def send(self, request: ControlRequest) -> Response:
        """See Channel."""
        match request:
            case LeaderAndIsrRequest():
                return await self._broker.leader_and_isr(request)
            case StopReplicaRequest():
                return await self._broker.stop_replica(request)
            case UpdateMetadataRequest():
                return await self._broker.update_metadata(request)

    def close(self) -> None:
        """See Channel."""


class RemoteChannel:
    """To another broker."""

    def __init__(self, node: Node | None, connect: Connect, timeout_s: float) -> None:
        self._node = node
        self._connect = connect
        self._timeout_s = timeout_s
        self._connection: BrokerConnection | None = None

    async def send(self, request: ControlRequest) -> Response:
        """See Channel."""
        is_told = False
        while True:
            try:
                connection = await self._open()
                async with asyncio.timeout(self._timeout_s):
                    return await _send(connection, request)
            except (ConnectionFailed, TimeoutError) as error:
                level = logging.DEBUG if is_told else logging.WARNING  # once says it all
                logger.log(level, "%s not sent yet: %s", type(request).__name__, error)
                is_told = True
                self.close()
            await asyncio.sleep(_RETRY_PAUSE_S)

    async def _open(self) -> BrokerConnection:
        if self._node is None:
            raise ConnectionFailed("it has no listener for brokers of this cluster")
        if self._connection is None or not self._connection.is_open:
            self._connection = await self._connect(self._node)
            logger.info("connected to send state changes broker=%s", self._node)
        return self._connection

    def close(self) -> None:
        """See Channel."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


async def _send(connection: BrokerConnection, request: Request[Any]) -> Response:
    response: Response = await connection.send(request)
    return response


class _Item(NamedTuple):
    """Something to send; without a request, a mark that tells when all before it was answered."""

    request: ControlRequest | None
    on_response: OnResponse


class BrokerQueue:
    """The requests of one broker, in order, the next when the one before has been answered."""

    def __init__(self, broker_id: int, channel: Channel) -> None:
        self._broker_id = broker_id
        self._channel = channel
        self._items: asyncio.Queue[_Item] = asyncio.Queue()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def put(self, request: ControlRequest | None, on_response: OnResponse) -> None:
        """Send when its turn comes."""
        self._items.put_nowait(_Item(request, on_response))

    def close(self) -> None:
        """Send nothing more; what waits for an answer gets none, marks are told."""
        self._task.cancel()
        self._channel.close()
        while not self._items.empty():
            item = self._items.get_nowait()
            if item.request is None:
                item.on_response(None)

    async def _run(self) -> None:
        while True:
            request, on_response = await self._items.get()
            response = None if request is None else await self._send(request)
            if request is None or response is not None:
                on_response(response)

    async def _send(self, request: ControlRequest) -> Response | None:
        try:
            return await self._channel.send(request)
        except (ApiError, EncodeError) as error:  # no version in common: no try can mend that
            logger.error(
                "%s cannot be sent broker=%s: %s",
                type(request).__name__,
                self._broker_id,
                error,
            )
        except Exception:  # our own broker failed at it, and will be asked for other things
            logger.exception("%s failed broker=%s", type(request).__name__, self._broker_id)
        return None


class ChannelManager:
    """The queues of all live brokers."""

    def __init__(self, open_channel: Callable[[int, Node | None], Channel]) -> None:
        self._open_channel = open_channel
        self._queues: dict[int, BrokerQueue] = {}

    def add(self, broker_id: int, node: Node | None) -> None:
        """Begin to talk to a broker; nothing if that is so already.

        Field `node`: its address on the listener for brokers; None if it has no such listener.
        """
        if broker_id not in self._queues:
            self._queues[broker_id] = BrokerQueue(broker_id, self._open_channel(broker_id, node))

    def remove(self, broker_id: int) -> None:
        """End it; what was not answered will not be."""
        queue = self._queues.pop(broker_id, None)
        if queue is not None:
            queue.close()

    def send(self, broker_id: int, request: ControlRequest, on_response: OnResponse) -> None:
        """Queue a request; none to a broker that is gone."""
        queue = self._queues.get(broker_id)
        if queue is not None:
            queue.put(request, on_response)

    async def flush(self, broker_id: int) -> None:
        """Wait until the broker has answered all that was sent so far, or is gone."""
        queue = self._queues.get(broker_id)
        if queue is None:
            return
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def mark_reached(_: object) -> None:
            if not answered.done():  # who waits may have given up
                answered.set_result(None)

        queue.put(None, mark_reached)
        await answered

    def close(self) -> None:
        """End all."""
        for broker_id in list(self._queues):
            self.remove(broker_id)
