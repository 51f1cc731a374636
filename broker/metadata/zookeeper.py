"""The metadata store in a ZooKeeper ensemble, through kazoo.

kazoo runs the connection in a thread of its own. `LoopHandler` passes its responses and watch
events to the event loop with `call_soon_threadsafe`, so that they arrive in the order in which
ZooKeeper sent them, and only kazoo's own code runs outside of the loop. In particular, a watch
event arrives before any response that shows the change, as ZooKeeper guarantees.

ZooKeeper's watches fire once. A subscription therefore sets its next watch before it calls back:
ZooKeeper processes the requests of a session in order, so that whatever the subscriber reads is
read after the new watch was set, and no change is missed. After a broken connection the watches are
set again, and changes made meanwhile are recognized by the node's zxids.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Self

from kazoo import exceptions as kazoo_errors
from kazoo.client import KazooClient
from kazoo.protocol import serialization
from kazoo.protocol.states import KazooState, KeeperState, ZnodeStat
from kazoo.retry import KazooRetry
from kazoo.security import ACL, CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from broker.metadata.errors import (
    AuthFailed,
    BadVersion,
    ConnectionLoss,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotAllowed,
    NotEmpty,
    SessionExpired,
    StoreError,
)
from broker.metadata.loop_handler import LoopHandler
from broker.metadata.recursive import ensure_path
from broker.metadata.session import Session, SessionState
from broker.metadata.store import (
    MISSING_PARENT,
    Check,
    Create,
    Delete,
    MetadataStore,
    Operation,
    Result,
    SetData,
    Stat,
    Watch,
    WatchCallback,
    Znode,
    check_created_path,
    check_path,
)
from broker.metadata.subscriptions import ChildrenSubscription, DataSubscription, Subscription

logger = logging.getLogger(__name__)

RECONNECT_DELAY_S = 0.1
MAX_RECONNECT_DELAY_S = 1.0

# Nodes below these may contain passwords: only their creator may read them, as in Kafka.
SENSITIVE_PATHS = ("/config/users", "/config/brokers", "/delegation_token/tokens")
# Old consumers, which do not authenticate, write here.
OPEN_PATH = "/consumers"


def _check_host_name(host: str) -> None:
    try:
        host.encode("idna")  # as getaddrinfo does
    except UnicodeError as error:
        raise ValueError(f"invalid host name {host!r}: {error.__cause__ or error}") from error


@dataclass(frozen=True)
class ZooKeeperSettings:
    """The connection to an ensemble: Kafka's `zookeeper.*` settings."""

    connect: str
    """`host:port,host:port/chroot`."""
    session_timeout_ms: int = 18_000
    connection_timeout_ms: int = 18_000
    set_acl: bool = False
    """Create nodes that only this user may change (`zookeeper.set.acl`); needs `auth` or `sasl`."""
    auth: tuple[tuple[str, str], ...] = ()
    """Credentials by scheme: `("digest", "user:password")`."""
    sasl: tuple[tuple[str, str], ...] = ()
    """kazoo's SASL options (`mechanism`, `username`, `password`, …); needs pure-sasl."""
    use_tls: bool = False
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    key_password: str | None = None
    check_hostname: bool = True

    def client(self, handler: LoopHandler) -> KazooClient:
        """A kazoo client, not yet started. It retries to connect without limit.

        ValueError if a host name in `connect` is invalid: it would end kazoo's thread.
        """
        for address in self.connect.partition("/")[0].split(","):
            _check_host_name(address.rpartition(":")[0] or address)
        retry = KazooRetry(
            max_tries=-1, delay=RECONNECT_DELAY_S, max_delay=MAX_RECONNECT_DELAY_S, backoff=2
        )
        client = KazooClient(
            hosts=self.connect,
            timeout=self.session_timeout_ms / 1000,
            handler=handler,
            connection_retry=retry,
            auth_data=set(self.auth),
            sasl_options=dict(self.sasl) or None,
            use_ssl=self.use_tls,
            ca=self.ca_file,
            certfile=self.cert_file,
            keyfile=self.key_file,
            keyfile_password=self.key_password,
            check_hostname=self.check_hostname,
            logger=logger,
        )
        _drop_connection_at_wrong_xid(client)
        return client


def _drop_connection_at_wrong_xid(client: KazooClient) -> None:
    """Treat a response out of order as a broken connection, as ZooKeeper's own client does.

    A server may send one to a session that has just moved to it while the session had a request
    in progress through another server. kazoo itself ends its thread then and never reconnects.
    """
    connection = client._connection
    read_response = connection._read_response

    def read_expected_response(header: Any, buffer: Any, offset: int) -> Any:
        expected = client._pending[0][2] if client._pending else None
        if header.xid != expected:
            raise kazoo_errors.ConnectionDropped(
                f"response to request {header.xid}, expected {expected}"
            )
        return read_response(header, buffer, offset)

    connection._read_response = read_expected_response


