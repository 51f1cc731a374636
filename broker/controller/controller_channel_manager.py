"""Kafka's ControllerChannelManager: sends the controller's requests to the brokers.

Each broker has a queue of its own and one request in flight, so that it processes requests in the
order in which the controller decided. A request to another broker is repeated until it is answered,
over a new connection if the old one broke; this ends only when the broker is no longer registered.
Requests carry the broker epoch, so that a repeated one cannot reach the broker's next incarnation.
The controller's own broker is called directly with the same request objects, without a socket.
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
    """The controller's own broker; it is sent the same requests as every other one."""

    async def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Become leader or follower of partitions."""
        ...

    async def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """Update the metadata cache."""
        ...

    async def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Stop replicas, and delete those that are marked so."""
        ...


class BrokerChannel(Protocol):
    """A channel to one broker."""

    async def send(self, request: ControlRequest) -> Response:
        """Send until there is a response; raises only errors that no retry can resolve."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class LocalChannel:
    """The channel to the controller's own broker."""

    def __init__(self, broker: LocalBroker) -> None:
        self._broker = broker

    async def send(self, request: ControlRequest) -> Response:
        """See BrokerChannel."""
        match request:
            case LeaderAndIsrRequest():
                return await self._broker.leader_and_isr(request)
            case StopReplicaRequest():
                return await self._broker.stop_replica(request)
            case UpdateMetadataRequest():
                return await self._broker.update_metadata(request)

    def close(self) -> None:
        """See BrokerChannel."""


class RemoteChannel:
    """The channel to another broker."""

    def __init__(self, node: Node | None, connect: Connect, timeout_s: float) -> None:
        self._node = node
        self._connect = connect
        self._timeout_s = timeout_s
        self._connection: BrokerConnection | None = None

    async def send(self, request: ControlRequest) -> Response:
        """See BrokerChannel."""
        is_logged = False
        while True:
            try:
                connection = await self._open()
                async with asyncio.timeout(self._timeout_s):
                    return await _send(connection, request)
            except (ConnectionFailed, TimeoutError) as error:
                level = logging.DEBUG if is_logged else logging.WARNING  # not for every retry
                logger.log(level, "Retrying to send %s: %s", type(request).__name__, error)
                is_logged = True
                self.close()
            await asyncio.sleep(_RETRY_PAUSE_S)

    async def _open(self) -> BrokerConnection:
        if self._node is None:
            raise ConnectionFailed("it has no listener for brokers of this cluster")
        if self._connection is None or not self._connection.is_open:
            self._connection = await self._connect(self._node)
            logger.info("Controller connected to broker=%s for sending state changes", self._node)
        return self._connection

    def close(self) -> None:
        """See BrokerChannel."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


async def _send(connection: BrokerConnection, request: Request[Any]) -> Response:
    response: Response = await connection.send(request)
    return response


class _Item(NamedTuple):
    """A queued request. Without one it is a marker, reached when all before it are answered."""

    request: ControlRequest | None
    on_response: OnResponse


class RequestSendQueue:
    """The requests to one broker: in order, each sent when the previous one was answered."""

    def __init__(self, broker_id: int, channel: BrokerChannel) -> None:
        self._broker_id = broker_id
        self._channel = channel
        self._items: asyncio.Queue[_Item] = asyncio.Queue()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def put(self, request: ControlRequest | None, on_response: OnResponse) -> None:
        """Queue a request, or a marker."""
        self._items.put_nowait(_Item(request, on_response))

    def close(self) -> None:
        """Send nothing more. Callbacks of requests are not called, those of markers are."""
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
        except (ApiError, EncodeError) as error:  # no common version: a retry would not help
            logger.error(
                "Failed to send %s to broker=%s: %s",
                type(request).__name__,
                self._broker_id,
                error,
            )
        except Exception:  # a bug in our own broker must not stop all further requests to it
            logger.exception("Error in %s of broker=%s", type(request).__name__, self._broker_id)
        return None


class ControllerChannelManager:
    """The channels to all live brokers."""

    def __init__(self, open_channel: Callable[[int, Node | None], BrokerChannel]) -> None:
        self._open_channel = open_channel
        self._queues: dict[int, RequestSendQueue] = {}

    def add(self, broker_id: int, node: Node | None) -> None:
        """Open a channel to a broker, unless there is one.

        `node` is its address on the inter-broker listener; None if it does not have that listener.
        """
        if broker_id not in self._queues:
            self._queues[broker_id] = RequestSendQueue(
                broker_id, self._open_channel(broker_id, node)
            )

    def remove(self, broker_id: int) -> None:
        """Close the channel to a broker; unanswered requests are dropped."""
        queue = self._queues.pop(broker_id, None)
        if queue is not None:
            queue.close()

    def send(self, broker_id: int, request: ControlRequest, on_response: OnResponse) -> None:
        """Queue a request; dropped if the broker has no channel."""
        queue = self._queues.get(broker_id)
        if queue is not None:
            queue.put(request, on_response)

    async def flush(self, broker_id: int) -> None:
        """Wait until the broker has answered all requests sent so far, or is gone."""
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def mark_reached() -> None:
            if not answered.done():  # the waiting task may have been cancelled
                answered.set_result(None)

        self.on_flushed(broker_id, mark_reached)
        await answered

    def on_flushed(self, broker_id: int, callback: Callable[[], None]) -> None:
        """Call back once the broker has answered all requests sent so far, or is gone."""
        queue = self._queues.get(broker_id)
        if queue is None:
            callback()
        else:
            queue.put(None, lambda _: callback())

    def close(self) -> None:
        """Close all channels."""
        for broker_id in list(self._queues):
            self.remove(broker_id)
