"""Tasks of a TaskSet are kept, logged when they fail, and end with it."""

import asyncio
import gc

import pytest

from broker.errors import ApiError, ErrorCode
from broker.tasks import TaskSet


async def fail(error: Exception) -> None:
    await asyncio.sleep(0)
    raise error


def test_failed_task_is_logged_with_the_name_of_the_set(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        tasks = TaskSet("store groups")
        tasks.spawn(fail(KeyError("surprise")))
        await tasks.wait()

    asyncio.run(scenario())
    assert "background task failed task=store groups" in caplog.text
    assert "KeyError: 'surprise'" in caplog.text


def test_expected_and_awaited_failures_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        expecting = TaskSet("a", expects_api_errors=True)
        expecting.spawn(fail(ApiError(ErrorCode.NOT_COORDINATOR)))
        await expecting.wait()
        awaited = TaskSet("b", logs_failures=False)
        with pytest.raises(KeyError):
            await awaited.spawn(fail(KeyError("surprise")))

    asyncio.run(scenario())
    assert not caplog.records


def test_task_without_another_reference_survives_garbage_collection() -> None:
    async def scenario() -> None:
        tasks, may_end, ended = TaskSet("a"), asyncio.Event(), []

        async def work() -> None:
            await may_end.wait()
            ended.append(True)

        tasks.spawn(work())
        await asyncio.sleep(0)
        gc.collect()
        may_end.set()
        await tasks.wait()
        assert ended == [True]

    asyncio.run(scenario())


def test_cancel_waits_until_every_task_has_ended() -> None:
    async def scenario() -> None:
        tasks, ended = TaskSet("a"), []

        async def work() -> None:
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(0)
                ended.append(True)

        for _ in range(3):
            tasks.spawn(work())
        await asyncio.sleep(0)
        await tasks.cancel()
        assert ended == [True] * 3

    asyncio.run(scenario())
