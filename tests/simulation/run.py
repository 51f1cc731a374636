"""One run of the simulation: start a cluster and clients, inject faults, heal, check."""

import asyncio
import contextlib
import gc
import hashlib
import itertools
import json
import logging
import os
import random
import shutil
import sys
import tempfile
import traceback
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from broker.model import TopicPartition
from broker.net.client import Client
from broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.simulation.checks import (
    Unhealthy,
    check_commits,
    check_health,
    check_progress,
    check_records,
    raise_failures,
)
from tests.simulation.clients import (
    RETRIABLE,
    GroupConsumer,
    IdempotentProducer,
    SimulatedClient,
    TransactionalProducer,
    Violation,
)
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.faults import Faults
from tests.simulation.invariants import History
from tests.simulation.loop import Process, SimulatedLoop, current_process
from tests.simulation.topic_churn import TopicRecreator

logger = logging.getLogger(__name__)

FAULT_S = 60.0
RECOVERY_S = 60.0
"""Virtual seconds within which everything must be healthy after the last fault."""
MAX_WAIT_S = 3.0
"""Longest acknowledgement at a clean restart."""
_STUCK_S = 3.3
"""How long the controller does not reach ZooKeeper: too short for its session to expire."""
TOPIC = "orders"
PARTITIONS = 3
GROUP = "readers"
TOPIC_CHURN_FROM = 10_000
"""Seeds from here on delete and create topics as well. (The smaller ones keep their meaning.)"""
LATE_ISR_FROM = 20_000
"""Seeds from here on may also delay the controller's answer to a shrinking ISR."""


@dataclass
class Result:
    """What a run found; `problem` is None if everything held."""

    seed: int
    problem: str | None = None
    digest: str = ""
    """Of everything logged: equal for equal seeds."""
    log: list[str] = field(default_factory=list)
    acknowledged: int = 0


def simulate(seed: int, *, fault_s: float = FAULT_S) -> Result:
    """Run one seed; never raises for what the simulated brokers do wrong."""
    rng = random.Random(seed)
    directory = _directory(seed)
    result = Result(seed)
    loop = SimulatedLoop(random.Random(rng.getrandbits(64)))
    handler = _LogHandler(loop, result)
    with _reproducible(rng), _logging_to(handler):
        try:
            loop.run_until_complete(_Run(loop, rng, directory, result, fault_s).run())
        except (Violation, Unhealthy) as error:
            result.problem = f"{type(error).__name__}: {error}"
        except Exception:  # noqa: BLE001  # of the simulation itself
            result.problem = traceback.format_exc()
        if result.problem is None and handler.errors:
            result.problem = f"logged as an error: {handler.errors[0]}"
    result.digest = handler.digest.hexdigest()
    gc.collect()
    shutil.rmtree(directory, ignore_errors=True)
    return result