class ZooKeeperStore(MetadataStore):
    """A store in ZooKeeper; created with `open`.

    Reads are repeated when the connection breaks. Changes are not, as they may have been applied:
    the caller gets ConnectionLoss and has to find out. Calls made without a connection wait for the
    next one.

    Field `_subscriptions`: all watches that are not cancelled.
    Field `_connected`: set while connected, and permanently once no connection can be made.
    Field `_closing`: set by `close`; the session then ends without counting as expired.
    Field `_restarting`: the restart of a client whose thread has failed; None before the first.
    """

    def __init__(self, settings: ZooKeeperSettings) -> None:
        self.session = Session()
        self._settings = settings
        self._handler = LoopHandler(asyncio.get_running_loop())
        self._client = settings.client(self._handler)
        self._subscriptions: list[Subscription] = []
        self._connected = asyncio.Event()
        self._closing = False
        self._restarting: asyncio.Future[object] | None = None
        self._client.add_listener(self._listen)
        self._handler.connection_thread_failed = self._restart

    @classmethod
    async def open(cls, settings: ZooKeeperSettings, *, create_chroot: bool = True) -> Self:
        """Connect; a missing chroot is created, or NoNode without `create_chroot`.

        ConnectionLoss if no server answers within the connection timeout.
        """
        store = cls(settings)
        store._client.start_async()
        try:
            await store._connect(create_chroot)
        except BaseException:
            await store.close()
            raise
        return store

    async def _connect(self, create_chroot: bool) -> None:
        try:
            async with asyncio.timeout(self._settings.connection_timeout_ms / 1000):
                await self._connected.wait()
        except TimeoutError:
            wait_ms = self._settings.connection_timeout_ms
            raise ConnectionLoss(
                self._settings.connect, f"no ZooKeeper answered within {wait_ms} ms"
            ) from None
        # Read even without a chroot: credentials are rejected only after the connection is made.
        if await self.exists("/") is None:
            await self._create_chroot(create_chroot)

    async def _create_chroot(self, wanted: bool) -> None:
        chroot = self._client.chroot
        if not wanted:
            raise NoNode(chroot, "the chroot does not exist")
        hosts = self._settings.connect.partition("/")[0]
        above = await ZooKeeperStore.open(replace(self._settings, connect=hosts))
        try:
            await ensure_path(above, chroot)
        finally:
            await above.close()

    # Reading

    async def get(self, path: str) -> Znode:
        """See MetadataStore."""
        data, stat = await self._read(path, lambda: self._client.get_async(path))
        return Znode(data, to_stat(stat))

    async def exists(self, path: str) -> Stat | None:
        """See MetadataStore."""
        stat = await self._read(path, lambda: self._client.exists_async(path))
        return to_stat(stat) if stat else None

    async def children(self, path: str) -> list[str]:
        """See MetadataStore."""
        return sorted(await self._read(path, lambda: self._client.get_children_async(path)))

    async def _read(self, path: str, call: Callable[[], Any]) -> Any:
        check_path(path)
        while True:
            try:
                return await self._answer(path, call)
            except ConnectionLoss:
                await self._connected.wait()

    # Changing

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """See MetadataStore."""
        if not operations:
            return []
        transaction = self._client.transaction()
        transaction.operations = [self._request(operation) for operation in operations]
        results = await self._answer(operations[0].path, transaction.commit_async)
        for operation, result in zip(operations, results, strict=True):
            # The other operations report that they were rolled back: find the one that failed.
            if isinstance(result, Exception) and not isinstance(
                result, (kazoo_errors.RolledBackError, kazoo_errors.RuntimeInconsistency)
            ):
                raise to_store_error(operation.path, result, _detail(operation, result))
        return [_result(result) for result in results]

    def _request(self, operation: Operation) -> Any:
        """An operation as kazoo serializes it; kazoo's own methods do not accept data of None."""
        match operation:
            case Create(path, data, ephemeral, sequence):
                check_created_path(operation)
                flags = ephemeral | sequence << 1
                return serialization.Create(self._full(path), data, self._acl(path), flags)
            case SetData(path, data, version):
                check_path(path)
                return serialization.SetData(self._full(path), data, version)
            case Delete(path, version):
                check_path(path)
                return serialization.Delete(self._full(path), version)
            case Check(path, version):
                check_path(path)
                return serialization.CheckVersion(self._full(path), version)

    def _full(self, path: str) -> str:
        chroot: str = self._client.chroot
        return chroot + path if path != "/" else chroot or "/"

    def _acl(self, path: str) -> list[ACL]:
        if not self._settings.set_acl or path == OPEN_PATH:
            return list(OPEN_ACL_UNSAFE)
        if path.startswith(SENSITIVE_PATHS):
            return list(CREATOR_ALL_ACL)
        return [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE]

    async def _answer(self, path: str, call: Callable[[], Any]) -> Any:
        """Make kazoo's asynchronous `call` and await its result; StoreError if it fails."""
        answered: asyncio.Future[Any] = self._handler.loop.create_future()
        started_s = perf_counter()
        try:
            call().rawlink(lambda result: _settle(answered, result))
            result = await answered
            self.session.request_times.record(perf_counter() - started_s)
            return result
        except kazoo_errors.KazooException as error:
            raise to_store_error(path, error) from error

    # Watching

    def watch_data(self, path: str, callback: WatchCallback) -> Watch:
        """See MetadataStore."""
        return self._subscribe(DataSubscription(self._client, path, callback))

    def watch_children(self, path: str, callback: WatchCallback) -> Watch:
        """See MetadataStore."""
        return self._subscribe(ChildrenSubscription(self._client, path, callback))

    def _subscribe(self, subscription: Subscription) -> Subscription:
        check_path(subscription.path)
        self._subscriptions.append(subscription)
        subscription.forget = self._subscriptions.remove
        subscription.arm()
        return subscription

    # The session

    def _listen(self, state: KazooState) -> None:
        """Called in kazoo's thread at every change of state, before pending calls fail."""
        session_id, _ = self._client.client_id or (None, None)
        client_state = self._client.client_state
        self._handler.call(lambda: self._move(state, client_state, session_id))

    def _move(self, state: KazooState, client_state: KeeperState, session_id: int | None) -> None:
        if state == KazooState.CONNECTED:
            self.session.move_to(SessionState.CONNECTED, session_id)
            self._connected.set()
            for subscription in list(self._subscriptions):
                subscription.arm()
        elif state == KazooState.SUSPENDED:
            self._connected.clear()
            self.session.move_to(SessionState.DISCONNECTED)
        elif client_state == KeeperState.AUTH_FAILED:
            self.session.move_to(SessionState.AUTH_FAILED)
            self._connected.set()  # wakes callers: there will be no connection
        elif not self._closing:
            self._expire()

    def _expire(self) -> None:
        self._connected.clear()
        self.session.move_to(SessionState.EXPIRED)
        for subscription in list(self._subscriptions):
            subscription.session_expired()

    def _restart(self) -> None:
        """Connect with a new session after an exception that kazoo does not handle.

        The old session counts as expired by now. Without a new one the broker would keep running
        without being a member of the cluster.
        """
        if not self._closing:
            logger.error("the connection to ZooKeeper has failed, connecting with a new session")
            self._restarting = asyncio.ensure_future(asyncio.to_thread(self._client.start_async))

    async def close(self) -> None:
        """See MetadataStore; closing twice is allowed."""
        if self._closing:
            return
        self._closing = True
        for subscription in list(self._subscriptions):
            subscription.cancel()
        # kazoo joins its thread, which takes up to the session timeout if no server answers.
        await asyncio.to_thread(self._client.stop)
        self._client.close()
        self._connected.set()
        self.session.move_to(SessionState.CLOSED)


