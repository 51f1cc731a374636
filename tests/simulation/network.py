"""The network between simulated processes: connections with delays, cuts and lost packets.

A connection delivers bytes in order or breaks, as TCP does. A lost packet therefore shows as delay.
While a direction is cut, what was sent in it waits and arrives after the cut is healed, as TCP
retransmits; a new connection is not established while either direction is cut.
"""

import asyncio
import contextvars
import random
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from broker.config import Listener as ListenerAddress
from broker.net.connection import CloseConnection, Peer, RequestHandler, ResponseParts
from broker.net.connection_quotas import ConnectionQuotas
from broker.net.listener_security import ListenerSecurity
from broker.protocol.errors import DecodeError
from broker.protocol.framing import FrameBuffer, join
from tests.simulation.loop import Process, current_process

MIN_DELAY_S = 0.0002
MAX_DELAY_S = 0.003
RETRANSMIT_S = 0.2

_NO_PROCESS = contextvars.Context()
"""Where the network itself runs: no crash or pause stops it."""


@dataclass
class Network:
    """All links. Names of processes are the hosts: a restarted broker keeps its links."""

    rng: random.Random
    listeners: dict[tuple[str, int], "SimulatedListener"] = field(default_factory=dict)
    cuts: set[tuple[str, str]] = field(default_factory=set)
    """Directions (from, to) in which nothing arrives."""
    loss: float = 0.0
    """Probability that a message is retransmitted once or more."""
    slow: dict[str, float] = field(default_factory=dict)
    """Extra seconds of delay for everything to or from a host."""
    waiting: list["Pipe"] = field(default_factory=list)
    """Pipes that have messages to deliver once a cut is healed."""

    def cut(self, source: str, target: str) -> None:
        """Cut one direction."""
        self.cuts.add((source, target))

    def cut_pair(self, one: str, other: str) -> None:
        """Cut both directions."""
        self.cuts |= {(one, other), (other, one)}

    def join_pair(self, one: str, other: str) -> None:
        """Undo `cut_pair`; other cuts remain."""
        self.cuts -= {(one, other), (other, one)}
        self._deliver_waiting()

    def heal(self) -> None:
        """Undo every fault of the network."""
        self.cuts.clear()
        self.slow.clear()
        self.loss = 0.0
        self._deliver_waiting()

    def _deliver_waiting(self) -> None:
        waiting, self.waiting = self.waiting, []
        for pipe in waiting:
            pipe.schedule()

    def _is_cut_off(self, one: str, other: str) -> bool:
        return (one, other) in self.cuts or (other, one) in self.cuts

    def delay_s(self, source: str, target: str) -> float:
        """How long the next message in this direction takes."""
        delay = self.rng.uniform(MIN_DELAY_S, MAX_DELAY_S)
        delay += self.slow.get(source, 0.0) + self.slow.get(target, 0.0)
        while self.loss and self.rng.random() < self.loss:
            delay += RETRANSMIT_S
        return delay

    async def connect(
        self, factory: Callable[[], Any], host: str, port: int, **_: object
    ) -> tuple[Any, Any]:
        """`loop.create_connection`: connect the running process to a listener."""
        process = current_process()
        assert process is not None, "only processes connect"
        while self._is_cut_off(process.name, host):  # noqa: ASYNC110  # until the caller gives up
            await asyncio.sleep(RETRANSMIT_S)
        await asyncio.sleep(2 * self.delay_s(process.name, host))
        listener = self.listeners.get((host, port))
        if listener is None or not listener.process.is_alive:
            raise ConnectionRefusedError(111, "Connection refused")
        ours, theirs = Endpoint(process), Endpoint(listener.process)
        Endpoint.connect(self, ours, theirs)
        protocol = factory()
        ours.protocol = protocol
        listener.accept(theirs, process)
        protocol.connection_made(ours)
        return ours, protocol

    def listen(
        self,
        address: ListenerAddress,
        _quotas: ConnectionQuotas,
        handle_request: RequestHandler,
        _security: ListenerSecurity,
    ) -> "SimulatedListener":
        """`Platform.listen` of the running process."""
        process = current_process()
        assert process is not None
        return SimulatedListener(self, process, address, handle_request)


class Pipe:
    """One direction between two processes: messages arrive in order, late, or after a cut."""

    def __init__(
        self, network: "Network", source: Process, target: Process, receive: Callable[[Any], None]
    ) -> None:
        self._network = network
        self._target = target
        self._direction = (source.name, target.name)
        self._receive = receive
        """Takes a message; runs in the target process."""
        self._under_way: deque[tuple[float, Any]] = deque()
        """Messages with their earliest time of arrival. Invariant: times do not decrease."""
        self._is_scheduled = False

    def send(self, message: Any) -> None:
        """Send a message; it arrives unless the target dies before."""
        loop = asyncio.get_running_loop()
        arrival_s = loop.time() + self._network.delay_s(*self._direction)
        if self._under_way:
            arrival_s = max(arrival_s, self._under_way[-1][0])
        self._under_way.append((arrival_s, message))
        self.schedule()

    def schedule(self) -> None:
        """Deliver the first message when it is due."""
        if self._under_way and not self._is_scheduled:
            self._is_scheduled = True
            loop = asyncio.get_running_loop()
            loop.call_at(self._under_way[0][0], self._deliver, context=_NO_PROCESS)

    def _deliver(self) -> None:
        self._is_scheduled = False
        if self._direction in self._network.cuts:
            self._network.waiting.append(self)
            return
        loop = asyncio.get_running_loop()
        while self._under_way and self._under_way[0][0] <= loop.time():
            _, message = self._under_way.popleft()
            loop.call_soon(self._receive, message, context=self._target.context)
        self.schedule()


