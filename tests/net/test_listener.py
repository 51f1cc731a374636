"""Limits of connections, addresses of listeners, and stopping."""

import asyncio
import socket
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from broker.config import Listener as ListenerAddress
from broker.net.connection import Connection, Peer, ResponseParts
from broker.net.listener import Listener
from broker.net.transport import PlainTransport
from broker.quota.rates import Windows
from tests.net.support import (
    LOCAL,
    RawClient,
    connect,
    connect_with_small_buffer,
    echo,
    framed,
    in_loop,
    listening,
    quotas,
    until,
)


@in_loop
async def test_idle_connection_is_closed_and_an_active_one_is_not() -> None:
    async with (
        listening(echo, connections_max_idle_ms=400) as listener,
        await connect(listener) as silent,
        await connect(listener) as busy,
    ):
        closed = asyncio.create_task(silent.is_closed())
        while not closed.done():
            assert await busy.ask(b"still here") == b"still here"
            await asyncio.sleep(0.02)
        assert await closed
        assert listener.num_connections == 1


@in_loop
async def test_negative_max_idle_closes_nothing_and_quiet_connections_shrink(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("broker.net.listener._QUIET_S", 0.02)
    looked_after = asyncio.Event()
    monkeypatch.setattr(Connection, "shrink", lambda connection: looked_after.set())
    async with (
        listening(echo, connections_max_idle_ms=-1) as listener,
        await connect(listener) as client,
    ):
        await asyncio.wait_for(looked_after.wait(), 5)
        assert await client.ask(b"still here") == b"still here"


@in_loop
async def test_connection_above_max_connections_waits_until_another_is_closed() -> None:
    async with listening(echo, max_connections=2) as listener:
        first, second, third = [await connect(listener) for _ in range(3)]
        assert await first.ask(b"1") == b"1"
        assert await second.ask(b"2") == b"2"
        waiting = asyncio.create_task(third.ask(b"3"))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        assert listener.num_connections == 2
        first.leave()
        assert await waiting == b"3"
        for client in (second, third):
            client.leave()


@in_loop
async def test_connection_above_the_limit_per_ip_is_closed_until_another_is_closed() -> None:
    async with listening(
        echo,
        max_connections_per_ip=1,
        max_connections_per_ip_overrides={"127.0.0.2": 2, "127.0.0.3": 0},
    ) as listener:
        clients = {
            source: [await _ask_from(listener, source) for _ in range(3)]
            for source in ("127.0.0.1", "127.0.0.2", "127.0.0.3")
        }
        served = {source: sum(c is not None for c in of) for source, of in clients.items()}
        assert served == {"127.0.0.1": 1, "127.0.0.2": 2, "127.0.0.3": 0}
        assert clients["127.0.0.1"][0] is not None
        clients["127.0.0.1"][0].leave()
        await until(lambda: listener.num_connections == 2)
        again = await _ask_from(listener, "127.0.0.1")
        assert again is not None
        for client in (again, *clients["127.0.0.2"]):
            if client is not None:
                client.leave()


@in_loop
async def test_regression_limits_apply_to_all_listeners_together() -> None:
    limits = quotas(max_connections=2, max_connections_per_ip_overrides={"127.0.0.2": 1})
    async with listening(echo, shared=limits) as one, listening(echo, shared=limits) as other:
        first = await _ask_from(one, "127.0.0.2")
        assert first is not None
        assert await _ask_from(other, "127.0.0.2") is None
        second, third = await connect(other), await connect(one)
        assert await second.ask(b"2") == b"2"
        waiting = asyncio.create_task(third.ask(b"3"))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        second.leave()
        assert await waiting == b"3"
        first.leave()
        third.leave()


@in_loop
async def test_full_broker_accepts_inter_broker_connection_and_closes_the_idlest_other() -> None:
    shared = quotas(max_connections=2, protected_listener="INTERNAL")
    inter_broker = LOCAL._replace(name="INTERNAL")
    async with (
        listening(echo, shared=shared) as external,
        listening(echo, inter_broker, shared=shared) as internal,
    ):
        idlest, recent = [await connect(external) for _ in range(2)]
        assert await idlest.ask(b"1") == b"1"
        assert await recent.ask(b"2") == b"2"
        other_broker = await connect(internal)
        assert await other_broker.ask(b"3") == b"3"
        assert await idlest.is_closed()
        assert await recent.ask(b"4") == b"4"
        for client in (recent, other_broker):
            client.leave()


@in_loop
async def test_listener_with_a_limit_of_its_own_accepts_no_more() -> None:
    async with listening(echo, max_connections_per_listener={"PLAINTEXT": 1}) as listener:
        first, second = [await connect(listener) for _ in range(2)]
        assert await first.ask(b"1") == b"1"
        waiting = asyncio.create_task(second.ask(b"2"))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        first.leave()
        assert await waiting == b"2"
        second.leave()


@in_loop
async def test_raised_max_connections_admits_a_waiting_connection() -> None:
    shared = quotas(max_connections=0)
    async with listening(echo, shared=shared) as listener, await connect(listener) as client:
        waiting = asyncio.create_task(client.ask(b"1"))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        shared.reconfigure(replace(shared.config, max_connections=1))
        assert await waiting == b"1"


@in_loop
async def test_lowered_max_connections_closes_the_idlest_connections() -> None:
    shared = quotas(max_connections=3)
    async with listening(echo, shared=shared) as listener:
        clients = [await connect(listener) for _ in range(3)]
        for client in clients:
            assert await client.ask(b"hello") == b"hello"
        shared.reconfigure(replace(shared.config, max_connections=1))
        assert await clients[0].is_closed()
        assert await clients[1].is_closed()
        assert await clients[2].ask(b"still open") == b"still open"
        clients[2].leave()


def _server_side(listener: Listener) -> socket.socket:
    """The broker's socket of the only connection."""
    (connection,) = listener._connections
    assert isinstance(connection.transport, PlainTransport)
    return connection.transport.socket


async def _ask_from(listener: Listener, source: str) -> RawClient | None:
    """A client that got a response; None if its connection was closed."""
    client = await connect(listener, source)
    try:
        assert await client.ask(b"hello") == b"hello"
    except (asyncio.IncompleteReadError, ConnectionResetError):
        client.leave()
        return None
    return client


@in_loop
async def test_stop_sends_written_responses_and_closes_every_connection() -> None:
    async with listening(echo) as listener:
        clients = [await connect(listener) for _ in range(5)]
        for client in clients:
            client.writer.write(framed(b"last words"))
        await until(lambda: listener.num_connections == 5)
        for client in clients:
            assert await client.receive() == b"last words"
        await listener.stop()
        for client in clients:
            assert await client.is_closed()
        with pytest.raises(ConnectionRefusedError):
            await connect(listener)
        assert listener.num_connections == 0


@in_loop
async def test_regression_stop_does_not_wait_for_a_client_that_does_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("broker.net.listener._GRACE_S", 0.05)
    num_asked = 0

    def much(frame: memoryview, peer: Peer) -> ResponseParts:
        nonlocal num_asked
        num_asked += 1
        return [bytearray(framed(bytes(20_000_000)))]

    async with listening(much) as listener:
        client = await connect_with_small_buffer(listener)
        await asyncio.get_running_loop().sock_sendall(client, framed(b"much"))
        await until(lambda: num_asked == 1)
        async with asyncio.timeout(5):
            await listener.stop()
        assert listener.num_connections == 0
        client.close()


@in_loop
async def test_regression_stop_closes_a_connection_that_waits_for_a_slot() -> None:
    async with listening(echo, max_connections=1) as listener:
        first = await connect(listener)
        assert await first.ask(b"1") == b"1"
        waiting = await connect(listener)
        await asyncio.sleep(0.05)
        await listener.stop()
        assert await waiting.is_closed()
        assert await first.is_closed()


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
@in_loop
async def test_listener_without_host_serves_ipv4_and_ipv6_clients() -> None:
    hosts: list[str] = []

    def answer(frame: memoryview, peer: Peer) -> ResponseParts:
        hosts.append(peer.host)
        return echo(frame, peer)

    async with listening(answer, ListenerAddress("PLAINTEXT", "", 0)) as listener:
        for host in ("127.0.0.1", "::1"):
            async with RawClient(
                *await asyncio.open_connection(host, listener.address.port)
            ) as client:
                assert await client.ask(b"hello") == b"hello"
    assert hosts == ["127.0.0.1", "::1"]


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
@in_loop
async def test_listener_on_an_ipv6_address_serves_clients() -> None:
    async with (
        listening(echo, ListenerAddress("PLAINTEXT", "::1", 0)) as listener,
        RawClient(*await asyncio.open_connection("::1", listener.address.port)) as client,
    ):
        assert await client.ask(b"hello") == b"hello"


@in_loop
async def test_address_in_use_is_an_os_error() -> None:
    async with listening(echo) as listener:
        with pytest.raises(OSError, match="Address already in use"):
            async with listening(echo, LOCAL._replace(port=listener.address.port)):
                pass


@in_loop
async def test_connections_have_the_configured_buffer_sizes() -> None:
    async with (
        listening(
            echo, socket_send_buffer_bytes=30_000, socket_receive_buffer_bytes=40_000
        ) as listener,
        await connect(listener) as client,
    ):
        await client.ask(b"hello")
        server_side = _server_side(listener)
        # Linux doubles the value, for its own bookkeeping.
        assert server_side.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 60_000
        assert server_side.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 80_000


def congestion_control(of: socket.socket) -> str:
    if not hasattr(socket, "TCP_CONGESTION"):
        pytest.skip("this system has one congestion control")
    name = of.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return name.rstrip(b"\0").decode()


@in_loop
async def test_connection_within_the_machine_is_never_paced() -> None:
    async with listening(echo) as listener, await connect(listener) as client:
        await client.ask(b"hello")
        assert congestion_control(_server_side(listener)) == "reno"
        # It began so: one that BBR has ever paced goes on being paced under any other.
        assert congestion_control(listener._socket) == "reno"


@in_loop
async def test_connection_over_a_network_has_the_congestion_control_of_the_system() -> None:
    with socket.socket() as usual:
        name = congestion_control(usual)
    async with listening(echo) as listener, await connect(listener, "127.0.0.2") as client:
        await client.ask(b"hello")
        assert congestion_control(_server_side(listener)) == name


WINDOWS = Windows(2, 500)
"""A second, of which half may come at once."""


@in_loop
async def test_connections_above_the_creation_rate_wait_in_the_acceptor() -> None:
    loop = asyncio.get_running_loop()
    async with (
        listening(echo, max_connection_creation_rate=10, quota_windows=WINDOWS) as listener,
        AsyncExitStack() as stack,
    ):
        began_s = loop.time()
        clients = [await stack.enter_async_context(await connect(listener)) for _ in range(15)]
        answers = [asyncio.create_task(client.ask(b"x")) for client in clients]
        assert await asyncio.gather(*answers) == [b"x"] * 15  # none is refused
        # Each window of half a second lets at most five in, after the first two.
        assert loop.time() - began_s >= 0.5


@in_loop
async def test_creation_rate_of_the_broker_does_not_hold_back_the_inter_broker_listener() -> None:
    shared = quotas(
        max_connection_creation_rate=0, protected_listener="INTERNAL", quota_windows=WINDOWS
    )
    assert shared._creation_throttle_ms("INTERNAL", 0.0) == 0
    assert shared._creation_throttle_ms("EXTERNAL", 0.0) == WINDOWS.window_ms


@in_loop
async def test_creation_rate_of_a_listener_holds_back_only_that_listener() -> None:
    limits = {"EXTERNAL": 2, "INTERNAL": 1}
    shared = quotas(
        max_connection_creation_rate_per_listener=limits,
        protected_listener="INTERNAL",
        quota_windows=WINDOWS,
    )
    delays = {
        name: [shared._creation_throttle_ms(name, 0.0) for _ in range(4)]
        for name in ("EXTERNAL", "INTERNAL", "OTHER")
    }
    assert delays == {
        "EXTERNAL": [0, 500, 500, 500],
        "INTERNAL": [500, 500, 500, 500],
        "OTHER": [0, 0, 0, 0],
    }
