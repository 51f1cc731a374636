"""`kctl demo cluster`: a tour of replication, elections and reassignment on three brokers.

Commands run as separate processes, as a user would run them. Between them the tour waits for the
cluster to reach the state that the next command shows.
"""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kctl.admin.cluster import describe_cluster
from kctl.admin.connection import Answer, Query, ask
from kctl.admin.topics import find_topics
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.options import Session
from kctl.cli.output import Output
from kctl.dev.brokers import dev_brokers, stop_all
from kctl.dev.zookeeper import dev_zookeeper
from kctl.model.topics import Partition

WAIT_S: Final = 60.0
_POLL_S: Final = 0.2


@dataclass(frozen=True)
class Wait:
    """A state of partition 0 of a topic to wait for; None is any."""

    topic: str
    leader: int | None = None
    isr: frozenset[int] | None = None
    is_offline: bool = False

    def is_reached(self, partition: Partition) -> bool:
        """Whether the partition is in this state."""
        if self.is_offline:
            return partition.leader is None
        return (
            partition.leader is not None
            and self.leader in (None, partition.leader)
            and self.isr in (None, frozenset(partition.isr))
        )


@dataclass(frozen=True)
class Background:
    """A command that runs until the end of its stop."""

    line: str


@dataclass(frozen=True)
class KillController:
    """Kill the broker that is the controller, wait for another one, and start it again."""


Step = str | Wait | Background | KillController


@dataclass(frozen=True)
class Stop:
    """One stop of the tour: what it shows, and its steps."""

    title: str
    steps: tuple[Step, ...]


ALL: Final = frozenset({1, 2, 3})
TOUR: Final = (
    Stop(
        "Three brokers, one of which is the controller",
        ("kctl brokers list", "kctl cluster describe -z {zookeeper}"),
    ),
    Stop(
        "A replicated partition: every replica has a log end (LEO) and a high watermark (HW)",
        (
            "kctl topics create ledger --replica-assignment 1:2:3 --config min.insync.replicas=2",
            Wait("ledger", isr=ALL),
            "kctl produce ledger {files}/first.txt",
            "kctl topics describe ledger",
            "kctl replicas list ledger",
        ),
    ),
    Stop(
        "A follower dies: the HW waits for it while it is in the ISR, and moves when it is out",
        (
            "kctl dev kill 3 --dir {state}",
            "kctl produce ledger {files}/second.txt --acks 1",
            "kctl replicas list ledger",
            Wait("ledger", isr=frozenset({1, 2})),
            "kctl replicas list ledger",
            "kctl dev start 3 --dir {state}",
            Wait("ledger", isr=ALL),
            "kctl replicas list ledger",
        ),
    ),
    Stop(
        "The leader dies: a follower of the ISR takes over, no acknowledged record is lost",
        (
            "kctl dev kill 1 --dir {state}",
            Wait("ledger", leader=2),
            "kctl topics describe ledger",
            "kctl consume ledger --exit",
            "kctl dev start 1 --dir {state}",
            Wait("ledger", isr=ALL),
            "kctl topics describe ledger",
            "kctl elect-leaders ledger --yes",
        ),
    ),
    Stop(
        "unclean.leader.election.enable=false: unavailable, but the record survives",
        (
            "kctl topics create safe --replica-assignment 2:3",
            Wait("safe", isr=frozenset({2, 3})),
            "kctl dev stop 3 --dir {state}",
            Wait("safe", isr=frozenset({2})),
            "kctl produce safe {files}/precious.txt",
            "kctl dev kill 2 --dir {state}",
            "kctl dev start 3 --dir {state}",
            Wait("safe", is_offline=True),
            "kctl topics describe safe",
            "kctl dev start 2 --dir {state}",
            Wait("safe", isr=frozenset({2, 3})),
            "kctl consume safe --exit",
        ),
    ),
    Stop(
        "unclean.leader.election.enable=true: available, but the record is lost",
        (
            "kctl topics create risky --replica-assignment 2:3"
            " --config unclean.leader.election.enable=true",
            Wait("risky", isr=frozenset({2, 3})),
            "kctl dev stop 3 --dir {state}",
            Wait("risky", isr=frozenset({2})),
            "kctl produce risky {files}/precious.txt",
            "kctl offsets risky",
            "kctl dev kill 2 --dir {state}",
            "kctl dev start 3 --dir {state}",
            Wait("risky", leader=3),
            "kctl topics describe risky",
            "kctl dev start 2 --dir {state}",
            Wait("risky", isr=frozenset({2, 3})),
            "kctl consume risky --exit",
            "kctl offsets risky",
        ),
    ),
    Stop(
        "The controller dies. With controller.election=fair brokers queue for its place",
        (
            "kctl zk tree /controller_candidates -z {zookeeper}",
            KillController(),
            "kctl cluster describe -z {zookeeper}",
            "kctl zk tree /controller_candidates -z {zookeeper}",
        ),
    ),
    Stop(
        "A consumer group rebalances when a member joins",
        (
            "kctl topics create clicks --partitions 4",
            Background("kctl consume clicks --group readers"),
            "kctl groups describe readers --members",
            Background("kctl consume clicks --group readers"),
            "kctl groups describe readers --members",
        ),
    ),
    Stop(
        "A fourth broker gets its share of the partitions, throttled, with progress",
        (
            "kctl perf produce clicks --num-records 20000 --record-size 1000",
            "kctl dev add --rack a --dir {state}",
            "kctl reassign plan clicks --add-brokers 4",
            "kctl reassign run clicks --add-brokers 4 --throttle 10MB --yes",
            "kctl topics describe clicks",
        ),
    ),
    Stop("The cluster is healthy again", ("kctl health",)),
)


