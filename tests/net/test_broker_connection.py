"""A connection to one broker: negotiation, pipelining, matching of responses, errors."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from broker.errors import ErrorCode
from broker.net.broker_connection import (
    BrokerConnection,
    Node,
    UnsupportedVersion,
    open_connection,
)
from broker.net.connection import Peer, ResponseParts
from broker.net.failures import ConnectionFailed
from broker.protocol.api_keys import ApiKey
from broker.protocol.errors import EncodeError
from broker.protocol.messages.describe_cluster import DescribeClusterRequest
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from broker.protocol.messages.metadata import MetadataRequest
from tests.net.scripted_broker import (
    NEWEST,
    ScriptedBroker,
    cluster_of,
    hang_up,
    once_set,
    running,
)
from tests.net.support import RawClient, framed, in_loop, listening, until
from tests.support.processes import free_port


@asynccontextmanager
async def connected(broker: ScriptedBroker) -> AsyncIterator[BrokerConnection]:
    node = Node(7, "127.0.0.1", broker.listener.address.port)
    connection = await open_connection(node, "test", timeout_s=5)
    try:
        yield connection
    finally:
        connection.close()


@pytest.mark.parametrize("highest", [0, 2, 3, 4])
@in_loop
async def test_api_versions_is_repeated_in_a_version_of_the_older_broker(highest: int) -> None:
    versions = {ApiKey.API_VERSIONS: (0, highest), ApiKey.METADATA: (0, 4)}
    async with running(versions=versions) as broker, connected(broker) as connection:
        await connection.send(MetadataRequest(topics=None))
        assert connection.versions == {18: (0, highest), 3: (0, 4)}
    first = [] if highest == 4 else [(ApiKey.API_VERSIONS, 4)]
    assert broker.asked == [*first, (ApiKey.API_VERSIONS, highest), (ApiKey.METADATA, 4)]


@in_loop
async def test_broker_that_omits_its_versions_from_the_error_gets_version_0() -> None:
    """Before KIP-511 the response to an unknown version listed no APIs."""
    asked = []

    def answer(frame: memoryview, peer: Peer) -> ResponseParts:
        asked.append(int.from_bytes(frame[2:4], "big"))
        code = 0 if asked[-1] == 0 else ErrorCode.UNSUPPORTED_VERSION
        body = bytes(frame[4:8]) + code.to_bytes(2, "big") + bytes(4)
        return [bytearray(framed(body))]

    async with listening(answer) as listener:
        node = Node(-1, "127.0.0.1", listener.address.port)
        (await open_connection(node, "test", timeout_s=5)).close()
    assert asked == [4, 0]


@pytest.mark.parametrize(
    ("theirs", "offer"),
    [({}, "does not serve it"), ({ApiKey.LIST_GROUPS: (6, 9)}, "serves versions 6 to 9")],
)
@in_loop
async def test_error_without_a_common_version_names_both_ranges(
    theirs: Mapping[ApiKey, tuple[int, int]], offer: str
) -> None:
    versions = {ApiKey.API_VERSIONS: (0, 4), **theirs}
    async with running(versions=versions) as broker, connected(broker) as connection:
        with pytest.raises(
            UnsupportedVersion, match=rf"ListGroups needs versions 0 to \d, but the broker {offer}"
        ):
            await connection.send(ListGroupsRequest())


@in_loop
async def test_requests_are_pipelined() -> None:
    received: list[bytes] = []
    all_there = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = RawClient(reader, writer)
        versions = await peer.receive()
        rows = b"\x03" + b"\0\x10\0\0\0\0\0" + b"\0\x12\0\0\0\4\0"
        writer.write(framed(versions[4:8] + b"\0\0" + rows + bytes(5)))
        while len(received) < 3:
            received.append(await peer.receive())
        all_there.set()
        writer.write(b"".join(framed(request[4:8] + bytes(6)) for request in received))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connection = await open_connection(Node(-1, "127.0.0.1", port), "test", timeout_s=5)
    answers = [asyncio.create_task(connection.send(ListGroupsRequest())) for _ in range(3)]
    await all_there.wait()
    assert await asyncio.gather(*answers) == [ListGroupsResponse()] * 3
    assert len({request[4:8] for request in received}) == 3  # each with a correlation id of its own
    connection.close()
    server.close()
    await server.wait_closed()


@in_loop
async def test_response_to_an_abandoned_request_is_not_matched_with_the_next() -> None:
    release = asyncio.Event()
    late = once_set(release, lambda: ListGroupsResponse(error_code=15))
    async with running({ApiKey.LIST_GROUPS: late}) as broker, connected(broker) as connection:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await connection.send(ListGroupsRequest())
        next_one = asyncio.create_task(connection.send(MetadataRequest(topics=[])))
        release.set()
        assert await next_one == cluster_of(broker)


@in_loop
async def test_lost_connection_fails_pending_and_later_requests() -> None:
    async with running({ApiKey.LIST_GROUPS: hang_up}) as broker, connected(broker) as connection:
        waiting = [
            asyncio.create_task(connection.send(request))
            for request in (ListGroupsRequest(), MetadataRequest())
        ]
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert not connection.is_open
        assert [type(outcome) for outcome in outcomes] == [ConnectionFailed] * 2
        with pytest.raises(ConnectionFailed, match=r"127\.0\.0\.1:\d+ \(id 7\): "):
            await connection.send(ListGroupsRequest())


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (b"\0\0\0\x63" + bytes(6), "correlation id 99, expected 2"),
        (b"\0\0\0\2\0\0\x7f\xff\xff\xff", "ListGroupsResponse v0: groups at byte 6"),
        (b"\0\0", "ResponseHeader v0: correlation_id at byte 0"),
    ],
)
@in_loop
async def test_malformed_response_closes_the_connection_with_a_reason(
    response: bytes, reason: str
) -> None:
    def answer(frame: memoryview, peer: Peer) -> ResponseParts:
        if bytes(frame[:2]) == b"\0\x12":
            rows = b"\x03" + b"\0\x10\0\0\0\0\0" + b"\0\x12\0\0\0\4\0"
            return [bytearray(framed(bytes(frame[4:8]) + b"\0\0" + rows + bytes(5)))]
        return [bytearray(framed(response))]

    async with listening(answer) as listener:
        node = Node(-1, "127.0.0.1", listener.address.port)
        connection = await open_connection(node, "test", timeout_s=5)
        told = f"invalid response: {re.escape(reason)}"
        with pytest.raises(ConnectionFailed, match=told):
            await connection.send(ListGroupsRequest())
        await until(lambda: listener.num_connections == 0)


@in_loop
async def test_connection_is_usable_after_a_request_that_cannot_be_encoded() -> None:
    versions = {**NEWEST, ApiKey.FIND_COORDINATOR: (0, 0)}
    async with running(versions=versions) as broker, connected(broker) as connection:
        with pytest.raises(EncodeError, match="FindCoordinatorRequest v0: key_type"):
            await connection.send(FindCoordinatorRequest(key="x", key_type=1))
        assert (await connection.send(MetadataRequest())).cluster_id == "scripted"


@in_loop
async def test_refused_connection_names_address_and_reason() -> None:
    port = free_port()
    with pytest.raises(ConnectionFailed, match=f"^127.0.0.1:{port}: Connection refused$"):
        await open_connection(Node(-1, "127.0.0.1", port), "test", timeout_s=5)


@in_loop
async def test_error_names_an_unknown_host() -> None:
    with pytest.raises(ConnectionFailed, match=r"^no\.such\.host\.invalid:9092: "):
        await open_connection(Node(-1, "no.such.host.invalid", 9092), "test", timeout_s=5)


@in_loop
async def test_connecting_to_a_listener_that_never_responds_times_out() -> None:
    never = asyncio.Event()

    async def silence(frame: memoryview) -> ResponseParts:
        await never.wait()
        return None

    async with listening(lambda frame, peer: silence(frame)) as listener:
        node = Node(-1, "127.0.0.1", listener.address.port)
        with pytest.raises(ConnectionFailed, match=r"no response within 0\.05 s"):
            await open_connection(node, "test", timeout_s=0.05)


@in_loop
async def test_error_of_api_versions_names_the_broker() -> None:
    def refuse(frame: memoryview, peer: Peer) -> ResponseParts:
        refusal = ErrorCode.INVALID_REQUEST.to_bytes(2, "big")
        return [bytearray(framed(bytes(frame[4:8]) + refusal + b"\1" + bytes(5)))]

    async with listening(refuse) as listener:
        node = Node(-1, "127.0.0.1", listener.address.port)
        with pytest.raises(ConnectionFailed, match=r"INVALID_REQUEST$"):
            await open_connection(node, "test", timeout_s=5)


@in_loop
async def test_closing_fails_requests_in_flight() -> None:
    never = asyncio.Event()
    hanging = once_set(never, ListGroupsResponse)
    async with running({ApiKey.LIST_GROUPS: hanging}) as broker, connected(broker) as connection:
        waiting = asyncio.create_task(connection.send(ListGroupsRequest()))
        await until(lambda: broker.count(ApiKey.LIST_GROUPS) == 1)
        connection.close()
        with pytest.raises(ConnectionFailed, match="closed locally"):
            await waiting
        with pytest.raises(ConnectionFailed, match="closed locally"):
            await connection.send(DescribeClusterRequest())