class _Run:
    """The course of one run."""

    def __init__(
        self,
        loop: SimulatedLoop,
        rng: random.Random,
        directory: Path,
        result: Result,
        fault_s: float,
    ) -> None:
        self._loop = loop
        self._rng = rng
        self._result = result
        self._fault_s = fault_s
        self._has_topic_churn = result.seed >= TOPIC_CHURN_FROM
        self._cluster = SimulatedCluster(loop, rng, directory)
        self._history = History(self._cluster, TOPIC)
        loop.on_instant = self._history.check
        self._observer = Process("observer")
        self._supervised = False
        self._supervisor: asyncio.Task[None]

    async def run(self) -> None:
        """Start, break, heal, check."""
        cluster = self._cluster
        cluster.syncs_every_record = self._rng.random() < 0.2
        if cluster.syncs_every_record:
            cluster.settings["log.flush.interval.messages"] = "1"
        scenarios = [self._faults_under_load, self._faults_then_rest, self._roll]
        if self._result.seed >= LATE_ISR_FROM:
            scenarios.append(self._late_isr)
        scenario = self._rng.choice(scenarios)
        logger.info("scenario %s syncs=%s", scenario.__name__, cluster.syncs_every_record)
        cluster.start()
        await self._observe(self._create_topic())
        # One producer alone at a restart: the next record of another would hide a stall.
        clients = self._clients()[: 1 if scenario == self._roll else None]
        self._history.clients = clients
        for client in clients:
            client.start()
        await asyncio.sleep(2)
        await scenario(clients)
        raise_failures(clients)
        await self._until_healthy([])
        await self._observe(self._check(clients))

    async def _faults_under_load(self, clients: list[SimulatedClient]) -> None:
        """Clients work all the time, and must make progress when the faults have ended."""
        await Faults(self._cluster, self._rng).run(self._fault_s)
        self._supervise()
        before = {client.name: client.completed for client in clients}
        await self._until_healthy(clients)
        raise_failures(clients)
        check_progress(clients, before)
        await self._finish(clients)

    async def _faults_then_rest(self, clients: list[SimulatedClient]) -> None:
        """Clients finish before the faults end: no new record may be needed to recover."""
        faults = asyncio.ensure_future(Faults(self._cluster, self._rng).run(self._fault_s))
        await asyncio.sleep(self._fault_s * self._rng.uniform(0.3, 0.9))
        for client in clients:
            client.is_finishing = True
        await faults
        self._supervise()
        await self._finish(clients)

    async def _roll(self, clients: list[SimulatedClient]) -> None:
        """Stop and start every broker cleanly; no acknowledgement may take longer than 3 s."""
        self._supervise()
        await self._until_healthy(clients)
        for client in clients:
            if isinstance(client, IdempotentProducer):
                client.longest_wait_s = 0.0
        for broker in self._cluster.brokers.values():
            self._supervised = False
            logger.info("roll %s", broker.name)
            broker.stop()
            while broker.is_running:  # noqa: ASYNC110  # virtual time
                await asyncio.sleep(0.05)
            await asyncio.sleep(self._rng.uniform(0.1, 12.0))
            broker.start()
            self._supervised = True
            await self._until_healthy(clients)
            for client in clients:
                if isinstance(client, IdempotentProducer) and client.longest_wait_s > MAX_WAIT_S:
                    waited_s = client.longest_wait_s
                    raise Unhealthy(f"{client.name} waited {waited_s:.1f} s at a clean restart")
        await self._finish(clients)

    async def _late_isr(self, clients: list[SimulatedClient]) -> None:
        """A follower catches up while the ISR without it waits for the controller's ZooKeeper.

        One leader and the follower are cut off from each other until the leader proposes to remove
        the follower, whose session lives on. Clients finish meanwhile: no new record may be needed
        for the follower to return.
        """
        self._supervise()
        await self._until_healthy(clients)
        network, tree = self._cluster.network, self._cluster.zookeeper.tree
        controller = int(json.loads(tree.nodes["/controller"].data or b"")["brokerid"])
        others = [b.name for b in self._cluster.brokers.values() if b.id != controller]
        leader, follower = self._rng.sample(others, 2)
        stuck = (f"broker-{controller}", "zookeeper")
        logger.info("late ISR: leader=%s follower=%s controller=%s", leader, follower, stuck[0])
        network.cut_pair(leader, follower)
        stuck_until_s = self._rng.uniform(7.8, 8.8)
        call_later = self._loop.call_later
        call_later(stuck_until_s - _STUCK_S, network.cut_pair, *stuck)
        call_later(stuck_until_s, network.join_pair, *stuck)
        call_later(self._rng.uniform(5.5, 8.5), network.join_pair, leader, follower)
        await asyncio.sleep(1)
        await self._finish(clients)

    async def _finish(self, clients: list[SimulatedClient]) -> None:
        for client in clients:
            client.is_finishing = True
        try:
            async with asyncio.timeout(RECOVERY_S):
                for client in clients:
                    await client.is_done.wait()
        except TimeoutError:
            stuck = [client.name for client in clients if not client.is_done.is_set()]
            raise Unhealthy(f"cannot finish: {', '.join(stuck)}") from None

    def _supervise(self) -> None:
        """Start brokers again that end by themselves, as an operator's supervisor does."""
        self._supervised = True
        self._supervisor = self._loop.create_task(
            self._restart_dead(), context=self._cluster.context
        )

    async def _restart_dead(self) -> None:
        while True:
            await asyncio.sleep(1)
            if self._supervised:
                self._cluster.restart_dead()

    def _clients(self) -> list[SimulatedClient]:
        partitions = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
        commits: list[tuple[TopicPartition, int]] = []
        cluster = self._cluster
        churn = [TopicRecreator(cluster, "recreator")] if self._has_topic_churn else []
        return [
            IdempotentProducer(cluster, "producer-a", partitions),
            IdempotentProducer(cluster, "producer-b", partitions[:2]),
            TransactionalProducer(cluster, "transactional-a", partitions),
            TransactionalProducer(cluster, "transactional-b", partitions),
            GroupConsumer(cluster, "consumer-a", GROUP, partitions, commits),
            GroupConsumer(cluster, "consumer-b", GROUP, partitions, commits),
            *churn,
        ]

    async def _create_topic(self) -> None:
        topic = CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=3)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
        async with self._client() as client:
            for _ in range(100):
                try:
                    (made,) = (await client.send_to_controller(request)).topics
                    if made.error_code in (0, 36):
                        return
                except RETRIABLE:
                    pass
                await asyncio.sleep(0.5)
        raise Unhealthy("the topic could not be created")

    async def _until_healthy(self, clients: list[SimulatedClient]) -> None:
        """Wait until everything is in order; Unhealthy with what is not, when time is up.

        While clients work, high watermarks and transactions are in motion and not looked at.
        """
        deadline_s = self._loop.time() + RECOVERY_S
        before = {client.name: client.completed for client in clients}
        while True:
            try:
                await self._observe(self._check_health(is_quiet=not clients))
                check_progress(clients, before)
                return
            except (Unhealthy, *RETRIABLE) as error:
                raise_failures(clients)
                if self._loop.time() > deadline_s:
                    raise Unhealthy(f"after {RECOVERY_S:g} s: {error}") from error
            await asyncio.sleep(0.25)

    async def _check_health(self, *, is_quiet: bool) -> None:
        groups = [GROUP, "group-of-transactional-a", "group-of-transactional-b"]
        async with self._client() as client:
            await check_health(self._cluster, client, groups, is_quiet=is_quiet)

    async def _check(self, clients: list[SimulatedClient]) -> None:
        async with self._client() as client:
            await check_records(client, clients)
            consumers = [each for each in clients if isinstance(each, GroupConsumer)]
            if consumers:
                await check_commits(client, GROUP, consumers)
        for each in clients:
            if isinstance(each, IdempotentProducer):
                self._result.acknowledged += sum(batch.offset is not None for batch in each.sent)

    def _client(self) -> Client:
        return Client(self._cluster.bootstrap_servers, client_id="observer", request_timeout_s=5)

    async def _observe(self, coroutine: Any) -> None:
        await self._loop.create_task(coroutine, context=self._observer.context)


