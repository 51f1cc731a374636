"""Watches clusters, each in a thread of its own, and serves what it saw.

A cluster that does not answer keeps its thread busy and no other; its last snapshot is not served
any longer, so that an alert sees the gap, and the next cycle tries again.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path

from broker.admin.exposition import OPENMETRICS, TEXT, Family, exposition
from broker.admin.http_server import AdminHttpServer, Answer, HttpConfig, Query
from broker.errors import ApiError
from broker.net.client import Client, RequestTimedOut
from broker.net.failures import ConnectionFailed
from kctl.admin.connection import ask
from kctl.admin.probing import probe
from kctl.cli.errors import CliError
from kctl.cli.options import Session
from kctl.model.monitoring import ClusterSnapshot
from kctl.operations.monitoring.cycle import Observer, take_snapshot
from kctl.operations.monitoring.history import add_samples, samples_of
from kctl.operations.monitoring.probing import ProbeHistory
from kctl.views.monitor_metrics import Names, monitor_families


@dataclass(frozen=True)
class MonitorOptions:
    """Options of a run."""

    interval_s: float
    window_s: float
    names: Sequence[Names]
    history: Path | None = None
    keep_s: float = 7 * 86_400.0
    probe_topic: str | None = None
    """The topic of the end-to-end probe; None: no probe."""


@dataclass
class Watched:
    """One cluster and what was last seen of it. Written by its thread only."""

    name: str
    session: Session
    snapshot: ClusterSnapshot | None = None
    """None before the first cycle and after one that failed."""
    error: str | None = None
    probes: ProbeHistory = field(default_factory=ProbeHistory)
    seconds: float = 0.0
    """How long the last cycle took."""
    has_run: threading.Event = field(default_factory=threading.Event)
    """Set after the first cycle, however it ended."""


class Monitor:
    """All clusters of a run."""

    def __init__(
        self, watched: Sequence[Watched], options: MonitorOptions, note: Callable[[str], None]
    ) -> None:
        self.watched = watched
        self._options = options
        self._note = note
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._watch, args=(one,), name=one.name, daemon=True)
            for one in watched
        ]

    def start(self) -> None:
        """Begin to watch."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End after the current cycles; does not wait for clusters that do not answer."""
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=1.0)

    def _watch(self, one: Watched) -> None:
        observer = Observer(self._options.window_s)
        while not self._stop.is_set():
            began_s = time.monotonic()
            self._cycle(one, observer)
            one.seconds = time.monotonic() - began_s
            one.has_run.set()
            self._stop.wait(max(0.0, self._options.interval_s - one.seconds))

    def _cycle(self, one: Watched, observer: Observer) -> None:
        async def query(client: Client) -> ClusterSnapshot:
            snapshot = await take_snapshot(client, one.name)
            await self._probe(client, one)
            return replace(snapshot, probes=one.probes.partitions)

        try:
            one.snapshot = observer.observe(ask(one.session, query, partial=True))
            if self._options.history is not None:
                add_samples(self._options.history, samples_of(one.snapshot), self._options.keep_s)
            if one.error is not None:
                self._note(f"{one.name}: answers again")
            one.error = None
        except CliError as error:
            one.snapshot = None
            if one.error is None:  # once, until it answers again
                self._note(f"{one.name}: {error.message}")
            one.error = error.message

    async def _probe(self, client: Client, one: Watched) -> None:
        """Run the end-to-end probe; if it cannot run, that is reported once."""
        if self._options.probe_topic is None:
            return
        try:
            one.probes.add(await probe(client, self._options.probe_topic))
            one.probes.error = None
        except (ApiError, ConnectionFailed, RequestTimedOut) as error:
            if one.probes.error is None:
                self._note(f"{one.name}: cannot probe: {error}")
            one.probes.error = str(error)

    def families(self) -> list[Family]:
        """All series now."""
        present = [one.snapshot for one in self.watched]
        families = monitor_families([s for s in present if s is not None], self._options.names)
        up = Family("kctl_monitor_up", "1: the last cycle succeeded.", labels=("cluster",))
        cycle = Family("kctl_monitor_cycle_seconds", "Last cycle.", labels=("cluster",))
        for one in self.watched:
            if one.has_run.is_set():
                up.samples.append(((one.name,), int(one.error is None)))
                cycle.samples.append(((one.name,), one.seconds))
        return [up, cycle, *families]


def serve(monitor: Monitor, host: str, port: int) -> AdminHttpServer:
    """A started endpoint: /metrics and /livez; OSError if the address cannot be bound."""

    def metrics(query: Query, accept: str) -> Answer:
        is_open = "application/openmetrics-text" in accept
        body = exposition(monitor.families(), openmetrics=is_open)
        return Answer(HTTPStatus.OK, body, OPENMETRICS if is_open else TEXT)

    def livez(query: Query, accept: str) -> Answer:
        return Answer(HTTPStatus.OK, b"ok\n")

    server = AdminHttpServer(HttpConfig(host, port), {"/metrics": metrics, "/livez": livez})
    server.start()
    return server
