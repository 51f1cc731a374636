"""The listener's limits, its addresses, and its end."""

import asyncio
import socket

import pytest

from broker.config import Listener as ListenerAddress
from broker.net.connection import Answer, Connection, Peer
from broker.net.listener import Listener
from tests.net.support import (
    LOCAL,
    RawClient,
    connect,
    connect_with_small_buffer,
    echo,
    framed,
    in_loop,
    limited,
    listening,
    until,
)


@in_loop
async def test_silent_connection_is_closed_and_one_that_speaks_is_not() -> None:
    async with (
        listening(echo, max_idle_ms=400) as listener,
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
async def test_negative_idle_time_closes_nothing_and_memory_of_large_frames_is_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("broker.net.listener._QUIET_S", 0.02)
    looked_after = asyncio.Event()
    monkeypatch.setattr(Connection, "shrink", lambda connection: looked_after.set())
    async with listening(echo, max_idle_ms=-1) as listener, await connect(listener) as client:
        await asyncio.wait_for(looked_after.wait(), 5)
        assert await client.ask(b"still here") == b"still here"


@in_loop
async def test_connection_above_max_connections_waits_until_another_ends() -> None:
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
async def test_connection_above_the_limit_of_its_address_is_closed_until_another_ends() -> None:
    limits = {"max_connections_per_ip": 1, "per_ip_overrides": {"127.0.0.2": 2, "127.0.0.3": 0}}
    async with listening(echo, **limits) as listener:
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
async def test_regression_limits_hold_for_all_listeners_of_a_broker_together() -> None:
    limits = limited(max_connections=2, per_ip_overrides={"127.0.0.2": 1})
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


async def _ask_from(listener: Listener, source: str) -> RawClient | None:
    """A client that was answered; None for one that was turned away."""
    client = await connect(listener, source)
    try:
        assert await client.ask(b"hello") == b"hello"
    except (asyncio.IncompleteReadError, ConnectionResetError):
        client.leave()
        return None
    return client


@in_loop
async def test_stop_sends_what_was_written_and_closes_every_connection() -> None:
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

    def much(frame: memoryview, peer: Peer) -> Answer:
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
async def test_regression_stop_closes_a_client_that_waits_for_its_turn() -> None:
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
async def test_listener_without_host_answers_ipv4_and_ipv6_and_knows_both_by_their_address() -> (
    None
):
    hosts: list[str] = []

    def answer(frame: memoryview, peer: Peer) -> Answer:
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
async def test_listener_on_an_ipv6_address_answers_there() -> None:
    async with (
        listening(echo, ListenerAddress("PLAINTEXT", "::1", 0)) as listener,
        RawClient(*await asyncio.open_connection("::1", listener.address.port)) as client,
    ):
        assert await client.ask(b"hello") == b"hello"


@in_loop
async def test_address_that_is_taken_is_an_os_error() -> None:
    async with listening(echo) as listener:
        with pytest.raises(OSError, match="Address already in use"):
            async with listening(echo, LOCAL._replace(port=listener.address.port)):
                pass


@in_loop
async def test_connections_have_the_buffers_that_were_asked_for() -> None:
    async with (
        listening(echo, send_buffer_bytes=30_000, receive_buffer_bytes=40_000) as listener,
        await connect(listener) as client,
    ):
        await client.ask(b"hello")
        (connection,) = listener._connections
        server_side = connection.socket
        # Linux grants twice what it is asked for, for its own book-keeping.
        assert server_side.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 60_000
        assert server_side.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 80_000


def congestion_control(of: socket.socket) -> str:
    name = of.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return name.rstrip(b"\0").decode()


@in_loop
async def test_connection_within_the_machine_is_not_paced_and_never_was() -> None:
    async with listening(echo) as listener, await connect(listener) as client:
        await client.ask(b"hello")
        (connection,) = listener._connections
        assert congestion_control(connection.socket) == "reno"
        # It began so: one that BBR has ever paced goes on being paced under any other.
        assert congestion_control(listener._socket) == "reno"


@in_loop
async def test_connection_over_a_network_is_sent_to_as_the_system_does() -> None:
    with socket.socket() as usual:
        name = congestion_control(usual)
    async with listening(echo) as listener, await connect(listener, "127.0.0.2") as client:
        await client.ask(b"hello")
        (connection,) = listener._connections
        assert congestion_control(connection.socket) == name
