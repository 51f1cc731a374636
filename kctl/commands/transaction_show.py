"""`kctl transactions list`, `describe`, `producers` and `hanging`."""

from collections.abc import Sequence
from typing import Annotated

import typer

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.log_offsets import partitions_of
from kctl.admin.topics import find_topics
from kctl.admin.transactions import (
    TransactionFilter,
    describe_producers,
    describe_transactions,
    list_transactions,
)
from kctl.commands.transaction_words import (
    BrokerId,
    PartitionOption,
    Places,
    TopicOption,
    named_places,
)
from kctl.errors import CliError, ExitStatus
from kctl.kafka_text.transactions import (
    describe_lines,
    hanging_lines,
    list_lines,
    producers_lines,
)
from kctl.options import KafkaText, session_of
from kctl.plans.hanging import ActiveProducer, Transaction, hanging, overdue
from kctl.records.times import format_duration, iso_time, parse_duration_ms
from kctl.streaming.choices import now_ms, usage
from kctl.tables import Column, Row

LIST_COLUMNS = [
    Column("transactional_id"),
    Column("coordinator", right=True),
    Column("producer_id", right=True),
    Column("state"),
]
DESCRIBE_COLUMNS = [
    Column("transactional_id"),
    Column("coordinator", right=True),
    Column("producer_id", right=True),
    Column("producer_epoch", "EPOCH", right=True),
    Column("state"),
    Column("duration", right=True),
    Column("timeout", right=True),
    Column("started", wide=True),
    Column("partitions"),
]
PRODUCER_COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("producer_id", right=True),
    Column("producer_epoch", "EPOCH", right=True),
    Column("coordinator_epoch", right=True, wide=True),
    Column("last_sequence", right=True),
    Column("last_write"),
    Column("start_offset", "OPEN-AT", right=True),
]
HANGING_COLUMNS = [*PRODUCER_COLUMNS[:5], PRODUCER_COLUMNS[-1], Column("age", right=True)]
DEFAULT_MAX_TIMEOUT_MIN = 15
"""Kafka's `transaction.max.timeout.ms`: no transaction may take longer, unless that is raised."""
_MINUTE_MS = 60_000


def list_all(
    ctx: typer.Context,
    states: Annotated[
        list[str] | None,
        typer.Option("--state", help="Only those in this state; can be given again."),
    ] = None,
    producer_ids: Annotated[
        list[int] | None,
        typer.Option("--producer-id", help="Only those of this producer; can be given again."),
    ] = None,
    longer_than: Annotated[
        str | None,
        typer.Option(
            "--longer-than", metavar="DURATION", help="Only those that run for longer, e.g. 5m."
        ),
    ] = None,
    duration_filter: Annotated[
        int | None,
        typer.Option("--duration-filter", hidden=True, help="Kafka's: the same in milliseconds."),
    ] = None,
    text_format: KafkaText = None,
) -> None:
    """List transactional ids with the state of their transactions."""
    session = session_of(ctx)
    longer_ms = -1 if duration_filter is None else duration_filter
    if longer_than:
        longer_ms = usage(parse_duration_ms, longer_than)
    wanted = TransactionFilter(tuple(states or ()), tuple(producer_ids or ()), longer_ms)
    found = ask(session, lambda client: list_transactions(client, wanted))
    if text_format:
        session.out.lines(list_lines(found))
        return
    rows = [
        {
            "transactional_id": one.transactional_id,
            "coordinator": one.coordinator_id,
            "producer_id": one.producer_id,
            "state": one.state,
        }
        for one in sorted(found, key=lambda one: one.transactional_id)
    ]
    session.out.rows(rows, LIST_COLUMNS, name="transactional_id")


def describe(
    ctx: typer.Context,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="TRANSACTIONAL_ID", help="Which ones.")
    ] = None,
    id_option: Annotated[
        list[str] | None,
        typer.Option("--transactional-id", hidden=True, help="Kafka's way of naming one."),
    ] = None,
    all_ids: Annotated[bool, typer.Option("-A", "--all", help="All of the cluster.")] = False,
    text_format: KafkaText = None,
) -> None:
    """Show transactions: how long they run, and which partitions are still to get a marker."""
    session = session_of(ctx)
    wanted = [*(ids or []), *(id_option or [])]
    if not wanted and not all_ids:
        raise CliError(
            "no transactional id named",
            "name some, or say --all; kctl transactions list shows them",
            ExitStatus.USAGE,
        )

    async def question(client: Client) -> list[Transaction]:
        names = wanted
        if all_ids:
            names = sorted(one.transactional_id for one in await list_transactions(client))
        found = await describe_transactions(client, names)
        for name, transaction in zip(wanted, found, strict=False):
            if transaction is None:
                raise CliError(
                    f"no such transactional id: {name!r}",
                    "kctl transactions list shows those there are",
                )
        return [one for one in found if one is not None]

    found, now = ask(session, question), now_ms()
    if text_format:
        for transaction in found:
            session.out.lines(describe_lines(transaction, now))
        return
    rows = [_transaction_row(one, now) for one in found]
    session.out.rows(rows, DESCRIBE_COLUMNS, name="transactional_id")


