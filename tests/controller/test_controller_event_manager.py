"""The controller's events: one at a time, in order."""

import asyncio

import pytest

from broker.controller.controller_event_manager import ControllerEventManager
from broker.errors import ApiError, ErrorCode


async def test_events_run_one_after_the_other(caplog: pytest.LogCaptureFixture) -> None:
    queue, seen = ControllerEventManager(), []

    async def event(name: str) -> str:
        seen.append(f"{name} begins")
        await asyncio.sleep(0)
        seen.append(f"{name} ends")
        return name

    async def failing() -> None:
        raise ValueError("an event without a caller")

    queue.put("a", lambda: event("a"))
    queue.put("broken", failing)
    queue.start()
    assert await queue.call("b", lambda: event("b")) == "b"
    assert seen == ["a begins", "a ends", "b begins", "b ends"]
    assert "event=broken" in caplog.text
    await queue.stop()


async def test_event_of_the_same_name_is_queued_once_until_it_begins() -> None:
    queue, count = ControllerEventManager(), 0

    async def event() -> None:
        nonlocal count
        count += 1
        if count == 1:
            queue.put("again", event)  # the first has begun, so that this one is queued

    for _ in range(5):
        queue.put("again", event)
    queue.start()
    await queue.call("after", event)
    await queue.call("after", event)
    assert count == 4
    await queue.stop()


async def test_callers_get_the_error_of_their_event_or_not_controller() -> None:
    queue = ControllerEventManager()
    queue.start()

    async def failing() -> None:
        raise ApiError(ErrorCode.INVALID_REQUEST)

    async def endless() -> None:
        await asyncio.Event().wait()

    with pytest.raises(ApiError) as refused:
        await queue.call("failing", failing)
    assert refused.value.code == ErrorCode.INVALID_REQUEST
    waiting = [asyncio.create_task(queue.call("endless", endless)) for _ in range(2)]
    await asyncio.sleep(0)
    await queue.stop()
    waiting.append(asyncio.create_task(queue.call("late", endless)))
    for outcome in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(outcome, ApiError)
        assert outcome.code == ErrorCode.NOT_CONTROLLER