class Endpoint(asyncio.Transport):
    """One end of a connection: an asyncio transport whose writes arrive at the other end."""

    def __init__(self, process: Process) -> None:
        super().__init__()
        self.process = process
        self.protocol: Any = None
        self._pipe: Pipe
        self._is_open = True
        process.on_death.append(self._on_death)

    @staticmethod
    def connect(network: "Network", one: "Endpoint", other: "Endpoint") -> None:
        """Make both ends of a connection of them."""
        one._pipe = Pipe(network, one.process, other.process, other._receive)
        other._pipe = Pipe(network, other.process, one.process, one._receive)

    # --- asyncio's side --------------------------------------------------------------------------

    def write(self, data: Any) -> None:
        """Send bytes to the other end."""
        if self._is_open:
            self._pipe.send(bytes(data))

    def is_closing(self) -> bool:
        """Part of asyncio's transport."""
        return not self._is_open

    def close(self) -> None:
        """Close; what was written still arrives."""
        self.abort()

    def abort(self) -> None:
        """Close this end; the other end notices a little later."""
        if self._is_open:
            self._is_open = False
            self._pipe.send(None)
            loop = asyncio.get_running_loop()
            loop.call_soon(self.protocol.connection_lost, None, context=self.process.context)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Part of asyncio's transport: there is nothing to know."""
        return default

    # --- delivery --------------------------------------------------------------------------------

    def _on_death(self) -> None:
        """The kernel closes the sockets of a dead process."""
        if self._is_open:
            self._is_open = False
            self._pipe.send(None)

    def _receive(self, data: bytes | None) -> None:
        """Take what the other end sent; None when it was closed."""
        if not self._is_open:
            return
        if data is None:
            self._is_open = False
            self.protocol.connection_lost(ConnectionResetError(104, "Connection reset by peer"))
        elif isinstance(self.protocol, asyncio.BufferedProtocol):
            while data:
                window = memoryview(self.protocol.get_buffer(-1))
                count = min(len(window), len(data))
                window[:count] = data[:count]
                self.protocol.buffer_updated(count)
                data = data[count:]
        else:
            self.protocol.data_received(data)


class SimulatedListener:
    """Accepts connections of the simulated network; answers requests in order, one at a time.

    Takes the place of broker.net.listener and broker.net.connection.
    """

    def __init__(
        self,
        network: Network,
        process: Process,
        address: ListenerAddress,
        handle_request: RequestHandler,
    ) -> None:
        self._network = network
        self.process = process
        self.address = address
        self._handle_request = handle_request
        self._connections: list[ServerConnection] = []

    def bind(self) -> None:
        """Reserve the address; connections are accepted from `start` on."""

    async def start(self) -> None:
        """Accept connections."""
        self._network.listeners[self.address.host, self.address.port] = self

    async def stop(self) -> None:
        """Close every connection."""
        self._network.listeners.pop((self.address.host, self.address.port), None)
        for connection in self._connections:
            connection.close()

    def accept(self, endpoint: Endpoint, client: Process) -> None:
        """Serve a new connection; called by the network."""
        peer = Peer(client.name, 0, self.address.name)
        endpoint.protocol = connection = ServerConnection(endpoint, peer, self._handle_request)
        self._connections.append(connection)


class ServerConnection(asyncio.Protocol):
    """The broker's end of a connection."""

    def __init__(self, endpoint: Endpoint, peer: Peer, handle_request: RequestHandler) -> None:
        self._endpoint = endpoint
        self._peer = peer
        self._handle_request = handle_request
        self._frames = FrameBuffer(2**31 - 1)
        self._serving: asyncio.Task[None] | None = None

    def close(self) -> None:
        """Close the connection."""
        self._endpoint.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the request being handled, as broker.net does when the client is gone."""
        if self._serving is not None:
            self._serving.cancel()

    def data_received(self, data: bytes) -> None:
        """Take bytes and answer the requests that are complete."""
        while data:
            window = self._frames.writable()
            count = min(len(window), len(data))
            window[:count] = data[:count]
            self._frames.wrote(count)
            data = data[count:]
            self._serve()

    def _serve(self) -> None:
        if self._serving is None:
            self._serving = asyncio.get_running_loop().create_task(self._serve_all())
            self._serving.add_done_callback(self._served)

    def _served(self, _: "asyncio.Task[None]") -> None:
        self._serving = None

    async def _serve_all(self) -> None:
        try:
            while (frame := self._frames.next_frame()) is not None:
                answer = self._handle_request(memoryview(bytes(frame)), self._peer)
                if isinstance(answer, Awaitable):
                    answer = await answer
                self._send(answer)
        except (DecodeError, CloseConnection):
            self.close()

    def _send(self, answer: ResponseParts) -> None:
        if answer is not None:
            self._endpoint.write(join(answer))
