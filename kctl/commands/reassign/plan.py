"""`kctl reassign plan`."""

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from broker.assignment import assign_replicas
from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.cluster import describe_cluster
from kctl.admin.connection import ask
from kctl.admin.topics import find_topics
from kctl.cli.arguments.amounts import parse_broker_ids
from kctl.cli.arguments.plan_files import reassignment_json
from kctl.cli.arguments.topics import Regex, TopicNames, select
from kctl.cli.errors import ExitStatus, usage_error
from kctl.cli.options import KafkaText, Session, session_of
from kctl.cli.tables import partition_name
from kctl.commands.reassign.options import (
    AddBrokers,
    BalanceOption,
    Brokers,
    DisableRackAware,
    Drain,
    GoalOptions,
    RackAware,
    ReplicationFactor,
    TopicsFile,
    topics_in_file,
)
from kctl.commands.reassign.plan_directories import plan_directories
from kctl.model.assignments import Assignment
from kctl.model.cluster import Cluster
from kctl.model.topics import Topic
from kctl.operations.reassignment.proposals import Proposal, nothing_to_do, propose
from kctl.operations.reassignment.rollback import write_plan
from kctl.plans.reassignment.cost import broker_loads, changes_of, reassignment_cost
from kctl.views.kafka_text.reassign import (
    MISSING_RACKS,
    error_line,
    generation_lines,
    missing_text,
)
from kctl.views.reassignments import (
    BROKER_COLUMNS,
    BROKER_MAP_COLUMNS,
    CHANGE_COLUMNS,
    COST_COLUMNS,
    change_row,
    cost_line,
    cost_record,
    load_row,
)


class By(StrEnum):
    """What each row shows."""

    PARTITION = "partition"
    BROKER = "broker"
    TOTAL = "total"


def plan(
    ctx: typer.Context,
    names: TopicNames = None,
    regex: Regex = False,
    drain: Drain = None,
    add_brokers: AddBrokers = None,
    brokers: Brokers = None,
    replication_factor: ReplicationFactor = None,
    rack_aware: RackAware = None,
    balance: BalanceOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the JSON plan; - writes to stdout."),
    ] = None,
    group_by: Annotated[
        By, typer.Option("--by", metavar="WHAT", help="Rows per partition, broker or total.")
    ] = By.PARTITION,
    balance_dirs: Annotated[
        bool,
        typer.Option(
            "--balance-dirs",
            help="Even out the log directories of each broker; with --brokers only of these.",
        ),
    ] = False,
    drain_dir: Annotated[
        list[str] | None,
        typer.Option(
            "--drain-dir",
            metavar="PATH",
            help="Move replicas out of this log directory, to others of the same broker; with "
            "--brokers only of these. Can be repeated.",
        ),
    ] = None,
    text_format: KafkaText = None,
    topics_file: TopicsFile = None,
    disable_rack_aware: DisableRackAware = False,
    generate: Annotated[
        bool,
        typer.Option("--generate", hidden=True, help="Accepted for compatibility; has no effect."),
    ] = False,
) -> ExitStatus | None:
    """Plan a reassignment from goals, with as few moves as possible.

    Plans are deterministic. Without topics, the plan covers all of them. On a terminal, a map shows
    the load of each broker before and after. With --format kafka, the plan is computed as
    kafka-reassign-partitions does: all replicas are assigned from scratch, to the brokers of
    --brokers.

    Skew is the load of the busiest broker divided by the mean; 1.0 is even. Plans between log
    directories (--balance-dirs, --drain-dir) are run with `kctl reassign execute`.
    """
    session = session_of(ctx)
    wanted = topics_in_file(topics_file) if topics_file else select(names, regex=regex)
    if text_format:
        if wanted.is_everything or not brokers:
            raise usage_error(
                "--format kafka requires topics and --broker-list",
                "name topics, or use --topics-to-move-json-file",
            )
        ids = parse_broker_ids(brokers, "--broker-list")
        return _generate(session, wanted.names, ids, use_racks=not disable_rack_aware)
    if disable_rack_aware:
        rack_aware = False
    options = GoalOptions(brokers, drain, add_brokers, replication_factor, rack_aware, balance)
    if balance_dirs or drain_dir:
        if not replace(options, brokers=None).goals().is_nothing:
            raise usage_error(
                "--balance-dirs and --drain-dir move replicas within brokers",
                "plan moves between brokers separately",
            )
        ids = parse_broker_ids(brokers, "--brokers")
        plan_directories(session, wanted, ids, frozenset(drain_dir or ()), out)
        return None
    proposal = propose(session, wanted, options.goals())
    _show(session, proposal, group_by, out)
    return None


def _show(session: Session, proposal: Proposal, group_by: By, out: Path | None) -> None:
    layout, changes = proposal.layout, proposal.changes
    cost = reassignment_cost(layout, changes, proposal.allowed)
    if out is not None and str(out) == "-":
        session.out.lines([reassignment_json(changes)])
    elif group_by is By.TOTAL:
        session.out.record(cost_record(cost), COST_COLUMNS, name="partitions")
    elif group_by is By.BROKER:
        rows = map(load_row, broker_loads(layout, changes))
        session.out.rows(rows, BROKER_COLUMNS, name="broker")
    else:
        rows = map(change_row, changes_of(layout, changes))
        session.out.rows(rows, CHANGE_COLUMNS, name=partition_name)
        if changes and session.out.is_on_terminal and session.row_options.is_default_rows:
            session.out.lines([""])
            loads = map(load_row, broker_loads(layout, changes))
            session.out.rows(loads, BROKER_MAP_COLUMNS, name="broker")
    session.out.note(cost_line(cost) if changes else nothing_to_do(proposal))
    if changes and out is not None and str(out) != "-":
        write_plan(out, changes)
        session.out.note(f"wrote {out}: run it with kctl reassign run --file {out}")


def _generate(
    session: Session, names: tuple[str, ...], brokers: frozenset[int], *, use_racks: bool
) -> ExitStatus:
    """Print the output of kafka-reassign-partitions --generate."""

    async def question(client: Client) -> tuple[Cluster, list[Topic]]:
        return await describe_cluster(client), await find_topics(client, names)

    cluster, topics = ask(session, question)
    try:
        racks = {b.id: b.rack if use_racks else None for b in cluster.brokers if b.id in brokers}
        current, proposed = _generate_assignment(names, topics, racks)
    except ValueError as error:
        session.out.lines([error_line(str(error))])
        return ExitStatus.FAILED
    session.out.lines(generation_lines(current, proposed))
    return ExitStatus.OK


def _generate_assignment(
    names: tuple[str, ...], topics: list[Topic], racks: dict[int, str | None]
) -> tuple[Assignment, Assignment]:
    """The current and the proposed assignment of Kafka's tool; ValueError with its messages.

    Every topic gets the replication factor of its first partition.
    """
    found = {topic.name: topic for topic in topics}
    for name in names:
        if name not in found:
            raise ValueError(missing_text(f"Topic {name} not found."))
    if len({rack is None for rack in racks.values()}) > 1:
        raise ValueError(MISSING_RACKS)
    current: dict[TopicPartition, tuple[int, ...]] = {}
    proposed: dict[TopicPartition, tuple[int, ...]] = {}
    for name in names:
        partitions = found[name].partitions
        current |= {TopicPartition(name, p.id): p.replicas for p in partitions}
        dealt = assign_replicas(racks, len(partitions), len(partitions[0].replicas))
        proposed |= {TopicPartition(name, p.id): r for p, r in zip(partitions, dealt, strict=True)}
    return current, proposed
