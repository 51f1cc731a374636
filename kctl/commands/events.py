"""`kctl events` and `kctl topics watch`."""

import sys
import time
from collections.abc import Callable
from typing import Annotated

import typer

from kctl.admin.topic_selection import require_all_found
from kctl.cli.arguments.topics import Regex, Selection, TopicNames, select
from kctl.cli.arguments.zookeeper import ZooKeeperOption, zookeeper_of
from kctl.cli.command_tree import command, lone_command
from kctl.cli.errors import ExitStatus, usage, usage_error
from kctl.cli.interrupts import TERMINATION, ctrl_c_noted
from kctl.cli.options import Session, session_of
from kctl.cli.output import OutputFormat
from kctl.cli.times import now_ms, parse_duration_ms
from kctl.model.events import Event, EventKind
from kctl.operations.event_watching import follow, take_snapshot
from kctl.views.events import event_json, event_line
from kctl.views.quantities import plural

app = lone_command()

Interval = Annotated[
    float, typer.Option("--interval", metavar="SECONDS", min=0.05, help="Polling interval.")
]
Count = Annotated[
    int | None, typer.Option("-n", "--count", min=1, help="Exit after this many events.")
]
Duration = Annotated[
    str | None, typer.Option("--for", metavar="DURATION", help="Exit after this time, e.g. 10m.")
]
_OF_CLUSTER = (EventKind.UNREACHABLE, EventKind.REACHABLE)


@command(
    app,
    "events",
    examples=[
        "kctl events",
        "kctl events -o jsonl --for 1h",
        "kctl events -z localhost:2181/kafka --interval 0.2",
    ],
)
def events(
    ctx: typer.Context,
    interval: Interval = 1.0,
    count: Count = None,
    duration: Duration = None,
    zookeeper: ZooKeeperOption = None,
) -> None:
    """Follow changes of the cluster: brokers, controller, topics, leaders, ISR, replicas.

    Prints one line per change until Ctrl-C, -n or --for; -o jsonl prints JSON. The metadata of the
    cluster is read every --interval seconds, on any Kafka: changes that are undone in between are
    not seen. With a ZooKeeper, and in KRaft mode, the controller's epoch is read too, so that a new
    controller on the same broker is seen.
    """
    session = session_of(ctx)
    servers = None
    if zookeeper or session.active_context[1].zookeeper:
        servers = zookeeper_of(session, zookeeper)
    watch(session, servers, (interval, count, duration), lambda _: True)


def watch_topics(
    ctx: typer.Context,
    names: TopicNames = None,
    regex: Regex = False,
    interval: Interval = 1.0,
    count: Count = None,
    duration: Duration = None,
) -> None:
    """Follow changes of topics: creation, deletion, leaders, ISR, replicas.

    Without names, all topics. Like `kctl events`, but without changes of brokers and controller.
    """
    wanted = select(names or [], regex=regex)

    def is_wanted(event: Event) -> bool:
        if event.kind in _OF_CLUSTER:
            return True
        if event.kind in (EventKind.BROKER_JOINED, EventKind.BROKER_LEFT, EventKind.CONTROLLER):
            return False
        topic = event.subject
        if event.kind.startswith(("leader", "isr", "replicas")):
            topic = topic.rpartition("-")[0]
        return bool(wanted.pick([topic]))

    watch(session_of(ctx), None, (interval, count, duration), is_wanted, wanted)


def watch(
    session: Session,
    zookeeper: str | None,
    limits: tuple[float, int | None, str | None],
    is_wanted: Callable[[Event], bool],
    topics: Selection | None = None,
) -> None:
    """Print the events until a limit or Ctrl-C."""
    interval, count, duration = limits
    if session.output in (OutputFormat.CSV, OutputFormat.YAML, OutputFormat.NAME):
        raise usage_error(f"events cannot be shown as {session.output}", "use -o jsonl")
    end_s = None
    if duration is not None:
        end_s = time.monotonic() + usage(parse_duration_ms, duration) / 1000
    first = take_snapshot(session, zookeeper)
    if topics is not None and topics.exact_names is not None:
        require_all_found(topics, [one for one in first.topics if one.name in topics.exact_names])
    write = event_line if session.output.is_for_people else event_json
    session.out.note(
        f"controller {first.cluster.controller_id}, "
        f"{plural(len(first.cluster.brokers), 'broker')}, {plural(len(first.topics), 'topic')}; "
        "changes from now on:"
    )
    shown = 0

    def is_over() -> bool:
        return end_s is not None and time.monotonic() >= end_s

    with ctrl_c_noted(*TERMINATION) as interrupted:
        for event in follow(session, first, zookeeper, interval, interrupted, is_over):
            if is_wanted(event):
                session.out.safe_lines([write(event, now_ms())])
                sys.stdout.flush()  # the reader of the pipe is waiting for it
                shown += 1
            if shown == count:
                return
        if interrupted.is_set():
            raise typer.Exit(ExitStatus.INTERRUPTED)
