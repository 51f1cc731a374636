"""`kctl demo` (`make demo`): a tour of the features on a temporary broker.

The tour is a list of stops. Commands run as separate processes, as a user would run them, so their
output is what a user gets.
"""

import os
import secrets
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from kctl.cli.command_tree import command, noun
from kctl.cli.errors import ExitStatus
from kctl.cli.options import session_of
from kctl.cli.output import Output
from kctl.cli.private_files import write_private
from kctl.dev.brokers import dev_brokers, stop_all
from kctl.dev.launch import start_broker

app = noun("Run a tour of kctl on a temporary broker.")


@dataclass(frozen=True)
class Stop:
    """One stop of the tour: a heading and its command lines."""

    title: str
    commands: tuple[str, ...]


ORDERS_FILE = "orders.txt"
ORDERS = "anna:3 apples\nben:1 pear\ncleo:12 plums\ndan:2 figs\n"

TOUR = [
    Stop("Cluster and brokers", ("kctl cluster", "kctl brokers list")),
    Stop(
        "API versions of the broker (USED is the version kctl uses)",
        ("kctl api-versions",),
    ),
    Stop(
        "Create a topic, produce records, consume them as text and as JSON",
        (
            "kctl topics create orders --partitions 3",
            "kctl produce orders {files}/orders.txt --key-separator : -o wide",
            "kctl topics describe orders",
            "kctl consume orders --from -2 --exit --format '%t-%p@%o %k = %s\\n'",
            "kctl consume orders --exit -n 1 -o jsonl",
        ),
    ),
    Stop(
        "Consumer groups: lag, alerts, offset reset",
        (
            "kctl consume orders --group billing --exit",
            "kctl produce orders {files}/orders.txt --key-separator :",
            "kctl groups describe billing",
            "kctl groups describe billing --totals --fail-if 'lag>1'",
            "kctl groups reset-offsets billing --topic orders --to-earliest",
        ),
    ),
    Stop(
        "The same records in the log files of the broker",
        (
            "kctl dump-log show {data}/orders-0",
            "kctl dump-log segments {data}/orders-0",
            "kctl dump-log locate {data}/orders-0 1",
        ),
    ),
    Stop(
        "Export topics to Parquet with Spark (which takes a few seconds to start)",
        (
            "kctl spark-export orders --to {files}/table",
            "kctl spark-export verify {files}/table",
        ),
    ),
    Stop(
        "Transactions: produce atomically, list transactional producers",
        (
            "kctl produce orders {files}/orders.txt --key-separator : --transactional-id till-1",
            "kctl transactions list",
            "kctl transactions producers orders",
        ),
    ),
    Stop(
        "Throughput",
        (
            "kctl topics create load",
            "kctl perf produce load --num-records 100000 --acks 1",
            "kctl perf consume load --num-records 100000",
        ),
    ),
    Stop(
        "Security: a second broker with TLS, SCRAM logins and ACLs",
        (
            "kctl dev up --secure --port 0 --dir {files}/secure",
            "kctl --context dev-secure users set shop --password-file {files}/shop.password",
            "kctl --context dev-secure acls add topic:orders --allow shop --producer",
            "kctl --context dev-secure acls explain shop read topic:orders",
            "kctl --context dev-secure quotas set producer_byte_rate=1MB --user shop",
            "kctl --context dev-secure quotas resolve --user shop",
            "kctl dev down --dir {files}/secure --delete-data",
        ),
    ),
    Stop("Machine-readable output: every command has -o json", ("kctl brokers list -o json",)),
    Stop(
        "Output of Kafka's own tools, for existing scripts",
        ("kctl cluster id --format kafka",),
    ),
    Stop(
        "Error messages with hints",
        ("kctl topics describe oders", "kctl brokers list -b localhost:1"),
    ),
]


@app.callback(invoke_without_command=True)
def demo(ctx: typer.Context) -> None:
    """Run a tour of kctl on a temporary broker."""
    if ctx.invoked_subcommand is None:
        _broker_tour(ctx)


@command(app, "cluster", examples=["kctl demo cluster"])
def cluster(ctx: typer.Context) -> None:
    """Run a tour of a cluster: failures, elections, lost records, reassignment.

    Takes about two minutes; needs Java for the ZooKeeper.
    """
    from kctl.commands.demo_cluster import ClusterTour

    out = session_of(ctx).out
    with tempfile.TemporaryDirectory(prefix="kctl-demo-") as directory:
        ClusterTour(out, Path(directory)).run()
    _title(out, "End of the tour. The cluster was stopped and its files were deleted")


def _broker_tour(ctx: typer.Context) -> None:
    out = session_of(ctx).out
    with tempfile.TemporaryDirectory(prefix="kctl-demo-") as directory:
        (Path(directory) / ORDERS_FILE).write_text(ORDERS)
        write_private(Path(directory) / "shop.password", secrets.token_urlsafe())
        started = time.monotonic()
        with running_broker(Path(directory)) as address:
            milliseconds = 1000 * (time.monotonic() - started)
            _title(out, f"Broker started on {address} in {milliseconds:.0f} ms")
            for stop in TOUR:
                _title(out, stop.title)
                for line in stop.commands:
                    _show(out, _placed(line, Path(directory)), address, Path(directory))
    _title(out, "End of the tour. The broker was stopped and its files were deleted")


def _placed(line: str, directory: Path) -> str:
    """The command line with the directories of the tour filled in."""
    return line.replace("{files}", str(directory)).replace("{data}", str(directory / "data"))


@contextmanager
def running_broker(directory: Path) -> Iterator[str]:
    """A broker on a free port with its files in `directory`; yields `host:port`."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": directory / "data",
        "group.initial.rebalance.delay.ms": 0,
    }
    overrides = [f"--override={key}={value}" for key, value in settings.items()]
    starting = start_broker(overrides, directory / "broker.log")
    try:
        yield starting.wait_until_started()
    finally:
        starting.stop()
        stop_all(dev_brokers(directory / "secure"))  # if the tour was interrupted


def _title(out: Output, title: str) -> None:
    out.lines([""])
    out.heading(f"── {title}")


def _show(out: Output, line: str, address: str, directory: Path) -> None:
    out.lines(["", f"$ {line}"])
    sys.stdout.flush()  # the command that follows writes to the same stdout
    own = {
        "KCTL_BOOTSTRAP_SERVERS": address,
        "KCTL_OUTPUT": "table",
        "KCTL_CONFIG": str(directory / "contexts.yaml"),  # the user's contexts stay as they are
    }
    environ = {**os.environ, **own}
    words = [sys.executable, "-m", "kctl", *shlex.split(line)[1:]]
    status = subprocess.run(words, env=environ, stderr=subprocess.STDOUT).returncode  # noqa: S603
    if status != ExitStatus.OK:
        out.lines([f"(exit status {status})"])
