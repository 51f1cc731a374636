"""Where requests wait: when they are called out, and that nobody is kept or forgotten."""

import asyncio
import gc
import weakref
from typing import Any

from broker.replica.purgatory import Purgatory, Waiter
from tests.net.support import in_loop, until


def soon() -> float:
    """A deadline that no test reaches."""
    return asyncio.get_running_loop().time() + 60


class CalledOut(list[Waiter]):
    """Waiters whose wait is over, in the order in which they were called out."""

    def wait_in(self, purgatory: Purgatory, deadline_s: float | None = None) -> Waiter:
        waiter = purgatory.wait_until(soon() if deadline_s is None else deadline_s)
        waiter.add_done_callback(self.append)
        return waiter


@in_loop
async def test_those_a_request_lets_go_are_called_out_when_it_is_complete() -> None:
    purgatory, called_out = Purgatory(), CalledOut()
    first, second = called_out.wait_in(purgatory), called_out.wait_in(purgatory)
    purgatory.collect()
    second.let_go()
    first.let_go()
    second.let_go()
    assert not called_out
    purgatory.complete()
    assert called_out == [second, first]
    await asyncio.sleep(0)
    assert len(called_out) == 2
    assert not first.cancelled()


@in_loop
async def test_outside_of_requests_the_next_turn_calls_out() -> None:
    purgatory, called_out = Purgatory(), CalledOut()
    waiter = called_out.wait_in(purgatory)
    waiter.let_go()
    assert not called_out
    await asyncio.sleep(0)
    assert called_out == [waiter]


@in_loop
async def test_request_that_lets_many_go_is_not_kept_by_all_of_them() -> None:
    purgatory, called_out = Purgatory(), CalledOut()
    waiters = [called_out.wait_in(purgatory) for _ in range(50)]
    purgatory.collect()
    for waiter in waiters:
        waiter.let_go()
    purgatory.complete()
    assert 0 < len(called_out) < 10
    for _ in waiters:
        await asyncio.sleep(0)
    assert called_out == waiters


@in_loop
async def test_time_is_up_for_each_at_its_deadline_or_a_little_later() -> None:
    purgatory, called_out = Purgatory(), CalledOut()
    loop = asyncio.get_running_loop()
    late: list[float] = []
    for delay_s in (0.0, 0.01, 0.013, 0.05):
        deadline_s = loop.time() + delay_s
        called_out.wait_in(purgatory, deadline_s).add_done_callback(
            lambda _, at=deadline_s: late.append(loop.time() - at)
        )
    await until(lambda: len(late) == 4)
    assert min(late) >= 0


@in_loop
async def test_who_was_let_go_or_given_up_is_not_called_again_when_time_is_up() -> None:
    purgatory, called_out = Purgatory(), CalledOut()
    deadline_s = asyncio.get_running_loop().time() + 0.01
    let_go, given_up, last = (called_out.wait_in(purgatory, deadline_s) for _ in range(3))
    let_go.let_go()
    given_up.cancel()
    await until(lambda: last in called_out)
    assert called_out == [given_up, let_go, last]
    assert [waiter.cancelled() for waiter in called_out] == [True, False, False]


@in_loop
async def test_who_is_given_up_after_it_was_let_go_is_called_out_once() -> None:
    purgatory, called_out = Purgatory(), CalledOut()
    waiter = called_out.wait_in(purgatory)
    waiter.let_go()
    waiter.cancel()
    await asyncio.sleep(0)
    assert called_out == [waiter]
    assert waiter.cancelled()


@in_loop
async def test_callback_that_comes_too_late_is_called_all_the_same() -> None:
    purgatory, called_out = Purgatory(), CalledOut()
    purgatory.collect()
    waiter = purgatory.wait_until(soon())
    waiter.let_go()
    purgatory.complete()
    waiter.add_done_callback(called_out.append)
    await asyncio.sleep(0)
    assert called_out == [waiter]


@in_loop
async def test_task_can_wait_and_a_cancelled_one_gives_up() -> None:
    purgatory = Purgatory()

    async def wait(waiter: Waiter) -> Any:
        return await waiter

    waiters = [purgatory.wait_until(soon()) for _ in range(2)]
    tasks = [asyncio.create_task(wait(waiter)) for waiter in waiters]
    await asyncio.sleep(0)
    waiters[0].let_go()
    tasks[1].cancel()
    await asyncio.wait(tasks)
    assert tasks[0].result() is None
    assert tasks[1].cancelled()
    assert [waiter.cancelled() for waiter in waiters] == [False, True]


@in_loop
async def test_long_waits_that_were_short_leave_few_timers_behind() -> None:
    purgatory = Purgatory()
    deadline_s = asyncio.get_running_loop().time() + 24 * 3600
    for number in range(20_000):
        purgatory.wait_until(deadline_s + number / 100).cancel()
    assert len(purgatory._by_time) < 10


class Request:
    """As a handler keeps it: it holds its waiter, which holds a callback of its own."""

    def __init__(self, purgatory: Purgatory) -> None:
        self.waiter = purgatory.wait_until(soon())
        self.waiter.add_done_callback(self.done)

    def done(self, _: Waiter) -> None:
        pass


@in_loop
async def test_regression_request_that_is_over_leaves_nothing_to_the_garbage_collector() -> None:
    purgatory = Purgatory()
    requests = [Request(purgatory), Request(purgatory)]
    left = [weakref.ref(request) for request in requests]
    requests[0].waiter.let_go()
    requests[1].waiter.cancel()
    gc.disable()
    try:
        del requests
        await asyncio.sleep(0)
        assert [request() for request in left] == [None, None]
    finally:
        gc.enable()