_ERRORS: dict[type[Exception], type[StoreError]] = {
    kazoo_errors.NoNodeError: NoNode,
    kazoo_errors.NodeExistsError: NodeExists,
    kazoo_errors.BadVersionError: BadVersion,
    kazoo_errors.NotEmptyError: NotEmpty,
    kazoo_errors.NoChildrenForEphemeralsError: NoChildrenForEphemerals,
    kazoo_errors.SessionExpiredError: SessionExpired,
    kazoo_errors.ConnectionClosedError: SessionExpired,
    kazoo_errors.ConnectionLoss: ConnectionLoss,
    kazoo_errors.AuthFailedError: AuthFailed,
    kazoo_errors.NoAuthError: NotAllowed,
}


def _detail(operation: Operation, error: Exception) -> str:
    is_parent = isinstance(operation, Create) and isinstance(error, kazoo_errors.NoNodeError)
    return MISSING_PARENT if is_parent else ""


def to_store_error(path: str, error: Exception, detail: str = "") -> StoreError:
    """The StoreError for an exception of kazoo."""
    known = _ERRORS.get(type(error))
    if known:
        return known(path, detail)
    return StoreError(path, f"{type(error).__name__}: {error}")


def to_stat(stat: ZnodeStat) -> Stat:
    """kazoo's stat as a Stat."""
    return Stat(
        stat.czxid,
        stat.mzxid,
        stat.pzxid,
        stat.ctime,
        stat.mtime,
        stat.version,
        stat.cversion,
        stat.ephemeralOwner,
        stat.numChildren,
    )


def _result(result: Any) -> Result:
    if isinstance(result, ZnodeStat):
        return to_stat(result)
    return result if isinstance(result, str) else None


def _settle(answered: asyncio.Future[Any], result: Any) -> None:
    if answered.done():  # the caller was cancelled
        return
    if result.exception is not None:
        answered.set_exception(result.exception)
    else:
        answered.set_result(result.value)
