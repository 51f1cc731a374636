"""A full disk under the embedded store: requests fail with KAFKA_STORAGE_ERROR, nothing is lost."""

import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from broker.controller import active
from broker.controller.topic_admin import NewTopic
from broker.errors import ApiError, ErrorCode
from broker.metadata.store import Operation, Result, SetData
from broker.metadata.znodes.topics import TopicZnode
from broker.model import TopicPartition
from tests.controller.simulation import Simulation, simulation

_NO_LIMIT = 2**30


def _fill_disk(world: Simulation) -> None:
    """Let SQLite fail as on a full disk: its file may not grow any more."""
    database = world.store._database
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.execute("PRAGMA max_page_count = 1")  # means: the pages there are now


def _free_disk(world: Simulation) -> None:
    world.store._database.execute(f"PRAGMA max_page_count = {_NO_LIMIT}")


def _big(name: str) -> NewTopic:
    return NewTopic(name, 100, 1)


async def test_regression_requests_fail_with_kafka_storage_error_while_the_disk_is_full(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They were answered with UNKNOWN_SERVER_ERROR, and each logged three tracebacks."""
    async with simulation(tmp_path, brokers=1) as world:
        await world.controller.create_topic(_big("before"))
        _fill_disk(world)
        with caplog.at_level(logging.INFO):
            for name in ("first", "second"):
                with pytest.raises(ApiError) as failed:
                    await world.controller.create_topic(_big(name))
                assert failed.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        await world.settle()
        lines = [r for r in caplog.records if r.levelno >= logging.WARNING]
        assert [(r.levelname, "disk is full" in r.message) for r in lines] == [("ERROR", True)]
        assert not any(record.exc_info for record in caplog.records)
        _free_disk(world)
        await world.controller.create_topic(_big("after"))
        assert (await world.state("after", 99)).leader == 1


async def test_a_topic_that_was_half_created_is_led_when_there_is_space_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(active, "_RETRY_DELAY_S", 0.01)
    async with simulation(tmp_path, brokers=1) as world:
        await world.controller.create_topic(_big("before"))
        store, multi = world.store, world.store.multi
        topic_written = False

        async def fill_after_topic(operations: Sequence[Operation]) -> list[Result]:
            nonlocal topic_written
            results = await multi(operations)
            if any(o.path == TopicZnode.path("orders") for o in operations):
                topic_written = True
                _fill_disk(world)
            return results

        monkeypatch.setattr(store, "multi", fill_after_topic)
        with pytest.raises(ApiError) as failed:
            await world.controller.create_topic(_big("orders"))
        assert failed.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert topic_written
        _free_disk(world)
        await world.until(lambda: TopicPartition("orders", 99) in world.brokers[1].states)
        assert (await world.state("orders", 99)).leader == 1
        await world.controller.delete_topic("orders")


async def test_a_failed_write_leaves_memory_as_the_file_has_it(tmp_path: Path) -> None:
    async with simulation(tmp_path, brokers=1) as world:
        path = "/brokers"
        before = await world.store.get(path)
        _fill_disk(world)
        with pytest.raises(ApiError):
            await world.store.multi([SetData(path, b"x" * 100_000)])
        assert await world.store.get(path) == before
        _free_disk(world)
