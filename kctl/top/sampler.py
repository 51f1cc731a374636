"""Reads a cluster at intervals, in a thread of its own, so that no broker can freeze the screen."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from broker.errors import ApiError
from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.broker_counters import MetricsEndpoint, read_counters
from kctl.admin.broker_queries import BrokerUnavailable
from kctl.admin.connection import ask
from kctl.admin.log_offsets import replica_ends
from kctl.admin.reassignments import list_reassignments
from kctl.cli.errors import CliError
from kctl.cli.options import Session
from kctl.model.monitoring import ClusterSnapshot
from kctl.model.reassignments import Reassignments
from kctl.model.top import Reading, TopSample
from kctl.operations.monitoring.cycle import Observer, take_snapshot
from kctl.plans.traffic import TrafficHistory

MAX_REPLICAS: Final = 20_000
"""Above this many replicas their log end offsets are not read: that would be most of the work."""
_HISTORY: Final = 40
_METRICS_TIMEOUT_S: Final = 2.0


@dataclass
class Source:
    """What is read, and how often."""

    session: Session
    name: str
    interval_s: float
    window_s: float
    endpoints: Sequence[MetricsEndpoint] = ()
    token: str | None = None


@dataclass
class Collector:
    """Takes samples one after the other; keeps what rates and trends need."""

    source: Source
    _observer: Observer = field(init=False)
    _traffic: TrafficHistory = field(default_factory=TrafficHistory)
    _lags: dict[str, deque[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._observer = Observer(self.source.window_s)

    def sample(self) -> TopSample:
        """The cluster now; CliError if no broker answers."""
        counters, problems = read_counters(
            self.source.endpoints, _METRICS_TIMEOUT_S, self.source.token
        )
        reading = ask(self.source.session, self._read, partial=True)
        self.source.session.unanswered.clear()  # they are part of the sample
        snapshot = self._observer.observe(reading.snapshot)
        unanswered = [str(failure) for failure in snapshot.unanswered]
        reading = replace(
            reading,
            snapshot=snapshot,
            counters=counters,
            problems=[*unanswered, *reading.problems, *problems],
        )
        return TopSample(reading, self._traffic.add(reading), self._lag_history(snapshot))

    async def _read(self, client: Client) -> Reading:
        snapshot = await take_snapshot(client, self.source.name)
        problems = []
        moving: Reassignments = {}
        try:
            moving = await list_reassignments(client)
        except (BrokerUnavailable, ApiError) as error:  # too old, or the controller hangs
            problems.append(f"reassignments are unknown: {error}")
        return Reading(
            snapshot, moving, {}, await _replica_ends(client, snapshot), problems=problems
        )

    def _lag_history(self, snapshot: ClusterSnapshot) -> dict[str, list[int]]:
        kept = {}
        for one in snapshot.groups:
            name = one.group.group_id
            values = self._lags.get(name, deque(maxlen=_HISTORY))
            values.append(one.total_lag)
            kept[name] = values
        self._lags = kept
        return {name: list(values) for name, values in kept.items()}


async def _replica_ends(
    client: Client, snapshot: ClusterSnapshot
) -> dict[tuple[TopicPartition, int], int]:
    """Log end offsets of the replicas on the brokers that are there."""
    alive = {broker.id for broker in snapshot.cluster.brokers}
    by_broker: dict[int, list[TopicPartition]] = {}
    for topic in snapshot.topics:
        for one in topic.partitions:
            for broker_id in alive.intersection(one.replicas):
                by_broker.setdefault(broker_id, []).append(TopicPartition(topic.name, one.id))
    if sum(map(len, by_broker.values())) > MAX_REPLICAS:
        return {}
    return await replica_ends(client, by_broker)


class Sampler:
    """Takes samples until it is stopped; calls back from its own thread."""

    def __init__(
        self,
        source: Source,
        on_sample: Callable[[TopSample], object],
        on_failure: Callable[[str], object],
    ) -> None:
        # A session of its own: closing that of the command would wait for a broker that hangs.
        self._source = replace(source, session=replace(source.session, connection=None))
        self._on_sample = on_sample
        self._on_failure = on_failure
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; does not wait for a cluster that does not answer."""
        self._stop.set()
        self._thread.join(timeout=0.5)

    def _run(self) -> None:
        collector = Collector(self._source)
        while not self._stop.is_set():
            began_s = time.monotonic()
            try:
                sample = collector.sample()
            except CliError as error:
                if not self._stop.is_set():
                    self._on_failure(error.message)
            else:
                if not self._stop.is_set():
                    self._on_sample(sample)
            spent_s = time.monotonic() - began_s
            self._stop.wait(max(0.1, self._source.interval_s - spent_s))
        self._source.session.close()
