"""Runs the scripts tests/scenarios/txn-*.txt: commands, `----`, output.

    init NAME [id=ID] [timeout=MS]     InitProducerId; ID is `app` by default
    bump NAME                          the same, with the producer id and epoch NAME has (KIP-360)
    claim NAME PRODUCER EPOCH          NAME acts as this producer
    add NAME TOPIC-PARTITION …         · verify NAME TOPIC-PARTITION … · commit NAME · abort NAME
    advance MS · sweep (time-outs) · expire
    fail ERROR … (the next appends) · hold · release (acknowledgements)
    refuse TOPIC-PARTITION ERROR … (the next markers) · delete TOPIC-PARTITION
    silence · answer (leaders)
    exhaust NAME                       as if NAME had used all epochs of its producer id but one
    restart · resign · elect · state [ID] · list [state=NAME] [longer=MS]

NAME is a producer; it keeps the producer id and epoch of its last response. The output of a step
lists what was appended, `log` for the transaction log and `marker` for partitions. `pytest
--rewrite` writes the current output into the scripts: read the diff before you commit it.
"""

import asyncio
from collections.abc import Awaitable, Iterator
from pathlib import Path

import pytest

from broker.errors import ApiError, ErrorCode
from broker.model import ProducerIdAndEpoch, TopicPartition
from broker.txn.config import TxnConfig
from broker.txn.coordinator import TransactionFilter
from broker.txn.records import build_transaction_batch
from broker.txn.transaction import TransactionMetadata
from tests.txn.support import NUM_PARTITIONS, START_MS, Bench, Stored, Written, settle

SCENARIOS = sorted((Path(__file__).parents[1] / "scenarios").glob("txn-*.txt"))


def partition(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))


def show(metadata: TransactionMetadata) -> str:
    partitions = " ".join(map(str, metadata.partitions))
    start_ms = metadata.txn_start_timestamp
    since = f" since {start_ms - START_MS}" if start_ms >= 0 else ""
    who = f"producer {metadata.producer_id} epoch {metadata.producer_epoch}"
    return f"{metadata.state.kafka_name} {who}{since} [{partitions}]"


