"""Requests with very many entries do not stall other clients while their handler runs."""

import asyncio
import gc
import time
from types import SimpleNamespace
from typing import Any, cast

from broker.api.handlers import find_coordinator
from broker.api.slices import SMALL, in_slices
from broker.errors import ErrorCode
from broker.java_strings import partition_for
from broker.metadata_cache import MetadataCache
from broker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.config.support import ConfigApis
from tests.support.wire import WireClient

MANY = 50 * SMALL


def test_results_are_in_order_and_other_tasks_run_meanwhile() -> None:
    async def scenario() -> None:
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(others())

        def slow(entry: int) -> int:
            time.sleep(0.0002)
            return -entry

        assert await in_slices(slow, range(1000)) == [-entry for entry in range(1000)]
        task.cancel()
        assert turns > 10

    asyncio.run(scenario())


def test_many_keys_are_looked_up_in_slices_and_create_the_topic_once() -> None:
    requested: list[str] = []
    services = SimpleNamespace(
        authorizer=None,
        metadata=MetadataCache("cluster"),
        groups=SimpleNamespace(partition_for=lambda key: partition_for(key, 50)),
        auto_creation=SimpleNamespace(request_creation=requested.append),
    )
    context: Any = SimpleNamespace(
        api_version=4, services=services, peer=SimpleNamespace(listener_name="PLAINTEXT")
    )
    request = FindCoordinatorRequest(coordinator_keys=[f"group-{n}" for n in range(MANY)])

    async def scenario() -> Any:
        return await cast(Any, find_coordinator.handle(request, context))

    response = asyncio.run(scenario())
    assert [one.key for one in response.coordinators] == request.coordinator_keys
    assert len(requested) <= 50  # once per partition


def test_regression_configs_requested_thousands_of_times_are_described_once() -> None:
    """20,000 times the same broker took more than 100 s."""
    broker = DescribeConfigsResource(
        resource_type=4, resource_name="1", configuration_keys=["log.dirs"]
    )
    request = DescribeConfigsRequest(resources=[broker] * 20_000)
    started = time.monotonic()
    response = asyncio.run(ConfigApis({}).send(request))
    assert time.monotonic() - started < 20
    assert {tuple(config.name for config in one.configs) for one in response.results} == {
        ("log.dirs",)
    }


def test_many_keys_get_a_response_on_the_wire(wire: WireClient, group: str) -> None:
    keys = [f"group-{n}" for n in range(2 * SMALL)]
    found = wire.ask(FindCoordinatorRequest(coordinator_keys=keys), 4).coordinators
    assert [one.key for one in found] == keys
    assert {one.node_id for one in found} == {1}


def test_many_topic_names_get_a_response_each(wire: WireClient, topic: str) -> None:
    names = [f"unknown-{n}" for n in range(2 * SMALL)]
    topics = [MetadataRequestTopic(name=name) for name in [*names, topic, "a/b"]]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    found = {one.name: one for one in wire.ask(request, 9).topics}
    assert found.keys() == {*names, topic, "a/b"}
    assert len(found[topic].partitions) == 2
    assert found["a/b"].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    codes = {found[name].error_code for name in names}
    assert codes == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_young_objects_do_not_pile_up_while_old_ones_are_freed() -> None:
    """A collection of all of them at once would be a pause of hundreds of milliseconds."""
    count = 200_000

    async def convert_all() -> int:
        old = [[number] for number in range(count)]
        gc.collect()

        def convert(_: int) -> list[int]:
            return [old.pop()[0]]

        work = asyncio.create_task(in_slices(convert, range(count)))
        most = 0
        while not work.done():
            most = max(most, len(gc.get_objects(0)) + len(gc.get_objects(1)))
            await asyncio.sleep(0)
        return most

    assert asyncio.run(convert_all()) < count // 4
