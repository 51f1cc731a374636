"""`kctl reassign plan`: what would move, and what that costs."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from broker.assignment import assign_replicas
from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.cluster import Cluster, describe_cluster
from kctl.admin.connection import ask
from kctl.admin.topics import Topic, find_topics
from kctl.commands.reassign_words import (
    AddBrokers,
    BalanceOption,
    Brokers,
    DisableRackAware,
    Drain,
    GoalWords,
    Proposal,
    RackAware,
    ReplicationFactor,
    TopicsFile,
    propose,
    topics_in_file,
    write_plan,
)
from kctl.errors import ExitStatus
from kctl.kafka_text.reassign import (
    MISSING_RACKS,
    error_line,
    generation_lines,
    missing_words,
)
from kctl.options import KafkaText, Session, session_of
from kctl.plans.reassign_cost import (
    BROKER_COLUMNS,
    MOVE_COLUMNS,
    TOTAL_COLUMNS,
    broker_rows,
    moves_of,
    summary,
    total_row,
)
from kctl.plans.reassign_draft import Assignment
from kctl.plans.reassign_files import reassignment_json
from kctl.words.amounts import parse_broker_ids
from kctl.words.partitions import usage_error
from kctl.words.topics import Regex, TopicNames, select


class By(StrEnum):
    """What a row is about."""

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
        typer.Option("--out", metavar="FILE", help="Write Kafka's JSON plan; - is the output."),
    ] = None,
    group_by: Annotated[
        By, typer.Option("--by", metavar="WHAT", help="Rows per partition, per broker, or total.")
    ] = By.PARTITION,
    text_format: KafkaText = None,
    topics_file: TopicsFile = None,
    disable_rack_aware: DisableRackAware = False,
    generate: Annotated[
        bool, typer.Option("--generate", hidden=True, help="What it does anyway.")
    ] = False,
) -> ExitStatus | None:
    """Plan a reassignment from goals: as few moves as can be, and the same plan each time.

    Without topics the plan is for all of them. With --format kafka it is made as Kafka's tool
    makes it: replicas are dealt out anew, to the brokers of --brokers.
    """
    session = session_of(ctx)
    wanted = topics_in_file(topics_file) if topics_file else select(names, regex=regex)
    if text_format:
        if wanted.is_everything or not brokers:
            raise usage_error(
                "Kafka's plan needs topics and --broker-list",
                "name topics, or give --topics-to-move-json-file",
            )
        ids = parse_broker_ids(brokers, "--broker-list")
        return _generate(session, wanted.names, ids, use_racks=not disable_rack_aware)
    if disable_rack_aware:
        rack_aware = False
    words = GoalWords(brokers, drain, add_brokers, replication_factor, rack_aware, balance)
    proposal = propose(session, wanted, words.goals())
    _show(session, proposal, group_by, out)
    return None


def _show(session: Session, proposal: Proposal, group_by: By, out: Path | None) -> None:
    layout, changes = proposal.layout, proposal.changes
    total = total_row(layout, changes, proposal.allowed)
    if out is not None and str(out) == "-":
        session.out.lines([reassignment_json(changes)])
    elif group_by is By.TOTAL:
        session.out.record(total, TOTAL_COLUMNS, name="partitions")
    elif group_by is By.BROKER:
        session.out.rows(broker_rows(layout, changes), BROKER_COLUMNS, name="broker")
    else:
        session.out.rows(
            [move.row() for move in moves_of(layout, changes)], MOVE_COLUMNS, name="topic"
        )
    session.out.note(summary(total) if changes else "nothing has to move")
    if changes and out is not None and str(out) != "-":
        write_plan(out, changes)
        session.out.note(f"wrote {out}: kctl reassign run --file {out} carries it out")


def _generate(
    session: Session, names: tuple[str, ...], brokers: frozenset[int], *, use_racks: bool
) -> ExitStatus:
    """Print what kafka-reassign-partitions --generate prints."""

    async def question(client: Client) -> tuple[Cluster, list[Topic]]:
        return await describe_cluster(client), await find_topics(client, names)

    cluster, topics = ask(session, question)
    try:
        racks = {b.id: b.rack if use_racks else None for b in cluster.brokers if b.id in brokers}
        current, proposed = dealt_anew(names, topics, racks)
    except ValueError as error:
        session.out.lines([error_line(str(error))])
        return ExitStatus.FAILED
    session.out.lines(generation_lines(current, proposed))
    return ExitStatus.OK


def dealt_anew(
    names: tuple[str, ...], topics: list[Topic], racks: dict[int, str | None]
) -> tuple[Assignment, Assignment]:
    """What there is, and what Kafka's algorithm makes of it; ValueError in Kafka's words.

    Every topic gets the replication factor of its first partition.
    """
    found = {topic.name: topic for topic in topics}
    for name in names:
        if name not in found:
            raise ValueError(missing_words(f"Topic {name} not found."))
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
