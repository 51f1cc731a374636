"""The ZooKeeper store alone: broken connections, chroots, credentials, ACLs."""

import asyncio
import gc
import logging
import shutil
import ssl
import subprocess
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from broker.metadata.errors import AuthFailed, ConnectionLoss, NoNode, NotAllowed, StoreError
from broker.metadata.session import SessionState
from broker.metadata.store import EventKind, WatchEvent
from broker.metadata.zookeeper import ZooKeeperSettings, ZooKeeperStore
from tests.support.processes import free_port

pytestmark = pytest.mark.zk


class BreakableProxy:
    """A proxy in front of ZooKeeper whose connections can be cut and restored."""

    def __init__(self, target: str, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        host, _, port = target.partition("/")[0].rpartition(":")
        self._target = (host, int(port))
        self._chroot = target.partition("/")[2]
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self.port = free_port()
        self.is_next_xid_wrong = False

    @property
    def connect(self) -> str:
        return f"127.0.0.1:{self.port}/{self._chroot}"

    async def mend(self) -> None:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, ssl=self._tls
        )

    async def cut(self) -> None:
        assert self._server
        self._server.close()
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream = await asyncio.open_connection(*self._target)
        self._writers += [writer, upstream]
        await asyncio.gather(
            _pump(reader, upstream), _pump(upstream_reader, writer, self._spoil_xid)
        )

    def _spoil_xid(self, data: bytes) -> bytes:
        """Count up the xid of a response: the four bytes after its size."""
        xid = int.from_bytes(data[4:8], "big", signed=True)
        if not self.is_next_xid_wrong or xid <= 0:
            return data
        self.is_next_xid_wrong = False
        return data[:4] + (xid + 1).to_bytes(4, "big") + data[8:]


async def _pump(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    change: Callable[[bytes], bytes] = bytes,
) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(change(data))
            await writer.drain()
    except ConnectionError:
        pass
    writer.close()


@asynccontextmanager
async def opened(settings: ZooKeeperSettings) -> AsyncIterator[ZooKeeperStore]:
    store = await ZooKeeperStore.open(settings)
    try:
        yield store
    finally:
        await store.close()


def states_of(store: ZooKeeperStore) -> "asyncio.Queue[SessionState]":
    states: asyncio.Queue[SessionState] = asyncio.Queue()
    store.session.on_state(states.put_nowait)
    return states


async def reach(states: "asyncio.Queue[SessionState]", wanted: SessionState) -> None:
    async with asyncio.timeout(20):
        while await states.get() is not wanted:
            pass


async def test_broken_connection_keeps_session_and_watches_and_reports_missed_changes(
    zookeeper: str,
) -> None:
    wire = BreakableProxy(zookeeper)
    await wire.mend()
    settings = ZooKeeperSettings(wire.connect, session_timeout_ms=10_000)
    async with opened(settings) as store, opened(replace(settings, connect=zookeeper)) as other:
        states = states_of(store)
        events: asyncio.Queue[WatchEvent] = asyncio.Queue()
        quiet: list[WatchEvent] = []
        for path in ("/p", "/quiet"):
            await store.create(path)
        await store.create("/me", ephemeral=True)
        store.watch_children("/p", events.put_nowait)
        store.watch_data("/d", events.put_nowait)
        store.watch_children("/quiet", quiet.append)
        store.watch_data("/me", quiet.append)
        session_id = store.session.id
        await store.exists("/")  # the watches are set

        await wire.cut()
        await reach(states, SessionState.DISCONNECTED)
        await other.create("/p/missed")
        await other.create("/d")
        read_meanwhile = asyncio.create_task(store.children("/p"))
        await wire.mend()

        async with asyncio.timeout(20):
            missed = {(await events.get()), (await events.get())}
            assert await read_meanwhile == ["missed"]
        assert missed == {(EventKind.CHILDREN, "/p"), (EventKind.CREATED, "/d")}
        assert store.session.id == session_id
        assert await store.exists("/me")
        await other.create("/p/later")
        async with asyncio.timeout(20):
            assert await events.get() == (EventKind.CHILDREN, "/p")
        assert quiet == []
        await wire.cut()


async def test_change_in_flight_when_the_connection_breaks_is_a_connection_loss(
    zookeeper: str,
) -> None:
    wire = BreakableProxy(zookeeper)
    await wire.mend()
    async with opened(ZooKeeperSettings(wire.connect, session_timeout_ms=10_000)) as store:
        states = states_of(store)
        await wire.cut()
        outcomes = await asyncio.gather(
            *(asyncio.wait_for(store.create(f"/{n}"), 0.1) for n in range(3)),
            return_exceptions=True,
        )
        await reach(states, SessionState.DISCONNECTED)
        assert all(isinstance(o, (ConnectionLoss, TimeoutError)) for o in outcomes)
        await wire.mend()
        await reach(states, SessionState.CONNECTED)
        await store.create("/after")
        await wire.cut()


