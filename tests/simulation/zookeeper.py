"""A simulated ZooKeeper: one tree, sessions that expire, watches; and the store that brokers use.

Requests, responses and watch events of a session travel over the simulated network in order. A
session whose server hears nothing for its timeout expires: its ephemeral nodes are deleted. The
client learns of that when it connects again, as with the real one. The promises to users are those
of broker.metadata.store; a watch may fire without a change after a reconnection, which they allow.
"""

import asyncio
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.metadata.errors import ConnectionLoss, SessionExpired, StoreError
from broker.metadata.session import Session, SessionState
from broker.metadata.store import (
    Delete,
    EventKind,
    MetadataStore,
    Operation,
    Result,
    Stat,
    Watch,
    WatchCallback,
    WatchEvent,
    Znode,
    check_path,
)
from broker.metadata.tree import ChangeStamp, Tree
from tests.simulation.loop import Process, current_process
from tests.simulation.network import Network, Pipe

RECONNECT_S = 0.1
_CONNECT, _EVENT, _CLOSED = 0, -1, -2
"""Instead of an xid: the answer to a connection request, a watch event, the end of a connection."""


@dataclass
class _ServerSession:
    """What the server knows of a session.

    Field `watches`: (path, whether of children). Invariant: lost with the connection; the client
    sets them again.
    """

    timeout_s: float
    last_heard_s: float
    pipe: Pipe
    connection_id: int
    watches: set[tuple[str, bool]] = field(default_factory=set)

    def close_connection(self) -> None:
        """Let the client know that it has to connect again."""
        self.pipe.send((self.connection_id, _CLOSED, None, None))


