"""Deferred responses: computed once, after their completion."""

import asyncio

import pytest

from broker.net.connection import Peer, ResponseParts
from broker.net.deferred import DeferredResponse
from tests.net.support import connect, echo, framed, in_loop, listening, until


@in_loop
async def test_response_is_computed_only_after_completion() -> None:
    loop = asyncio.get_running_loop()
    done, given = loop.create_future(), []

    def answer() -> str:
        given.append(done.done())
        return "answer"

    waiting = asyncio.ensure_future(_await(DeferredResponse(done, answer)))
    await asyncio.sleep(0)
    assert not given
    done.set_result(None)
    assert await waiting == "answer"
    assert given == [True]


@in_loop
async def test_deferred_response_can_wait_for_something_else_again() -> None:
    loop = asyncio.get_running_loop()
    first, second = loop.create_future(), loop.create_future()
    waiting = asyncio.ensure_future(
        _await(DeferredResponse(first, lambda: DeferredResponse(second, lambda: "answer")))
    )
    first.set_result(None)
    await asyncio.sleep(0)
    assert not waiting.done()
    second.set_result(None)
    assert await waiting == "answer"


@in_loop
async def test_cancelled_task_cancels_the_completion() -> None:
    done = asyncio.get_running_loop().create_future()
    waiting = asyncio.ensure_future(_await(DeferredResponse(done, lambda: "answer")))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert done.cancelled()


async def _await(later: DeferredResponse[str]) -> str:
    return await later


@in_loop
async def test_connection_responds_after_all_waits_and_continues() -> None:
    loop = asyncio.get_running_loop()
    first, second = loop.create_future(), loop.create_future()

    def answer(frame: memoryview, peer: Peer) -> ResponseParts | DeferredResponse[ResponseParts]:
        said = echo(frame, peer)
        return (
            said
            if bytes(frame) == b"next"
            else DeferredResponse(first, lambda: DeferredResponse(second, lambda: said))
        )

    async with listening(answer) as listener, await connect(listener) as client:
        client.writer.write(framed(b"once") + framed(b"next"))
        loop.call_later(0.01, first.set_result, None)
        loop.call_later(0.02, second.set_result, None)
        assert await client.receive() == b"once"
        assert second.done()
        assert await client.receive() == b"next"


@in_loop
async def test_closing_the_connection_cancels_the_completion() -> None:
    done = asyncio.get_running_loop().create_future()
    asked: list[bytes] = []

    def answer(frame: memoryview, peer: Peer) -> DeferredResponse[ResponseParts]:
        asked.append(bytes(frame))
        return DeferredResponse(done, lambda: None)

    async with listening(answer) as listener, await connect(listener) as client:
        client.writer.write(framed(b"wait"))
        await until(lambda: bool(asked))
    assert done.cancelled()