async def test_regression_response_out_of_order_breaks_the_connection_only(
    zookeeper: str,
) -> None:
    wire = BreakableProxy(zookeeper)
    await wire.mend()
    async with opened(ZooKeeperSettings(wire.connect, session_timeout_ms=10_000)) as store:
        states = states_of(store)
        session_id = store.session.id
        wire.is_next_xid_wrong = True
        with pytest.raises(ConnectionLoss):
            await store.create("/in-flight")
        await reach(states, SessionState.CONNECTED)
        assert store.session.id == session_id
        await store.create("/after")
        await wire.cut()


async def test_regression_failure_of_the_connection_thread_is_an_expired_session(
    zookeeper: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(ZooKeeperSettings(zookeeper, session_timeout_ms=10_000)) as store:
        states = states_of(store)
        events: asyncio.Queue[WatchEvent] = asyncio.Queue()
        store.watch_data("/node", events.put_nowait)
        session_id = store.session.id
        with monkeypatch.context() as patch:
            patch.setattr(store._client._connection, "_read_response", _fail)
            with pytest.raises(StoreError):
                await store.create("/in-flight")
            await reach(states, SessionState.EXPIRED)
        await reach(states, SessionState.CONNECTED)
        assert store.session.id != session_id
        await store.create("/node")
        async with asyncio.timeout(20):
            while await events.get() != (EventKind.CREATED, "/node"):
                pass


def _fail(*_: object) -> None:
    raise RuntimeError("a mistake in kazoo")


async def test_no_zookeeper_is_a_connection_loss_that_names_it() -> None:
    address = f"127.0.0.1:{free_port()}"
    settings = ZooKeeperSettings(address, connection_timeout_ms=300)
    with pytest.raises(ConnectionLoss, match=f"{address}.*no ZooKeeper answered within 300 ms"):
        await ZooKeeperStore.open(settings)


async def test_rejected_credentials_raise_auth_failed(zookeeper: str) -> None:
    settings = ZooKeeperSettings(zookeeper, auth=(("nonsense", "user:password"),))
    with pytest.raises(AuthFailed, match="rejected the credentials"):
        await ZooKeeperStore.open(settings)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate of its own for 127.0.0.1, and its key."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=zk", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-out", str(cert), "-keyout", str(key)]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


async def test_tls_connects_only_to_servers_that_the_ca_has_signed(
    zookeeper: str, certificate: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    cert, key = certificate
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(cert, key)
    wire = BreakableProxy(zookeeper, tls)
    await wire.mend()
    settings = ZooKeeperSettings(wire.connect, use_tls=True, ca_file=str(cert))
    async with opened(settings) as store:
        await store.create("/a", b"over TLS")
        assert (await store.get("/a")).data == b"over TLS"
    strangers = replace(settings, ca_file=None, connection_timeout_ms=500)
    # kazoo leaves the sockets of failed handshakes to the garbage collector, and logs errors that
    # hold on to them.
    caplog.set_level(logging.CRITICAL, "broker.metadata.zookeeper")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        with pytest.raises(ConnectionLoss):
            await ZooKeeperStore.open(strangers)
        gc.collect()
    await wire.cut()


async def test_missing_chroot_is_created_or_reported(zookeeper: str) -> None:
    settings = ZooKeeperSettings(f"{zookeeper}/deep/down")
    with pytest.raises(NoNode, match=r"/deep/down.*the chroot does not exist"):
        await ZooKeeperStore.open(settings, create_chroot=False)
    async with opened(settings) as store:
        await store.create("/a", b"x")
        assert await store.create("/s_", sequence=True) == "/s_0000000001"
        assert await store.children("/") == ["a", "s_0000000001"]
    async with opened(ZooKeeperSettings(zookeeper)) as above:
        assert (await above.get("/deep/down/a")).data == b"x"


async def test_secured_nodes_are_writable_by_their_creator_and_sensitive_ones_readable_only_by_it(
    zookeeper: str,
) -> None:
    settings = ZooKeeperSettings(zookeeper, auth=(("digest", "kafka:secret"),), set_acl=True)
    async with opened(settings) as ours, opened(ZooKeeperSettings(zookeeper)) as stranger:
        for path in ("/brokers", "/config", "/config/users", "/consumers"):
            await ours.create(path, b"x")
        assert (await stranger.get("/brokers")).data == b"x"
        for refused in (stranger.set("/brokers", b"y"), stranger.get("/config/users")):
            with pytest.raises(NotAllowed):
                await refused
        await stranger.set("/consumers", b"y")
        assert (await ours.get("/config/users")).data == b"x"

    client = KazooClient(zookeeper)
    client.start()
    acls, _ = client.get_acls("/brokers")
    client.stop()
    client.close()
    assert {(acl.id.scheme, tuple(acl.acl_list)) for acl in acls} == {
        ("digest", ("ALL",)),
        ("world", ("READ",)),
    }
