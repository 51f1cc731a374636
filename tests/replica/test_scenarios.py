"""Runs the scripts of tests/scenarios/replica-*.txt: commands, `----`, what happened.

    elect LEADER isr=1,2 [to=1,2]      a decision of the controller, sent to all brokers or to some
    append BROKER VALUE … [acks=all]   one batch of a producer
    fetch BROKER [times=N]             the broker's fetcher sends its next fetch request
    advance MS · timer                 time passes; the timer of all brokers runs
    accept · refuse                    the controller responds to AlterPartition
    die BROKER · return BROKER         UpdateMetadata without the broker, or with it again
    delete BROKER OFFSET               DeleteRecords
    state · log BROKER                 all replicas in one line each; the batches of one

There are three brokers with one partition. Logs, fetchers, fetch sessions and the fetch handler are
real; the test is the network and the controller. Lines that begin with `log` were logged meanwhile;
`ack` is the result of a produce request with acks=all, when its DelayedProduce has been completed.
`pytest --rewrite` writes what happens into the scripts: read the diff before you commit it.
"""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.clock import ManualClock
from broker.errors import ApiError, ErrorCode
from broker.replica.delayed_operations import DelayedProduce, RequiredOffset
from tests.log.support import texts_of
from tests.support.in_process_cluster import Gate, InProcessCluster, cluster

SCENARIOS = sorted((Path(__file__).parents[1] / "scenarios").glob("replica-*.txt"))
LAG_MS = 1000
SETTINGS = {
    "replica.fetch.wait.max.ms": "0",
    "replica.fetch.backoff.ms": "1",
    "replica.lag.time.max.ms": str(LAG_MS),
    "min.insync.replicas": "2",
}
LOGGED = ("state.change", "broker.replica.fetcher")
IGNORED = ("fetch failed", "fetch session ended")
"""Logged as often as a fetcher retries while its leader is away."""