class ClusterTour:
    """Runs the stops on a cluster in `directory`."""

    def __init__(self, out: Output, directory: Path) -> None:
        self._out = out
        self._directory = directory
        self._state = directory / "cluster"
        self._background: list[subprocess.Popen[bytes]] = []

    def run(self) -> None:
        """Start the cluster, run every stop, and stop the cluster in any case."""
        (self._directory / "first.txt").write_text("one\ntwo\nthree\n")
        (self._directory / "second.txt").write_text("four\n")
        (self._directory / "precious.txt").write_text("precious\n")
        try:
            self._title("Start three brokers and a ZooKeeper")
            self._kctl(
                "kctl dev up --brokers 3 --port 0 --racks a,b,c --dir {state}"
                " --set controller.election=fair --set auto.leader.rebalance.enable=false"
            )
            for stop in TOUR:
                self._title(stop.title)
                self._run_all(stop.steps)
        finally:
            self._end_background()
            stop_all(dev_brokers(self._state))
            dev_zookeeper(self._state).stop()

    def _run_all(self, steps: Sequence[Step]) -> None:
        for step in steps:
            match step:
                case str():
                    self._kctl(step)
                case Wait():
                    self._wait(step)
                case Background():
                    self._start(step.line)
                case KillController():
                    self._kill_controller()
        self._end_background()

    def _title(self, title: str) -> None:
        self._out.lines([""])
        self._out.heading(f"── {title}")

    def _kctl(self, line: str) -> None:
        placed = self._placed(line)
        self._out.lines(["", f"$ {placed}"])
        sys.stdout.flush()  # the command that follows writes to the same stdout
        status = subprocess.run(  # noqa: S603
            self._words(placed), env=self._environ(), stderr=subprocess.STDOUT
        ).returncode
        if status != ExitStatus.OK:
            self._out.lines([f"(exit status {status})"])

    def _start(self, line: str) -> None:
        self._out.lines(["", f"$ {self._placed(line)} &"])
        before = self._assigned()
        self._background.append(
            subprocess.Popen(  # noqa: S603
                self._words(line),
                env=self._environ(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
        self._until(lambda: self._assigned() > before, "the group has another member")

    def _end_background(self) -> None:
        for process in self._background:
            process.terminate()
        for process in self._background:
            process.wait()
        self._background.clear()

    @property
    def _servers(self) -> str:
        """The running brokers; each start of a broker may give it another port."""
        found = (one.address() for one in dev_brokers(self._state))
        return ",".join(address for address in found if address)

    def _placed(self, line: str) -> str:
        values = {"files": str(self._directory), "state": str(self._state)}
        if "{zookeeper}" in line:
            values["zookeeper"] = dev_zookeeper(self._state).address
        for name, value in values.items():
            line = line.replace(f"{{{name}}}", value)
        return line

    def _words(self, line: str) -> list[str]:
        return [sys.executable, "-m", "kctl", *shlex.split(line)[1:]]

    def _environ(self) -> dict[str, str]:
        own = {
            "KCTL_OUTPUT": "table",
            "KCTL_CONFIG": str(self._directory / "contexts.yaml"),
            "XDG_STATE_HOME": str(self._directory / "home"),  # rollback files
        }
        if servers := self._servers:
            own["KCTL_BOOTSTRAP_SERVERS"] = servers
        return {**os.environ, **own}

    # --- waiting -----------------------------------------------------------------------------

    def _wait(self, goal: Wait) -> None:
        def is_reached() -> bool:
            found = self._ask(lambda client: find_topics(client, [goal.topic]))
            return bool(found and found[0].partitions and goal.is_reached(found[0].partitions[0]))

        self._until(is_reached, str(goal))

    def _kill_controller(self) -> None:
        before = self._controller()
        self._kctl(f"kctl dev kill {before} --dir {{state}}")
        self._until(lambda: self._controller() not in (None, before), "there is another controller")
        self._kctl("kctl cluster describe -z {zookeeper}")
        self._kctl(f"kctl dev start {before} --dir {{state}}")
        for topic in ("ledger", "safe", "risky"):
            replicas = ALL if topic == "ledger" else frozenset({2, 3})
            self._wait(Wait(topic, isr=replicas))

    def _controller(self) -> int | None:
        return self._ask(describe_cluster).controller_id

    def _assigned(self) -> int:
        """The number of members of the group `readers` that have partitions."""
        line = "kctl groups describe readers --members -o json"
        done = subprocess.run(  # noqa: S603
            self._words(line), env=self._environ(), capture_output=True, text=True
        )
        rows = json.loads(done.stdout) if done.returncode == 0 and done.stdout else []
        return sum(1 for row in rows if row.get("partitions"))

    def _ask(self, query: Query[Answer]) -> Answer:
        session = Session(bootstrap_server=self._servers, given={"bootstrap_server"}, timeout=10)
        try:
            return ask(session, query)
        finally:
            session.close()

    def _until(self, is_done: Callable[[], bool], goal: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            try:
                if is_done():
                    return
            except CliError:  # a broker that was asked has just died
                pass
            time.sleep(_POLL_S)
        raise CliError(f"timed out after {WAIT_S:g} s waiting for: {goal}", "try again")
