"""`kctl monitor run`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from broker.admin.exposition import exposition
from kctl.cli.contexts import config_path, read_contexts
from kctl.cli.errors import CliError, ExitStatus, usage, usage_error
from kctl.cli.interrupts import TERMINATION, ctrl_c_noted
from kctl.cli.options import Session, session_of
from kctl.cli.times import parse_duration_ms
from kctl.commands.monitor.options import History, default_history
from kctl.operations.monitoring.monitor import Monitor, MonitorOptions, Watched, serve
from kctl.plans.trend import DEFAULT_WINDOW_S
from kctl.views.monitor_metrics import Names

_CYCLE_TIMEOUT_S = 10.0
"""How long a cluster that is down is waited for in a cycle, unless --timeout is given."""


def run(
    ctx: typer.Context,
    contexts: Annotated[
        str | None,
        typer.Option("--contexts", metavar="NAME,…", help="Watch the clusters of these contexts."),
    ] = None,
    listen: Annotated[
        str,
        typer.Option(
            "--listen",
            metavar="HOST:PORT",
            help="Address to serve /metrics on; port 0 selects any free port.",
        ),
    ] = "127.0.0.1:9308",
    interval: Annotated[
        float,
        typer.Option(
            "-i", "--interval", metavar="SECONDS", min=0.2, max=86_400, help="Time between cycles."
        ),
    ] = 15.0,
    window: Annotated[
        float,
        typer.Option(
            "-w",
            "--window",
            metavar="SECONDS",
            min=1,
            help="Window for trends and verdicts.",
        ),
    ] = 4 * DEFAULT_WINDOW_S,
    names: Annotated[
        list[Names] | None,
        typer.Option(
            "--names",
            metavar="EXPORTER",
            help="Serve only the names of kafka-exporter, lag-exporter or kminion; "
            "can be repeated.",
        ),
    ] = None,
    probe: Annotated[
        bool,
        typer.Option("--probe", help="Write a record to each broker in every cycle, and read it."),
    ] = False,
    probe_topic: Annotated[
        str,
        typer.Option("--probe-topic", metavar="TOPIC", help="Topic of --probe; is created."),
    ] = "kctl-monitor-probe",
    history: History = None,
    no_history: Annotated[
        bool, typer.Option("--no-history", help="Keep no history of lag.")
    ] = False,
    keep: Annotated[
        str, typer.Option("--keep", metavar="DURATION", help="How long the history is kept.")
    ] = "7d",
    once: Annotated[
        bool, typer.Option("--once", help="Print the metrics of one cycle, and exit.")
    ] = False,
) -> None:
    """Watch clusters until Ctrl-C, and serve their metrics to Prometheus.

    Lag in records and in time, verdicts, time to zero, offsets, ISRs, sizes and brokers, on any
    Kafka, under the names of kafka_exporter, kafka-lag-exporter and kminion, so that their
    dashboards work. Lag in time is taken from log end offsets over time; no records are read.

    With --probe, a record is written to every partition of a topic of its own, one partition per
    broker, and read back: kminion_end_to_end_* count the lost ones and time the others.

    A cluster that does not answer is reported once and tried again in every cycle; kctl_monitor_up
    is 0 meanwhile.
    """
    session = session_of(ctx)
    if "timeout" not in session.given:
        session.timeout = _CYCLE_TIMEOUT_S
    host, port = _address(listen)
    options = MonitorOptions(
        interval,
        window,
        tuple(names or Names),
        None if no_history or once else history or default_history(),
        usage(parse_duration_ms, keep) / 1000,
        probe_topic if probe else None,
    )
    monitor = Monitor(_watched(session, contexts), options, session.out.note)
    if once:
        _run_once(session, monitor)
        return
    try:
        server = serve(monitor, host, port)
    except OSError as error:
        raise CliError(
            f"cannot listen on {listen}: {error.strerror or error}", "choose another --listen"
        ) from error
    with ctrl_c_noted(*TERMINATION) as stop:
        monitor.start()
        session.out.note(f"serving http://{host}:{server.port}/metrics")
        stop.wait()
    monitor.stop()
    server.stop()


def _run_once(session: Session, monitor: Monitor) -> None:
    monitor.start()
    for one in monitor.watched:
        one.has_run.wait()
    monitor.stop()
    session.out.text(exposition(monitor.families()).decode())
    failed = [one for one in monitor.watched if one.error is not None]
    if failed:
        raise CliError(f"{failed[0].name}: {failed[0].error}", status=ExitStatus.TIMED_OUT)


def _watched(session: Session, contexts: str | None) -> Sequence[Watched]:
    if contexts is None:
        name = session.active_context[0] or session.bootstrap_servers()
        return [Watched(name, session)]
    known = read_contexts(config_path())
    wanted = [name for name in contexts.split(",") if name]
    if not wanted:
        raise usage_error("--contexts is empty", "kctl context list shows the contexts")
    for name in wanted:
        known.get(name)
    return [Watched(name, _session_of_context(session, name)) for name in wanted]


def _session_of_context(session: Session, name: str) -> Session:
    """A session of its own, with the shared options of this run."""
    return replace(
        session,
        bootstrap_server=None,
        context=name,
        given={*session.given - {"bootstrap_server"}, "context"},
        unanswered={},
        connection=None,
    )


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise usage_error(f"--listen {text}: expected HOST:PORT", "e.g. 127.0.0.1:9308")
    return host.strip("[]"), int(port)