def producers(
    ctx: typer.Context,
    places: Places = None,
    topic: TopicOption = None,
    partition: PartitionOption = None,
    broker_id: BrokerId = None,
    text_format: KafkaText = None,
) -> None:
    """Show who writes to partitions, and where their open transactions begin."""
    session = session_of(ctx)
    wanted = named_places(places, topic, partition)
    if not wanted:
        raise CliError("no partition named", "e.g. orders:0, or orders for all", ExitStatus.USAGE)

    async def question(client: Client) -> list[ActiveProducer]:
        known = await partitions_of(client, wanted)
        return await describe_producers(client, _partitions(known, wanted), broker_id)

    found = ask(session, question)
    if text_format:
        session.out.lines(producers_lines(found))
        return
    now = now_ms()
    ordered = sorted(found, key=lambda one: (one.partition, one.producer_id))
    rows = [producer_row(one, now) for one in ordered]
    session.out.rows(rows, PRODUCER_COLUMNS, name="producer_id")


def find_hanging(
    ctx: typer.Context,
    places: Places = None,
    topic: TopicOption = None,
    partition: PartitionOption = None,
    broker_id: BrokerId = None,
    max_timeout_min: Annotated[
        int,
        typer.Option(
            "--max-transaction-timeout",
            metavar="MINUTES",
            help="The longest that any transaction of the cluster may take.",
        ),
    ] = DEFAULT_MAX_TIMEOUT_MIN,
    text_format: KafkaText = None,
) -> ExitStatus:
    """Find transactions that will never end, and hold up whoever reads committed records.

    All partitions are looked at, unless topics, partitions or a broker are named. Ends with status
    3 if some are found; `kctl transactions abort` ends them.
    """
    session = session_of(ctx)
    wanted = named_places(places, topic, partition)
    now = now_ms()

    async def question(client: Client) -> list[ActiveProducer]:
        partitions = await _searched(client, wanted, broker_id)
        active = await describe_producers(client, partitions, broker_id)
        candidates = overdue(active, now, max_timeout_min * _MINUTE_MS)
        return hanging(candidates, await _known(client, candidates))

    found = ask(session, question)
    if text_format:
        session.out.lines(hanging_lines(found, now))
        return ExitStatus.OK
    rows = [producer_row(one, now) for one in sorted(found, key=lambda one: one.partition)]
    session.out.rows(rows, HANGING_COLUMNS, name="producer_id")
    if not found:
        session.out.note("no transaction hangs")
    return ExitStatus.FOUND if found else ExitStatus.OK


async def _searched(
    client: Client, wanted: dict[str, list[int] | None], broker_id: int | None
) -> list[TopicPartition]:
    """The partitions to look at: named ones, or all; with a broker, those it has a replica of."""
    if wanted:
        await partitions_of(client, wanted)  # a topic that does not exist is an error
    topics = await find_topics(client, list(wanted) or None)
    return [
        TopicPartition(topic.name, one.id)
        for topic in topics
        for one in topic.partitions
        if (broker_id is None or broker_id in one.replicas)
        and one.id in (wanted.get(topic.name) or [one.id])
    ]


async def _known(client: Client, candidates: Sequence[ActiveProducer]) -> dict[int, Transaction]:
    """What coordinators know of the producers' transactions, by producer id."""
    ids = tuple({one.producer_id for one in candidates})
    if not ids:
        return {}
    listed = await list_transactions(client, TransactionFilter(producer_ids=ids))
    found = await describe_transactions(client, [one.transactional_id for one in listed])
    return {
        one.producer_id: transaction
        for one, transaction in zip(listed, found, strict=True)
        if transaction is not None
    }


def _partitions(
    known: dict[str, list[int]], wanted: dict[str, list[int] | None]
) -> list[TopicPartition]:
    return [
        TopicPartition(topic, number)
        for topic, numbers in wanted.items()
        for number in (known[topic] if numbers is None else numbers)
    ]


def _transaction_row(one: Transaction, now: int) -> Row:
    # One that is complete keeps the time at which it began, but lasts no longer.
    is_open = one.started_ms is not None and not one.state.startswith("Complete")
    duration_ms = now - (one.started_ms or 0) if is_open else None
    return {
        "transactional_id": one.transactional_id,
        "coordinator": one.coordinator_id,
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "state": one.state,
        "duration": None if duration_ms is None else format_duration(duration_ms),
        "duration_ms": duration_ms,
        "timeout": format_duration(one.timeout_ms),
        "timeout_ms": one.timeout_ms,
        "started": iso_time(one.started_ms),
        "started_ms": one.started_ms,
        "partitions": [str(place) for place in sorted(one.partitions)],
    }


def producer_row(one: ActiveProducer, now: int) -> Row:
    """A producer of a partition; `age` is how long it has not written."""
    return {
        "topic": one.partition.topic,
        "partition": one.partition.partition,
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "coordinator_epoch": one.coordinator_epoch,
        "last_sequence": one.last_sequence,
        "last_write": iso_time(one.last_timestamp_ms),
        "last_timestamp_ms": one.last_timestamp_ms,
        "age": format_duration(max(0, now - one.last_timestamp_ms)),
        "start_offset": one.start_offset,
    }
