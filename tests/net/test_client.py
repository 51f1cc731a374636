"""The client of a cluster: bootstrap, routing, retries, and requests that are never repeated."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition
from broker.net.client import (
    DEFAULT_PORT,
    READ_ONLY,
    TRANSACTION,
    Client,
    NoBrokerAvailable,
    RequestTimedOut,
    parse_bootstrap,
)
from broker.net.failures import ConnectionFailed
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from broker.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from broker.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from broker.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from broker.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from broker.protocol.messages.metadata import MetadataRequest
from tests.net.scripted_broker import NEWEST, cluster_of, hang_up, once_set, running
from tests.net.support import in_loop
from tests.support.processes import free_port

PARTITION = TopicPartition("orders", 0)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Records the attempts and makes their backoff short."""
    noted: list[int] = []

    def pause_s(attempts: int) -> float:
        noted.append(attempts)
        return 0.001

    monkeypatch.setattr("broker.net.client._backoff_s", pause_s)
    return noted


def created(*codes: ErrorCode) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[CreatableTopicResult(name=f"t{n}", error_code=c) for n, c in enumerate(codes)]
    )


def offsets(code: ErrorCode = ErrorCode.NONE) -> ListOffsetsResponse:
    partition = ListOffsetsPartitionResponse(partition_index=0, error_code=code, offset=5)
    return ListOffsetsResponse(
        topics=[ListOffsetsTopicResponse(name="orders", partitions=[partition])]
    )


def one_after_the_other(*answers: Any) -> Callable[[Any], Any]:
    """A script that gives each response once and repeats the last; callables are called."""
    left = list(answers)

    def answer(request: Any) -> Any:
        next_one = left.pop(0) if len(left) > 1 else left[0]
        return next_one(request) if callable(next_one) else next_one

    return answer


@in_loop
async def test_unreachable_bootstrap_address_is_skipped() -> None:
    async with running() as broker:
        for _ in range(8):  # the order is left to chance
            servers = [f"127.0.0.1:{free_port()}", broker.address]
            async with Client(servers) as client:
                assert (await client.send(MetadataRequest())).cluster_id == "scripted"


@in_loop
async def test_error_without_a_reachable_broker_has_a_reason_for_each() -> None:
    servers = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    async with Client(servers) as client:
        with pytest.raises(NoBrokerAvailable) as raised:
            await client.send(MetadataRequest())
    for server in servers:
        assert f"{server}: Connection refused" in str(raised.value)


@in_loop
async def test_regression_concurrent_first_requests_share_one_connection() -> None:
    async with running() as broker, Client(broker.address) as client:
        await asyncio.gather(*(client.send(MetadataRequest()) for _ in range(10)))
        assert broker.listener.num_connections == 1


@in_loop
async def test_request_is_sent_to_the_controller() -> None:
    async with running() as other, running() as controller:
        for broker in (other, controller):
            broker.scripts[ApiKey.METADATA] = lambda _: cluster_of(
                other, controller, controller_id=1
            )
        controller.scripts[ApiKey.CREATE_TOPICS] = lambda _: created(ErrorCode.NONE)
        async with Client(other.address) as client:
            await client.send_to_controller(CreateTopicsRequest())
        assert (other.count(ApiKey.CREATE_TOPICS), controller.count(ApiKey.CREATE_TOPICS)) == (0, 1)


@in_loop
async def test_not_controller_refreshes_metadata_and_finds_the_new_controller(
    pauses: list[int],
) -> None:
    async with running() as old, running() as new:
        old.scripts[ApiKey.METADATA] = one_after_the_other(
            lambda _: cluster_of(old, new, controller_id=0),
            lambda _: cluster_of(old, new, controller_id=0),  # not heard of it yet
            lambda _: cluster_of(old, new, controller_id=1),
        )
        old.scripts[ApiKey.CREATE_TOPICS] = lambda _: created(ErrorCode.NOT_CONTROLLER)
        new.scripts[ApiKey.CREATE_TOPICS] = lambda _: created(ErrorCode.NONE)
        async with Client(old.address) as client:
            response = await client.send_to_controller(CreateTopicsRequest())
        assert response == created(ErrorCode.NONE)
        assert (old.count(ApiKey.CREATE_TOPICS), new.count(ApiKey.CREATE_TOPICS)) == (2, 1)
    assert pauses == [1, 2]


@in_loop
async def test_request_waits_until_the_cluster_has_a_controller() -> None:
    async with running({ApiKey.CREATE_TOPICS: lambda _: created(ErrorCode.NONE)}) as broker:
        broker.scripts[ApiKey.METADATA] = one_after_the_other(
            lambda _: cluster_of(broker, controller_id=-1), lambda _: cluster_of(broker)
        )
        async with Client(broker.address) as client:
            assert await client.send_to_controller(CreateTopicsRequest())