class Producer:
    """The state of one producer of a script."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.transactional_id = "app"
        self.timeout_ms = 60_000
        self.identity = ProducerIdAndEpoch(-1, -1)


class Script:
    """Runs commands and collects their output."""

    def __init__(self, config: TxnConfig) -> None:
        self.bench = Bench(config)
        self.producers: dict[str, Producer] = {}
        self.requests: set[asyncio.Task[None]] = set()
        self.out: list[str] = []
        self.told = 0

    async def run(self, line: str) -> None:
        command, *words = line.split()
        positional = [word for word in words if "=" not in word]
        options = dict(word.split("=", 1) for word in words if "=" in word)
        await getattr(self, f"do_{command}")(*positional, **options)
        await settle()
        for event in self.bench.trace[self.told :]:
            self.tell(event)
        self.told = len(self.bench.trace)

    def tell(self, event: Stored | Written) -> None:
        if isinstance(event, Stored):
            what = "tombstone" if event.metadata is None else show(event.metadata)
            self.out.append(f"log {event.transactional_id} {what}")
        else:
            marker, where = event
            end = "COMMIT" if marker.commit else "ABORT"
            self.out.append(
                f"marker {where} {end} producer {marker.producer_id} "
                f"epoch {marker.producer_epoch} coordinator {marker.coordinator_epoch}"
            )

    def producer(self, name: str) -> Producer:
        return self.producers.setdefault(name, Producer(name))

    def ask(self, producer: Producer, what: str, request: Awaitable[str]) -> None:
        """Send a request; its response is printed when it arrives."""

        async def answer() -> None:
            try:
                text = await request
            except ApiError as error:
                text = error.code.name
            self.out.append(f"{producer.name} ← {what} {text}")

        task = asyncio.create_task(answer())
        self.requests.add(task)
        task.add_done_callback(self.requests.discard)

    # Producers

    async def do_init(self, name: str, **options: str) -> None:
        producer = self.producer(name)
        producer.transactional_id = options.get("id", producer.transactional_id)
        producer.timeout_ms = int(options.get("timeout", producer.timeout_ms))
        self.ask(producer, "init", self.init(producer, None))

    async def do_bump(self, name: str) -> None:
        producer = self.producer(name)
        self.ask(producer, "bump", self.init(producer, producer.identity))

    async def init(self, producer: Producer, expected: ProducerIdAndEpoch | None) -> str:
        producer.identity = await self.bench.coordinator.init_producer_id(
            producer.transactional_id, producer.timeout_ms, expected
        )
        return f"producer {producer.identity.producer_id} epoch {producer.identity.producer_epoch}"

    async def do_claim(self, name: str, producer_id: str, producer_epoch: str) -> None:
        self.producer(name).identity = ProducerIdAndEpoch(int(producer_id), int(producer_epoch))

    async def do_add(self, name: str, *partitions: str) -> None:
        producer = self.producer(name)
        work = self.bench.coordinator.add_partitions(
            producer.transactional_id, producer.identity, [partition(text) for text in partitions]
        )
        self.ask(producer, "add", self.ok(work))

    async def do_verify(self, name: str, *partitions: str) -> None:
        producer = self.producer(name)
        self.ask(producer, "verify", self.verify(producer, [partition(p) for p in partitions]))

    async def verify(self, producer: Producer, partitions: list[TopicPartition]) -> str:
        codes = self.bench.coordinator.verify_partitions(
            producer.transactional_id, producer.identity, partitions
        )
        return " ".join(f"{where}={code.name}" for where, code in codes.items())

    async def do_commit(self, name: str) -> None:
        self.end(name, "commit", commit=True)

    async def do_abort(self, name: str) -> None:
        self.end(name, "abort", commit=False)

    def end(self, name: str, what: str, *, commit: bool) -> None:
        producer = self.producer(name)
        work = self.bench.coordinator.end_transaction(
            producer.transactional_id, producer.identity, commit=commit
        )
        self.ask(producer, what, self.ok(work))

    async def ok(self, work: Awaitable[None]) -> str:
        await work
        return "ok"

    # Faults and time

    async def do_advance(self, ms: str) -> None:
        self.bench.clock.advance(int(ms))

    async def do_sweep(self) -> None:
        await self.bench.coordinator.abort_timed_out_transactions()

    async def do_expire(self) -> None:
        await self.bench.coordinator.remove_expired_transactional_ids()

    async def do_fail(self, *codes: str) -> None:
        self.bench.topic.failures = [ErrorCode[code] for code in codes]

    async def do_hold(self) -> None:
        self.bench.topic.acks.clear()

    async def do_release(self) -> None:
        self.bench.topic.acks.set()

    async def do_refuse(self, where: str, *codes: str) -> None:
        self.bench.markers.errors[partition(where)] = [ErrorCode[code] for code in codes]

    async def do_silence(self) -> None:
        self.bench.markers.open.clear()

    async def do_answer(self) -> None:
        self.bench.markers.open.set()

    async def do_delete(self, where: str) -> None:
        self.bench.markers.deleted.add(partition(where))

    async def do_exhaust(self, name: str) -> None:
        producer = self.producer(name)
        known = TransactionMetadata(
            producer.identity.producer_id, producer.timeout_ms, START_MS, producer_epoch=2**15 - 3
        )
        batch = build_transaction_batch(producer.transactional_id, known, START_MS)
        where = self.bench.coordinator.partition_for(producer.transactional_id)
        await self.bench.topic.append(where, batch)
        await self.bench.restart()

    async def do_restart(self) -> None:
        await self.bench.restart()

    async def do_resign(self) -> None:
        for number in range(NUM_PARTITIONS):
            self.bench.coordinator.on_resignation(number, self.bench.epoch)

    async def do_elect(self) -> None:
        await self.bench.elect()

    async def do_state(self, transactional_id: str = "app") -> None:
        try:
            known = self.bench.coordinator.describe_transaction(transactional_id)
            self.out.append(f"{transactional_id} is {show(known)}")
        except ApiError as error:
            self.out.append(f"{transactional_id} {error.code.name}")

    async def do_list(self, state: str = "", longer: str = "-1") -> None:
        wanted = TransactionFilter(frozenset(filter(None, [state])), frozenset(), int(longer))
        for found in self.bench.coordinator.list_transactions(wanted):
            self.out.append(
                f"{found.transactional_id} producer {found.producer_id} {found.state.kafka_name}"
            )


def steps(text: str) -> Iterator[tuple[str, list[str]]]:
    """The text (comments and commands) and the commands of each step."""
    for block in text.strip().split("\n\n"):
        head = block.split("\n----")[0]
        yield head, [line for line in head.splitlines() if not line.startswith("#")]


async def play(text: str) -> str:
    """The script with the current output."""
    script = Script(TxnConfig())
    await script.bench.start()
    played = []
    for head, commands in steps(text):
        script.out = []
        for line in commands:
            await script.run(line)
        played.append("\n".join([head, "----", *script.out]))
    await script.bench.coordinator.stop()
    assert not script.requests, "a request was never answered"
    return "\n\n".join(played) + "\n"


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path, request: pytest.FixtureRequest) -> None:
    expected = path.read_text(encoding="utf-8")
    played = asyncio.run(play(expected))
    if request.config.getoption("--rewrite"):
        path.write_text(played, encoding="utf-8")
    else:
        assert played == expected


def test_there_are_scenarios() -> None:
    assert SCENARIOS
