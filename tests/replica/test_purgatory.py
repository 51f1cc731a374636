"""The purgatory: when operations run, when they expire, and that none is run twice or kept."""

import asyncio
import gc
import weakref
from functools import partial
from typing import Any

from broker.replica.purgatory import DelayedOperation, Purgatory
from tests.net.support import in_loop, until


def far() -> float:
    """A deadline that no test reaches."""
    return asyncio.get_running_loop().time() + 60


class Ran(list[DelayedOperation]):
    """Operations whose callbacks have run, in that order."""

    def delay_in(self, purgatory: Purgatory, deadline_s: float | None = None) -> DelayedOperation:
        operation = DelayedOperation(purgatory, far() if deadline_s is None else deadline_s)
        operation.add_done_callback(self.append)
        return operation


@in_loop
async def test_operations_completed_by_a_request_run_when_it_has_been_handled() -> None:
    purgatory, ran = Purgatory(), Ran()
    first, second = ran.delay_in(purgatory), ran.delay_in(purgatory)
    purgatory.action_queue.hold()
    second.force_complete()
    first.force_complete()
    second.force_complete()
    assert not ran
    purgatory.action_queue.try_complete_actions()
    assert ran == [second, first]
    await asyncio.sleep(0)
    assert len(ran) == 2
    assert not first.cancelled()


@in_loop
async def test_outside_of_requests_operations_run_in_the_next_iteration() -> None:
    purgatory, ran = Purgatory(), Ran()
    operation = ran.delay_in(purgatory)
    operation.force_complete()
    assert not ran
    await asyncio.sleep(0)
    assert ran == [operation]


@in_loop
async def test_request_that_completes_many_operations_does_not_wait_for_all_of_them() -> None:
    purgatory, ran = Purgatory(), Ran()
    operations = [ran.delay_in(purgatory) for _ in range(50)]
    purgatory.action_queue.hold()
    for operation in operations:
        operation.force_complete()
    purgatory.action_queue.try_complete_actions()
    assert 0 < len(ran) < 10
    for _ in operations:
        await asyncio.sleep(0)
    assert ran == operations


@in_loop
async def test_operations_expire_at_their_deadline_or_a_little_later() -> None:
    purgatory, ran = Purgatory(), Ran()
    loop = asyncio.get_running_loop()
    late: list[float] = []

    def record(deadline_s: float, _: DelayedOperation) -> None:
        late.append(loop.time() - deadline_s)

    for delay_s in (0.0, 0.01, 0.013, 0.05):
        deadline_s = loop.time() + delay_s
        ran.delay_in(purgatory, deadline_s).add_done_callback(partial(record, deadline_s))
    await until(lambda: len(late) == 4)
    assert min(late) >= 0


@in_loop
async def test_completed_and_cancelled_operations_do_not_run_again_at_their_deadline() -> None:
    purgatory, ran = Purgatory(), Ran()
    deadline_s = asyncio.get_running_loop().time() + 0.01
    completed, cancelled, last = (ran.delay_in(purgatory, deadline_s) for _ in range(3))
    completed.force_complete()
    cancelled.cancel()
    await until(lambda: last in ran)
    assert ran == [cancelled, completed, last]
    assert [operation.cancelled() for operation in ran] == [True, False, False]


@in_loop
async def test_operation_cancelled_after_its_completion_runs_once() -> None:
    purgatory, ran = Purgatory(), Ran()
    operation = ran.delay_in(purgatory)
    operation.force_complete()
    operation.cancel()
    await asyncio.sleep(0)
    assert ran == [operation]
    assert operation.cancelled()


@in_loop
async def test_callback_added_after_the_run_is_called() -> None:
    purgatory, ran = Purgatory(), Ran()
    purgatory.action_queue.hold()
    operation = DelayedOperation(purgatory, far())
    operation.force_complete()
    purgatory.action_queue.try_complete_actions()
    operation.add_done_callback(ran.append)
    await asyncio.sleep(0)
    assert ran == [operation]


@in_loop
async def test_task_can_await_an_operation_and_cancels_it_when_cancelled() -> None:
    purgatory = Purgatory()

    async def wait(operation: DelayedOperation) -> Any:
        return await operation

    operations = [DelayedOperation(purgatory, far()) for _ in range(2)]
    tasks = [asyncio.create_task(wait(operation)) for operation in operations]
    await asyncio.sleep(0)
    operations[0].force_complete()
    tasks[1].cancel()
    await asyncio.wait(tasks)
    assert tasks[0].result() is None
    assert tasks[1].cancelled()
    assert [operation.cancelled() for operation in operations] == [False, True]


@in_loop
async def test_long_deadlines_of_short_waits_leave_few_timers() -> None:
    purgatory = Purgatory()
    deadline_s = asyncio.get_running_loop().time() + 24 * 3600
    for number in range(20_000):
        DelayedOperation(purgatory, deadline_s + number / 100).cancel()
    assert len(purgatory._by_deadline) < 10


class Request:
    """As a handler keeps it: it refers to its operation, which refers to its callback."""

    def __init__(self, purgatory: Purgatory) -> None:
        self.operation = DelayedOperation(purgatory, far())
        self.operation.add_done_callback(self.done)

    def done(self, _: DelayedOperation) -> None:
        pass


@in_loop
async def test_regression_finished_operation_leaves_no_reference_cycle() -> None:
    purgatory = Purgatory()
    requests = [Request(purgatory), Request(purgatory)]
    left = [weakref.ref(request) for request in requests]
    requests[0].operation.force_complete()
    requests[1].operation.cancel()
    gc.disable()
    try:
        del requests
        await asyncio.sleep(0)
        assert [request() for request in left] == [None, None]
    finally:
        gc.enable()