@in_loop
async def test_new_leader_is_found_after_it_moved() -> None:
    async with running() as old, running() as new:
        old.scripts[ApiKey.METADATA] = one_after_the_other(
            lambda _: cluster_of(old, new, leaders={"orders": [0]}),
            lambda _: cluster_of(old, new, leaders={"orders": [-1]}),
            lambda _: cluster_of(old, new, leaders={"orders": [1]}),
        )
        moved = offsets(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        old.scripts[ApiKey.LIST_OFFSETS] = lambda _: moved
        new.scripts[ApiKey.LIST_OFFSETS] = lambda _: offsets()
        async with Client(old.address) as client:
            assert await client.send_to_leader(PARTITION, ListOffsetsRequest()) == offsets()
        assert (old.count(ApiKey.LIST_OFFSETS), new.count(ApiKey.LIST_OFFSETS)) == (1, 1)


@pytest.mark.parametrize("key_type", [0, TRANSACTION])
@in_loop
async def test_coordinator_is_retried_while_it_loads(key_type: int, pauses: list[int]) -> None:
    lookups: list[FindCoordinatorRequest] = []

    def find(request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        lookups.append(request)
        if len(lookups) == 1:
            return FindCoordinatorResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return FindCoordinatorResponse(node_id=1)

    async with running({ApiKey.FIND_COORDINATOR: find}) as other, running() as coordinator:
        other.scripts[ApiKey.METADATA] = lambda _: cluster_of(other, coordinator)
        coordinator.scripts[ApiKey.HEARTBEAT] = one_after_the_other(
            HeartbeatResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
            HeartbeatResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
            HeartbeatResponse(),
        )
        async with Client(other.address) as client:
            request = HeartbeatRequest(group_id="readers")
            assert await client.send_to_coordinator("readers", request, key_type)
        assert coordinator.count(ApiKey.HEARTBEAT) == 3
    assert {(lookup.key, lookup.key_type) for lookup in lookups} == {("readers", key_type)}
    assert pauses == [1, 2, 3]


@in_loop
async def test_final_error_of_find_coordinator_is_an_api_error() -> None:
    refused = FindCoordinatorResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    async with (
        running({ApiKey.FIND_COORDINATOR: lambda _: refused}) as broker,
        Client(broker.address) as client,
    ):
        with pytest.raises(ApiError) as raised:
            await client.send_to_coordinator("readers", HeartbeatRequest())
    assert raised.value.code is ErrorCode.GROUP_AUTHORIZATION_FAILED


@in_loop
async def test_partly_retriable_response_is_returned_to_the_caller() -> None:
    mixed = created(ErrorCode.NONE, ErrorCode.NOT_CONTROLLER)
    async with running({ApiKey.CREATE_TOPICS: lambda _: mixed}) as broker:
        async with Client(broker.address) as client:
            assert await client.send_to_controller(CreateTopicsRequest()) == mixed
        assert broker.count(ApiKey.CREATE_TOPICS) == 1


@in_loop
async def test_other_errors_are_returned_to_the_caller() -> None:
    failed = created(ErrorCode.TOPIC_ALREADY_EXISTS)
    async with (
        running({ApiKey.CREATE_TOPICS: lambda _: failed}) as broker,
        Client(broker.address) as client,
    ):
        assert await client.send_to_controller(CreateTopicsRequest()) == failed


@in_loop
async def test_regression_metadata_with_a_leaderless_partition_is_not_retried() -> None:
    async with running() as broker:
        broker.scripts[ApiKey.METADATA] = lambda _: cluster_of(broker, leaders={"orders": [-1]})
        async with Client(broker.address) as client:
            await client.refresh_metadata(["orders"])
            assert client.cluster.leaders == {PARTITION: -1}
        assert broker.count(ApiKey.METADATA) == 1


@in_loop
async def test_request_that_may_have_been_executed_is_not_sent_again() -> None:
    async with running({ApiKey.CREATE_TOPICS: hang_up}) as broker, Client(broker.address) as client:
        with pytest.raises(ConnectionFailed):
            await client.send_to_controller(CreateTopicsRequest())
        assert broker.count(ApiKey.CREATE_TOPICS) == 1
        assert (await client.send(MetadataRequest())).cluster_id == "scripted"


@in_loop
async def test_read_only_request_is_sent_again_over_a_new_connection() -> None:
    script = one_after_the_other(hang_up, hang_up, ListGroupsResponse())
    async with running({ApiKey.LIST_GROUPS: script}) as broker, Client(broker.address) as client:
        assert await client.send(ListGroupsRequest()) == ListGroupsResponse()
        assert broker.num_connections == 3


@in_loop
async def test_request_fails_after_too_many_lost_connections() -> None:
    async with running({ApiKey.LIST_GROUPS: hang_up}) as broker, Client(broker.address) as client:
        with pytest.raises(ConnectionFailed):
            await client.send(ListGroupsRequest())
        assert broker.count(ApiKey.LIST_GROUPS) == 4


def test_no_api_that_changes_something_is_read_only() -> None:
    changing = ("CREATE", "DELETE", "ALTER", "PRODUCE", "COMMIT", "JOIN", "ADD", "ELECT", "TXN")
    assert not [
        api.name for api in READ_ONLY if any(word in api.name.split("_") for word in changing)
    ]


@in_loop
async def test_timeout_names_the_api_and_the_next_request_succeeds() -> None:
    release = asyncio.Event()
    groups = once_set(
        release, lambda: ListGroupsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    )
    async with (
        running({ApiKey.LIST_GROUPS: groups}) as broker,
        Client(broker.address, request_timeout_s=0.1) as client,
    ):
        with pytest.raises(RequestTimedOut, match=r"^no response to ListGroups within 0\.1 s"):
            await client.send(ListGroupsRequest())
        client.request_timeout_s = 10
        release.set()
        assert (await client.send(MetadataRequest())).cluster_id == "scripted"


@in_loop
async def test_timeout_names_the_last_error() -> None:
    loading = HeartbeatResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    scripts = {
        ApiKey.FIND_COORDINATOR: lambda _: FindCoordinatorResponse(node_id=0),
        ApiKey.HEARTBEAT: lambda _: loading,
    }
    async with running(scripts) as broker, Client(broker.address, request_timeout_s=0.2) as client:
        with pytest.raises(RequestTimedOut, match=r"last error: COORDINATOR_LOAD_IN_PROGRESS$"):
            await client.send_to_coordinator("readers", HeartbeatRequest())


@in_loop
async def test_restarted_broker_is_connected_again() -> None:
    async with running() as first:
        port = first.listener.address.port
        client = Client(first.address)
        await client.refresh_metadata()
        assert await client.versions_of(0)
    with pytest.raises(ConnectionFailed):
        await client.send(MetadataRequest())
    async with running(port=port, versions={**NEWEST, ApiKey.METADATA: (0, 5)}) as second, client:
        await client.send_to(0, MetadataRequest())
        assert (await client.versions_of(0))[ApiKey.METADATA] == (0, 5)
        assert second.count(ApiKey.METADATA) == 1


@in_loop
async def test_regression_broker_restarted_at_another_address_is_found() -> None:
    async with running() as seed:
        async with running() as before:
            seed.scripts[ApiKey.METADATA] = lambda _: cluster_of(seed, before)
            client = Client(seed.address)
            await client.refresh_metadata()
            assert await client.versions_of(1)
        async with running({ApiKey.LIST_GROUPS: lambda _: ListGroupsResponse()}) as after, client:
            seed.scripts[ApiKey.METADATA] = lambda _: cluster_of(seed, after)
            assert await client.send_to(1, ListGroupsRequest()) == ListGroupsResponse()


@in_loop
async def test_error_names_a_broker_that_is_not_in_the_cluster() -> None:
    async with running() as broker, Client(broker.address) as client:
        with pytest.raises(ConnectionFailed, match="broker 5 is not in the cluster"):
            await client.send_to(5, MetadataRequest())


@in_loop
async def test_partitions_are_grouped_by_leader_with_one_metadata_request() -> None:
    async with running() as broker:
        broker.scripts[ApiKey.METADATA] = lambda _: cluster_of(
            broker, leaders={"orders": [0, 7, -1]}
        )
        wanted = [TopicPartition("orders", index) for index in range(4)]
        async with Client(broker.address) as client:
            by_leader = await client.leaders_of(wanted)
            assert await client.leaders_of(wanted[:2]) == {0: wanted[:1], 7: wanted[1:2]}
        assert by_leader == {0: wanted[:1], 7: wanted[1:2], -1: wanted[2:]}
        assert broker.count(ApiKey.METADATA) == 1


@in_loop
async def test_nested_retriable_errors_are_retried() -> None:
    answers = [
        DescribeGroupsResponse(groups=[DescribedGroup(error_code=code)])
        for code in (ErrorCode.NOT_COORDINATOR, ErrorCode.NONE)
    ]
    scripts = {
        ApiKey.FIND_COORDINATOR: lambda _: FindCoordinatorResponse(node_id=0),
        ApiKey.DESCRIBE_GROUPS: one_after_the_other(*answers),
    }
    async with running(scripts) as broker, Client(broker.address) as client:
        request = DescribeGroupsRequest(groups=["readers"])
        assert await client.send_to_coordinator("readers", request) == answers[1]
        assert broker.count(ApiKey.FIND_COORDINATOR) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:1,b:2", [("a", 1), ("b", 2)]),
        (" a , b:2, ", [("a", DEFAULT_PORT), ("b", 2)]),
        ("[::1]:9093", [("::1", 9093)]),
        ("[::1]", [("::1", DEFAULT_PORT)]),
        (["a:1", "b:2"], [("a", 1), ("b", 2)]),
    ],
)
def test_bootstrap_servers_are_parsed(
    text: str | list[str], expected: list[tuple[str, int]]
) -> None:
    assert [(node.host, node.port) for node in parse_bootstrap(text)] == expected


@pytest.mark.parametrize(
    "text", ["", " , ", "a:b", "a:0", "a:65536", ":9092", "a:²", "::1", "a:-1"]
)
def test_malformed_bootstrap_servers_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected host:port"):
        parse_bootstrap(text)


@pytest.mark.parametrize("text", ["a..b:9092", "\x9b:9092", "x" * 64 + ":9092"])
def test_host_names_that_cannot_be_looked_up_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid host name"):
        parse_bootstrap(text)