class ZooKeeperServer:
    """The ensemble as one server; `is_available` is False while it has no quorum."""

    def __init__(self, network: Network, now_ms: Callable[[], int]) -> None:
        self.process = Process("zookeeper")
        self.network = network
        self.tree = Tree()
        self.is_available = True
        self._now_ms = now_ms
        self._zxid = 0
        self._sessions: dict[int, _ServerSession] = {}
        self._expiring: asyncio.Task[None]

    def start(self) -> None:
        """Begin to expire sessions."""
        loop = asyncio.get_running_loop()
        context = self.process.context
        self._expiring = loop.create_task(self._expire_sessions(), context=context)

    def lose_quorum(self) -> None:
        """Close every connection and answer no request until `recover`."""
        self.is_available = False
        for session in self._sessions.values():
            session.close_connection()

    def recover(self) -> None:
        """Have a quorum again; a new leader gives every session its full timeout."""
        self.is_available = True
        for session in self._sessions.values():
            session.last_heard_s = asyncio.get_running_loop().time()

    def expire(self, session_id: int) -> None:
        """End a session: its ephemeral nodes are deleted."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close_connection()
            ended = list(self.tree.ephemerals(session_id))
            if ended:
                self._apply([Delete(path) for path in ended], session_id)

    async def _expire_sessions(self) -> None:
        while True:
            await asyncio.sleep(RECONNECT_S)
            if not self.is_available:
                continue
            now_s = asyncio.get_running_loop().time()
            for session_id, session in list(self._sessions.items()):
                if now_s - session.last_heard_s > session.timeout_s:
                    self.expire(session_id)

    def receive(self, message: tuple[Any, ...]) -> None:
        """Process one message of a client: (client, connection id, xid, verb, arguments)."""
        if not self.is_available:
            return
        client, connection_id, xid, verb, *arguments = message
        if verb == "connect":
            self._connect(client, connection_id, *arguments)
            return
        session = self._sessions.get(client.session.id)
        if session is None or session.connection_id != connection_id:
            return  # sent over a connection that the client has closed
        session.last_heard_s = asyncio.get_running_loop().time()
        try:
            result, error = getattr(self, f"_{verb}")(client.session.id, *arguments), None
        except (StoreError, ValueError) as failure:
            result, error = None, failure
        if verb != "close":
            session.pipe.send((connection_id, xid, result, error))

    def _connect(
        self, client: "SimulatedStore", connection_id: int, session_id: int, timeout_s: float
    ) -> None:
        pipe = Pipe(self.network, self.process, client.process, client.receive)
        if session_id and session_id not in self._sessions:
            pipe.send((connection_id, _CONNECT, None, None))  # expired
            return
        if not session_id:
            self._zxid += 1
            session_id = self._zxid
        now_s = asyncio.get_running_loop().time()
        self._sessions[session_id] = _ServerSession(timeout_s, now_s, pipe, connection_id)
        pipe.send((connection_id, _CONNECT, session_id, None))

    # --- verbs -----------------------------------------------------------------------------------

    def _ping(self, _session_id: int) -> None:
        """Only the time of arrival matters."""

    def _close(self, session_id: int) -> None:
        self.expire(session_id)

    def _watch(self, session_id: int, path: str, children: bool, again: bool) -> None:
        session = self._sessions[session_id]
        session.watches.add((path, children))
        if again:  # something may have happened while there was no watch
            kind = EventKind.CHILDREN if children else EventKind.CHANGED
            session.pipe.send((session.connection_id, _EVENT, WatchEvent(kind, path), None))

    def _get(self, _session_id: int, path: str) -> Znode:
        node = self.tree.node(path)
        return Znode(node.data, node.stat())

    def _exists(self, _session_id: int, path: str) -> Stat | None:
        node = self.tree.nodes.get(path)
        return node.stat() if node else None

    def _children(self, _session_id: int, path: str) -> list[str]:
        return sorted(self.tree.node(path).children)

    def _multi(self, session_id: int, operations: Sequence[Operation]) -> list[Result]:
        return self._apply(operations, session_id)

    def _apply(self, operations: Sequence[Operation], session_id: int) -> list[Result]:
        self._zxid += 1
        change = self.tree.apply(operations, ChangeStamp(self._zxid, self._now_ms(), session_id))
        for event in change.events():
            for session in self._sessions.values():
                if (event.path, event.kind is EventKind.CHILDREN) in session.watches:
                    session.pipe.send((session.connection_id, _EVENT, event, None))
        return change.results


class SimulatedStore(MetadataStore):
    """A broker's session with the simulated ZooKeeper; see ZooKeeperStore for the real one."""

    _connection_ids = itertools.count(1)

    def __init__(self, server: ZooKeeperServer, process: Process, timeout_s: float) -> None:
        self.session = Session()
        self.process = process
        self._server = server
        self._timeout_s = timeout_s
        self._pipe = Pipe(server.network, process, server.process, server.receive)
        self._connection_id = 0
        self._xids = itertools.count(1)
        self._last_heard_s = 0.0
        self._pending: dict[int, asyncio.Future[Any]] = {}
        """Requests without a response, by xid."""
        self._connected = asyncio.Event()
        self._watches: list[_Subscription] = []
        self.is_closing = False
        self._connecting: asyncio.Task[None]

    @classmethod
    async def open(cls, server: ZooKeeperServer, config: BrokerConfig) -> "SimulatedStore":
        """Connect; ConnectionLoss when no server answers within the connection timeout."""
        process = current_process()
        assert process is not None
        store = cls(server, process, config.zookeeper_session_timeout_ms / 1000)
        store._connecting = asyncio.get_running_loop().create_task(store._keep_connected())
        try:
            async with asyncio.timeout(config.zookeeper_connect_timeout_ms / 1000):
                await store._connected.wait()
        except TimeoutError:
            store.is_closing = True
            raise ConnectionLoss("zookeeper", "no ZooKeeper answered") from None
        return store

    # --- the connection --------------------------------------------------------------------------

    async def _keep_connected(self) -> None:
        while not self.is_closing:
            session_id = await self._connect()
            if session_id is None:
                await asyncio.sleep(RECONNECT_S)
                continue
            if not session_id:
                self._expire()
                continue
            self._on_connected(session_id)
            await self._ping_while_heard()
            if not self.is_closing:
                self._on_lost()

    async def _ping_while_heard(self) -> None:
        loop = asyncio.get_running_loop()
        while not self.is_closing and loop.time() - self._last_heard_s < self._timeout_s * 2 / 3:
            self._send("ping")
            await asyncio.sleep(self._timeout_s / 6)

    async def _connect(self) -> int | None:
        """The session's id; 0 if it has expired, None if no server answers."""
        self._connection_id = next(self._connection_ids)
        answer = self._pending[_CONNECT] = asyncio.get_running_loop().create_future()
        self._pipe = Pipe(
            self._server.network, self.process, self._server.process, self._server.receive
        )
        connect = ("connect", self.session.id, self._timeout_s)
        self._pipe.send((self, self._connection_id, _CONNECT, *connect))
        try:
            async with asyncio.timeout(self._timeout_s / 3):
                return await answer or 0
        except TimeoutError:
            return None
        finally:
            self._pending.pop(_CONNECT, None)

    def _on_connected(self, session_id: int) -> None:
        self._last_heard_s = asyncio.get_running_loop().time()
        self.session.move_to(SessionState.CONNECTED, session_id)
        for watch in list(self._watches):
            self._send("watch", watch.path, watch.of_children, True)
        self._connected.set()

    def _on_lost(self) -> None:
        self._connected.clear()
        pending, self._pending = self._pending, {}
        self.session.move_to(SessionState.DISCONNECTED)
        for answer in pending.values():
            if not answer.done():
                answer.set_exception(ConnectionLoss("zookeeper"))

    def _expire(self) -> None:
        self.session.id = 0
        self.session.move_to(SessionState.EXPIRED)
        for watch in list(self._watches):
            watch.deliver(WatchEvent(EventKind.SESSION_EXPIRED, watch.path))

    def receive(self, message: tuple[int, int, Any, Exception | None]) -> None:
        """A response or a watch event; runs in the broker's process."""
        connection_id, xid, result, error = message
        if connection_id != self._connection_id or self.is_closing:
            return
        if xid == _CLOSED:
            self._last_heard_s = -math.inf
            return
        self._last_heard_s = asyncio.get_running_loop().time()
        if xid == _EVENT:
            for watch in list(self._watches):
                if watch.wants(result):
                    watch.deliver(result)
            return
        answer = self._pending.pop(xid, None)
        if answer is None or answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(result)

    def _send(self, verb: str, *arguments: Any) -> int:
        xid = next(self._xids)
        self._pipe.send((self, self._connection_id, xid, verb, *arguments))
        return xid

    async def _request(self, verb: str, *arguments: Any) -> Any:
        while not self._connected.is_set() and not self.is_closing:
            await self._connected.wait()
        if self.is_closing:
            raise SessionExpired("zookeeper", "the store is closed")
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[self._send(verb, *arguments)] = answer
        return await answer

    # --- MetadataStore ---------------------------------------------------------------------------

    async def get(self, path: str) -> Znode:
        """See MetadataStore."""
        znode = await self._read("get", path)
        assert isinstance(znode, Znode)
        return znode

    async def exists(self, path: str) -> Stat | None:
        """See MetadataStore."""
        stat = await self._read("exists", path)
        assert stat is None or isinstance(stat, Stat)
        return stat

    async def children(self, path: str) -> list[str]:
        """See MetadataStore."""
        return list(await self._read("children", path))

    async def _read(self, verb: str, path: str) -> Any:
        check_path(path)
        while True:
            try:
                return await self._request(verb, path)
            except ConnectionLoss:  # reads are repeated, changes are not
                continue

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """See MetadataStore."""
        return list(await self._request("multi", list(operations))) if operations else []

    def watch_data(self, path: str, callback: WatchCallback) -> Watch:
        """See MetadataStore."""
        return self._subscribe(_Subscription(self, path, False, callback))

    def watch_children(self, path: str, callback: WatchCallback) -> Watch:
        """See MetadataStore."""
        return self._subscribe(_Subscription(self, path, True, callback))

    def _subscribe(self, watch: "_Subscription") -> Watch:
        check_path(watch.path)
        self._watches.append(watch)
        if self._connected.is_set():
            self._send("watch", watch.path, watch.of_children, False)
        return watch

    def forget(self, watch: "_Subscription") -> None:
        """Drop a cancelled watch."""
        if watch in self._watches:
            self._watches.remove(watch)

    async def close(self) -> None:
        """See MetadataStore."""
        if self.is_closing:
            return
        self.is_closing = True
        self._watches.clear()
        if self._connected.is_set():
            self._send("close")
        self._connected.set()
        self.session.move_to(SessionState.CLOSED)


class _Subscription(Watch):
    """One lasting watch of a broker."""

    def __init__(
        self, store: SimulatedStore, path: str, of_children: bool, callback: WatchCallback
    ) -> None:
        self.path = path
        self.of_children = of_children
        self._store = store
        self._callback = callback

    def wants(self, event: WatchEvent) -> bool:
        """Whether the event is about the watched node."""
        return event.path == self.path and (event.kind is EventKind.CHILDREN) == self.of_children

    def deliver(self, event: WatchEvent) -> None:
        """Call back, unless it was cancelled meanwhile."""
        if self in self._store._watches:
            self._callback(event)

    def cancel(self) -> None:
        """See Watch."""
        self._store.forget(self)


def opening(server: ZooKeeperServer) -> Callable[..., Any]:
    """`Platform.open_store` for brokers of this server."""

    async def open_store(
        config: BrokerConfig, _clock: Clock, *, belongs_to_cluster: bool
    ) -> MetadataStore:
        return await SimulatedStore.open(server, config)

    return open_store
