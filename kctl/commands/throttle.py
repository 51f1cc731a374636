"""`kctl throttle`: how fast replicas may be copied, and what is left of reassignments."""

from typing import Annotated

import typer

from broker.net.client import Client
from kctl.admin.cluster import describe_cluster
from kctl.admin.connection import ask
from kctl.admin.reassignments import Moving, list_reassignments
from kctl.admin.throttles import change_and_see, find_throttles, own_configs
from kctl.admin.topics import find_topics
from kctl.commands.topic_show import require_all_found
from kctl.confirm import DryRun, Plan, Yes, agreed
from kctl.errors import CliError, ExitStatus
from kctl.groups import command, noun
from kctl.options import Session, session_of
from kctl.outcomes import show_outcomes
from kctl.plans.config_changes import COLUMNS as CHANGE_COLUMNS
from kctl.plans.config_changes import change_rows
from kctl.plans.throttles import (
    COLUMNS,
    Changes,
    Throttle,
    brokers_of,
    deletions_of,
    ends_of,
    every_replica_changes,
    merged,
    rate_changes,
    topic_changes,
)
from kctl.words.amounts import parse_broker_ids, parse_rate
from kctl.words.partitions import usage_error
from kctl.words.topics import Selection, TopicNames

app = noun("How fast replicas may be copied.")

Brokers = Annotated[
    str | None, typer.Option("--brokers", metavar="1,2", help="Only these brokers.")
]


@command(
    app,
    "list",
    examples=["kctl throttle list", "kctl throttle list --leaked", "kctl throttle list -o json"],
)
def list_throttles(
    ctx: typer.Context,
    leaked: Annotated[
        bool,
        typer.Option("--leaked", help="Only those that nothing needs; status 3 if there are any."),
    ] = False,
) -> ExitStatus:
    """Show the throttles of brokers and topics; leaked is one that outlived its reassignment."""
    session = session_of(ctx)
    found = ask(session, find_throttles)
    lost = [throttle for throttle in found if throttle.leaked]
    session.out.rows([one.row() for one in (lost if leaked else found)], COLUMNS, name="entity")
    if lost:
        session.out.note(f"{len(lost)} leaked: kctl throttle clear --leaked takes them away")
    return ExitStatus.FOUND if lost and leaked else ExitStatus.OK


@command(
    app,
    "set",
    examples=[
        "kctl throttle set 50MB --brokers 1 --yes",
        "kctl throttle set 20MB orders --dry-run",
        "kctl throttle set --log-dirs 100MB --brokers 1 --yes",
    ],
)
def set_throttles(
    ctx: typer.Context,
    rate: Annotated[
        str | None, typer.Argument(metavar="RATE", help="Bytes a second and broker: 50MB.")
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC…",
            help="Slow down all replicas of these topics, moving or not.",
            show_default=False,
        ),
    ] = None,
    brokers: Brokers = None,
    log_dirs: Annotated[
        str | None,
        typer.Option(
            "--log-dirs", metavar="RATE", help="Bytes a second for moves between directories."
        ),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Slow down replicas that are being copied.

    Without topics it is for the reassignments under way: their replicas, and the brokers these
    come from and go to. Setting it again changes the rate while they move.
    """
    session = session_of(ctx)
    if rate is None and log_dirs is None:
        raise usage_error("no rate named", "e.g. kctl throttle set 50MB")
    limit = parse_rate(rate, "RATE") if rate else None
    dirs_limit = parse_rate(log_dirs, "--log-dirs") if log_dirs else None
    named = parse_broker_ids(brokers, "--brokers")

    async def question(client: Client) -> tuple[Moving, frozenset[int]]:
        topics = await find_topics(client, names) if names else []
        require_all_found(Selection(tuple(names or ())), topics)
        up = frozenset(broker.id for broker in (await describe_cluster(client)).brokers)
        return await list_reassignments(client), up

    moving, up = ask(session, question)
    if missing := named - up:
        raise CliError(
            f"no such broker: {', '.join(map(str, sorted(missing)))}",
            "kctl brokers list shows the ids",
        )
    changes = _wanted(moving, named or up, names or [], limit, dirs_limit, explicit=bool(named))
    _apply(session, changes, "Set", yes=yes, dry_run=dry_run)


def _wanted(
    moving: Moving,
    brokers: frozenset[int],
    topics: list[str],
    rate: int | None,
    log_dirs_rate: int | None,
    *,
    explicit: bool,
) -> Changes:
    """The settings to make: of named topics and brokers, else of what is moving."""
    if topics or explicit or rate is None:
        changes = rate_changes(brokers, rate, log_dirs_rate)
        return merged(every_replica_changes(topics), changes)
    if not moving:
        raise CliError(
            "nothing is being reassigned",
            "name topics to slow down, or brokers to set the rate on: --brokers 1,2",
        )
    ends = ends_of(moving, {}, {})
    return merged(topic_changes(ends), rate_changes(brokers_of(ends), rate, log_dirs_rate))


@command(
    app,
    "clear",
    examples=[
        "kctl throttle clear --leaked --yes",
        "kctl throttle clear orders --dry-run",
        "kctl throttle clear --brokers 1 --yes",
    ],
)
def clear(
    ctx: typer.Context,
    names: TopicNames = None,
    brokers: Brokers = None,
    leaked: Annotated[
        bool, typer.Option("--leaked", help="Only those that nothing needs any more.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Take throttles away: those of the named topics and brokers, or all."""
    session = session_of(ctx)
    ids = {str(broker) for broker in parse_broker_ids(brokers, "--brokers")}
    chosen = [
        throttle
        for throttle in ask(session, find_throttles)
        if (throttle.leaked or not leaked) and _is_named(throttle, set(names or ()), ids)
    ]
    if not chosen:
        session.out.note("there is no such throttle")
        return
    _apply(session, deletions_of(chosen), "Clear", yes=yes, dry_run=dry_run)


def _is_named(throttle: Throttle, topics: set[str], brokers: set[str]) -> bool:
    if not (topics or brokers):
        return True
    is_topic = throttle.entity.type == "topics"
    return throttle.entity.name in (topics if is_topic else brokers)


def _apply(session: Session, changes: Changes, verb: str, *, yes: bool, dry_run: bool) -> None:
    before = ask(session, lambda client: own_configs(client, changes))
    rows = [row for e, some in changes.items() for row in change_rows(e, before[e], some)]
    plan = Plan(f"{verb} {len(rows)} throttles?", rows, CHANGE_COLUMNS, "entity")
    if agreed(session, plan, yes=yes, dry_run=dry_run):
        outcomes = ask(session, lambda client: change_and_see(client, changes))
        show_outcomes(session.out, outcomes, "entity", "changed")
