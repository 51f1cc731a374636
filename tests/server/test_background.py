"""Work that comes round ends before the broker closes what it works on."""

import asyncio
import threading

from broker.server.background import Background


def test_stop_waits_for_the_round_that_a_thread_is_in() -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may_end.wait(10)
        ended.set()

    async def scenario() -> None:
        background = Background()
        background.every(0.001, work)
        await asyncio.to_thread(begun.wait, 10)
        stopping = asyncio.create_task(background.stop())
        await asyncio.sleep(0)
        assert not stopping.done()
        may_end.set()
        await stopping
        assert ended.is_set()

    asyncio.run(scenario())