class _LogHandler(logging.Handler):
    """Keeps everything logged with virtual time and process; tracebacks count as problems."""

    def __init__(self, loop: SimulatedLoop, result: Result) -> None:
        super().__init__(logging.DEBUG)
        self._loop = loop
        self._result = result
        self.digest = hashlib.sha256()
        self.errors: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one line."""
        process = current_process()
        line = f"{self._loop.time():9.3f} {process or '-'} {record.levelname} {record.getMessage()}"
        line += f" ({record.name})"
        if record.exc_info:
            line += "\n" + logging.Formatter().formatException(record.exc_info)
            if process is None or process.is_alive:
                self.errors.append(line)
        self.digest.update(line.split("\n")[0].encode())
        self._result.log.append(line)


@contextlib.contextmanager
def _logging_to(handler: logging.Handler) -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


@contextlib.contextmanager
def _reproducible(rng: random.Random) -> Iterator[None]:
    """Take random bytes from the seed, and run the work of thread pools in order."""
    source = random.Random(rng.getrandbits(64))
    random.seed(rng.getrandbits(64))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", source.randbytes)
        for name, module in list(sys.modules.items()):
            if name.startswith("broker.") and hasattr(module, "ThreadPoolExecutor"):
                patch.setattr(module, "ThreadPoolExecutor", _InlineExecutor)
        yield


class _InlineExecutor(Executor):
    """A thread pool without threads."""

    def __init__(self, *_: object) -> None:
        super().__init__()

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run the work now."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001  # as a thread pool does
            future.set_exception(error)
        return future


def _directory(seed: int) -> Path:
    """A new directory, in memory if possible; the same name for each replay."""
    parent = Path("/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir())
    for number in itertools.count():
        directory = parent / f"kctl-simulation-{seed:08}-{number}"
        with contextlib.suppress(FileExistsError):  # another run of this seed has not ended
            directory.mkdir()
            return directory
    raise AssertionError