def ids(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


class Script:
    """Runs commands on three brokers, and collects what happens."""

    def __init__(self, brokers: InProcessCluster, clock: ManualClock) -> None:
        self.brokers = brokers
        self.clock = clock
        self.out: list[str] = []
        self.produced: dict[str, tuple[RequiredOffset, DelayedProduce]] = {}
        brokers.controller_resumed.clear()
        brokers.gates |= {broker_id: Gate() for broker_id in brokers.brokers}

    async def run(self, line: str) -> None:
        name, *words = line.split()
        options = dict(word.split("=") for word in words if "=" in word)
        await getattr(self, f"do_{name}")(*(w for w in words if "=" not in w), **options)
        await self.settle()
        for values, (required, operation) in list(self.produced.items()):
            if operation.is_completed:
                code = required.partition.acks_reached(required.offset)
                self.out.append(f"ack {values}: {'timed out' if code is None else code.name}")
                del self.produced[values]

    async def settle(self) -> None:
        """Let tasks that were woken reach their next wait."""
        for _ in range(20):
            await asyncio.sleep(0)

    async def do_elect(self, leader: str, isr: str, to: str = "1,2,3") -> None:
        self.brokers.leader_epoch += 1
        self.brokers.partition_epoch += 1
        decision = self.brokers.decision(int(leader), ids(isr), (1, 2, 3))
        for broker_id in ids(to):
            await self.brokers.tell_metadata(broker_id, int(leader), ids(isr), (1, 2, 3))
        for broker_id in ids(to):
            await self.brokers[broker_id].requests.leader_and_isr(decision)

    async def do_append(self, broker_id: str, *values: str, acks: str = "1") -> None:
        broker = self.brokers[int(broker_id)]
        try:
            end = broker.append(*values, acks=-1 if acks == "all" else int(acks))
        except ApiError as error:
            self.out.append(f"append {' '.join(values)}: {error.code.name}")
            return
        if acks == "all":
            required = RequiredOffset(broker.partition, end)
            delayed = DelayedProduce([required], 60, broker.replicas.purgatory)
            self.produced[" ".join(values)] = required, delayed

    async def do_fetch(self, broker_id: str, times: str = "1") -> None:
        for _ in range(int(times)):
            if not await self.brokers.gates[int(broker_id)].step():
                self.out.append(f"broker {broker_id} does not fetch")
            await self.settle()

    async def do_advance(self, ms: str) -> None:
        self.clock.advance(int(ms))

    async def do_timer(self) -> None:
        for broker in self.brokers.brokers.values():
            broker.replicas.reevaluate_all()

    async def do_accept(self) -> None:
        await self._respond(ErrorCode.NONE)

    async def do_refuse(self) -> None:
        await self._respond(ErrorCode.INELIGIBLE_REPLICA)

    async def _respond(self, code: ErrorCode) -> None:
        self.brokers.isr_answer = code
        self.brokers.controller_resumed.set()
        await self.settle()
        self.brokers.controller_resumed.clear()

    async def do_die(self, broker_id: str) -> None:
        self.brokers.reachable.discard(int(broker_id))
        await self._tell_live_brokers()

    async def do_return(self, broker_id: str) -> None:
        self.brokers.reachable.add(int(broker_id))
        await self._tell_live_brokers()

    async def _tell_live_brokers(self) -> None:
        for broker_id in sorted(self.brokers.reachable):
            state = self.brokers[broker_id].partition.state
            await self.brokers.tell_metadata(broker_id, state.leader, state.isr, state.replicas)

    async def do_delete(self, broker_id: str, offset: str) -> None:
        low = self.brokers[int(broker_id)].partition
        low.delete_records(int(offset))
        self.out.append(f"low watermark {low.low_watermark}")

    async def do_state(self) -> None:
        for broker_id, broker in self.brokers.brokers.items():
            partition = broker.partition
            log, state = partition.log, partition.state
            role = "leader" if partition.is_leader else f"follower of {state.leader}"
            isr = f", ISR {list(state.isr)}" if partition.is_leader else ""
            start = f"start {log.log_start_offset}, " if log.log_start_offset else ""
            self.out.append(
                f"{broker_id}: {role} in epoch {state.leader_epoch}{isr}, {start}"
                f"log end {log.log_end_offset}, high watermark {log.high_watermark}"
            )

    async def do_log(self, broker_id: str) -> None:
        for segment in self.brokers[int(broker_id)].partition.log.segments:
            for _, found in segment.log.batches():
                values = " ".join(texts_of(found))
                header = found.header
                epoch = header.partition_leader_epoch
                self.out.append(f"{header.base_offset}: {values} (epoch {epoch})")


class Capture(logging.Handler):
    """Appends what is logged to the output of a script."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        self._script = script

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage().replace(" partition=orders-0", "")
        if not message.startswith(IGNORED):
            self._script.out.append(f"log {message}")


def steps(text: str) -> Iterator[tuple[str, list[str]]]:
    """(comments and commands as they stand, the commands) of each step."""
    for block in text.strip().split("\n\n"):
        head = block.split("\n----")[0]
        yield head, [line for line in head.splitlines() if not line.startswith("#")]


async def play(text: str, directory: Path) -> str:
    """The script again, with what happens now."""
    clock = ManualClock(LAG_MS * 10)
    played = []
    async with cluster(directory, 3, SETTINGS, clock) as brokers:
        script = Script(brokers, clock)
        capture = Capture(script)
        loggers = [logging.getLogger(name) for name in LOGGED]
        for logger in loggers:
            logger.addHandler(capture)
        try:
            for head, commands in steps(text):
                script.out = []
                for line in commands:
                    await script.run(line)
                played.append("\n".join([head, "----", *script.out]))
        finally:
            for logger in loggers:
                logger.removeHandler(capture)
    return "\n\n".join(played) + "\n"


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(
    path: Path, tmp_path: Path, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    for name in LOGGED:
        caplog.set_level(logging.INFO, name)
    expected = path.read_text(encoding="utf-8")
    played = asyncio.run(play(expected, tmp_path))
    if request.config.getoption("--rewrite"):
        path.write_text(played, encoding="utf-8")
    else:
        assert played == expected


def test_there_are_scenarios() -> None:
    assert SCENARIOS
