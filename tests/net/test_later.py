"""An answer that waits: given once, after everything it waits for."""

import asyncio

import pytest

from broker.net.connection import Answer, Peer
from broker.net.later import Later
from tests.net.support import connect, echo, framed, in_loop, listening, until


@in_loop
async def test_answer_is_made_only_when_what_it_waits_for_is_done() -> None:
    loop = asyncio.get_running_loop()
    done, given = loop.create_future(), []

    def answer() -> str:
        given.append(done.done())
        return "answer"

    waiting = asyncio.ensure_future(_await(Later(done, answer)))
    await asyncio.sleep(0)
    assert not given
    done.set_result(None)
    assert await waiting == "answer"
    assert given == [True]


@in_loop
async def test_answer_that_finds_something_else_to_wait_for_waits_again() -> None:
    loop = asyncio.get_running_loop()
    first, second = loop.create_future(), loop.create_future()
    waiting = asyncio.ensure_future(_await(Later(first, lambda: Later(second, lambda: "answer"))))
    first.set_result(None)
    await asyncio.sleep(0)
    assert not waiting.done()
    second.set_result(None)
    assert await waiting == "answer"


@in_loop
async def test_waiter_that_is_cancelled_cancels_what_it_waits_for() -> None:
    done = asyncio.get_running_loop().create_future()
    waiting = asyncio.ensure_future(_await(Later(done, lambda: "answer")))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert done.cancelled()


async def _await(later: Later[str]) -> str:
    return await later


@in_loop
async def test_connection_answers_when_all_waits_are_over_and_then_goes_on() -> None:
    loop = asyncio.get_running_loop()
    first, second = loop.create_future(), loop.create_future()

    def answer(frame: memoryview, peer: Peer) -> Answer | Later[Answer]:
        said = echo(frame, peer)
        return said if frame == b"next" else Later(first, lambda: Later(second, lambda: said))

    async with listening(answer) as listener, await connect(listener) as client:
        client.writer.write(framed(b"once") + framed(b"next"))
        loop.call_later(0.01, first.set_result, None)
        loop.call_later(0.02, second.set_result, None)
        assert await client.receive() == b"once"
        assert second.done()
        assert await client.receive() == b"next"


@in_loop
async def test_what_an_answer_waits_for_is_cancelled_when_we_close_the_connection() -> None:
    done = asyncio.get_running_loop().create_future()
    asked: list[bytes] = []

    def answer(frame: memoryview, peer: Peer) -> Later[Answer]:
        asked.append(bytes(frame))
        return Later(done, lambda: None)

    async with listening(answer) as listener, await connect(listener) as client:
        client.writer.write(framed(b"wait"))
        await until(lambda: bool(asked))
    assert done.cancelled()
