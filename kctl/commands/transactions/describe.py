"""`kctl transactions list`, `describe`, `producers` and `hanging`."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Annotated

import typer

from broker.model import TopicPartition
from broker.net.client import Client
from broker.topic_names import TRANSACTION_STATE_TOPIC
from kctl.admin.connection import ask
from kctl.admin.log_offsets import partitions_of, require_partitions
from kctl.admin.topics import find_topics, live_brokers
from kctl.admin.transactions import describe_producers, describe_transactions, list_transactions
from kctl.cli.errors import CliError, ExitStatus, usage
from kctl.cli.missing import no_such_broker
from kctl.cli.options import KafkaText, Session, session_of
from kctl.cli.times import now_ms, parse_duration_ms
from kctl.commands.transactions.arguments import (
    BrokerId,
    PartitionOption,
    Places,
    TopicOption,
    named_places,
    parse_states,
)
from kctl.model.transactions import ActiveProducer, Transaction, TransactionFilter
from kctl.plans.hanging import hanging, overdue
from kctl.views.kafka_text.transactions import (
    describe_lines,
    hanging_lines,
    list_lines,
    producers_lines,
)
from kctl.views.transactions import (
    DESCRIBE_COLUMNS,
    HANGING_COLUMNS,
    LIST_COLUMNS,
    PRODUCER_COLUMNS,
    list_row,
    producer_row,
    transaction_row,
)

DEFAULT_MAX_TIMEOUT_MIN = 15
"""Kafka's default of `transaction.max.timeout.ms`."""
_MINUTE_MS = 60_000


def list_all(
    ctx: typer.Context,
    states: Annotated[
        list[str] | None,
        typer.Option("--state", help="Only transactions in this state; can be repeated."),
    ] = None,
    producer_ids: Annotated[
        list[int] | None,
        typer.Option(
            "--producer-id", help="Only transactions of this producer id; can be repeated."
        ),
    ] = None,
    longer_than: Annotated[
        str | None,
        typer.Option(
            "--longer-than", metavar="DURATION", help="Only transactions open for longer, e.g. 5m."
        ),
    ] = None,
    duration_filter: Annotated[
        int | None,
        typer.Option(
            "--duration-filter", hidden=True, help="Same as --longer-than, in milliseconds."
        ),
    ] = None,
    text_format: KafkaText = None,
) -> None:
    """List transactional ids and the states of their transactions."""
    session = session_of(ctx)
    longer_ms = -1 if duration_filter is None else duration_filter
    if longer_than:
        longer_ms = usage(parse_duration_ms, longer_than)
    wanted = TransactionFilter(parse_states(states or ()), tuple(producer_ids or ()), longer_ms)
    found = ask(session, lambda client: list_transactions(client, wanted), partial=True)
    if text_format:
        session.out.lines(list_lines(found))
        return
    ordered = sorted(found, key=lambda one: one.transactional_id)
    session.out.rows(map(list_row, ordered), LIST_COLUMNS, name="transactional_id")


def describe(
    ctx: typer.Context,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID…", help="Transactional ids.")
    ] = None,
    id_option: Annotated[
        list[str] | None,
        typer.Option("--transactional-id", hidden=True, help="Same as ID, as in Kafka's tool."),
    ] = None,
    all_ids: Annotated[
        bool, typer.Option("-A", "--all", help="All transactional ids of the cluster.")
    ] = False,
    text_format: KafkaText = None,
) -> None:
    """Describe transactions: duration, timeout, and partitions without a marker."""
    session = session_of(ctx)
    wanted = [*(ids or []), *(id_option or [])]
    if not wanted and not all_ids:
        raise CliError(
            "no transactional id specified",
            "name some, or use --all; kctl transactions list shows them",
            ExitStatus.USAGE,
        )

    async def question(client: Client) -> list[Transaction]:
        names = wanted
        if all_ids:
            names = sorted(one.transactional_id for one in await list_transactions(client))
        found = await describe_transactions(client, names)
        if missing := [name for name in wanted if name in found and found[name] is None]:
            raise CliError(
                f"no such transactional id: {missing[0]!r}",
                "kctl transactions list shows the transactional ids",
            )
        return [one for name in names if (one := found.get(name)) is not None]

    found, now = ask(session, question, partial=True), now_ms()
    if text_format:
        for transaction in found:
            session.out.lines(describe_lines(transaction, now))
        return
    rows = [transaction_row(one, now) for one in found]
    session.out.rows(rows, DESCRIBE_COLUMNS, name="transactional_id")


def producers(
    ctx: typer.Context,
    places: Places = None,
    topic: TopicOption = None,
    partition: PartitionOption = None,
    broker_id: BrokerId = None,
    text_format: KafkaText = None,
) -> None:
    """Show the producers of partitions and the start of their open transactions."""
    session = session_of(ctx)
    wanted = named_places(places, topic, partition)
    if not wanted:
        raise CliError(
            "no partition specified", "e.g. orders:0, or orders for all", ExitStatus.USAGE
        )

    async def question(client: Client) -> list[ActiveProducer]:
        known = await partitions_of(client, wanted)
        partitions = _partitions(known, wanted)
        await require_partitions(client, partitions)
        await _require_broker(client, broker_id)
        return await describe_producers(client, partitions, broker_id)

    found = ask(session, question, partial=True)
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
            help="The cluster's maximum transaction timeout, in minutes.",
        ),
    ] = DEFAULT_MAX_TIMEOUT_MIN,
    text_format: KafkaText = None,
) -> ExitStatus:
    """Find transactions that will never end and block read_committed consumers.

    Searches all partitions unless topics, partitions or a broker are given. Status 3 if any are
    found; `kctl transactions abort` ends them. If a broker does not answer, transactions that only
    it can know are not counted as hanging; a message lists them. Partitions without a leader are
    not searched, which is status 1.
    """
    session = session_of(ctx)
    wanted = named_places(places, topic, partition)
    now = now_ms()

    async def question(client: Client) -> HangingSearch:
        partitions, leaderless = await _searched(client, wanted, broker_id)
        active = await describe_producers(client, partitions, broker_id)
        candidates = overdue(active, now, max_timeout_min * _MINUTE_MS)
        known = await _known(client, candidates)
        coordinators = await _coordinators(client) if candidates else set()
        return HangingSearch(hanging(candidates, known), set(known), coordinators, leaderless)

    search = ask(session, question, partial=True)
    found, unverified = search.result(session.unanswered.keys())
    if unverified:
        places_text = ", ".join(sorted(str(one.partition) for one in unverified))
        session.out.note(
            f"not verified, because a coordinator did not answer: long open in {places_text}"
        )
    if text_format:
        session.out.lines(hanging_lines(found, now))
        return _status(session, search, is_found=False)
    rows = [producer_row(one, now) for one in sorted(found, key=lambda one: one.partition)]
    session.out.rows(rows, HANGING_COLUMNS, name="producer_id")
    if not found and not unverified:
        is_complete = not session.unanswered and not search.leaderless
        where = "" if is_complete else " where it was possible to search"
        session.out.note(f"no hanging transactions found{where}")
    return _status(session, search, is_found=bool(found))


def _status(session: Session, search: "HangingSearch", *, is_found: bool) -> ExitStatus:
    """3 if any were found, 1 if partitions could not be searched; reports those."""
    if search.leaderless:
        names = ", ".join(map(str, sorted(search.leaderless)))
        session.out.note(f"not searched, because there is no leader: {names}")
    if is_found:
        return ExitStatus.FOUND
    return ExitStatus.FAILED if search.leaderless else ExitStatus.OK


@dataclass(frozen=True)
class HangingSearch:
    """What a search for hanging transactions found; in a partial query, some may be healthy."""

    hanging: Sequence[ActiveProducer]
    known_ids: Set[int]
    """Producer ids whose coordinator described the transaction."""
    coordinators: Set[int]
    """Brokers that lead a partition of __transaction_state."""
    leaderless: Sequence[TopicPartition]
    """Partitions that could not be searched."""

    def result(self, silent: Set[int]) -> tuple[list[ActiveProducer], list[ActiveProducer]]:
        """Hanging transactions, and those that a coordinator among `silent` may know."""
        is_complete = self.coordinators.isdisjoint(silent)
        found = [one for one in self.hanging if is_complete or one.producer_id in self.known_ids]
        return found, [one for one in self.hanging if one not in found]


async def _coordinators(client: Client) -> set[int]:
    """The brokers that coordinate transactions."""
    topics = await find_topics(client, [TRANSACTION_STATE_TOPIC])
    leaders = {one.leader for topic in topics for one in topic.partitions}
    return {leader for leader in leaders if leader is not None}


async def _require_broker(client: Client, broker_id: int | None) -> None:
    """CliError if the broker is not in the cluster."""
    if broker_id is not None and broker_id not in (live := await live_brokers(client)):
        raise no_such_broker([broker_id], live)


async def _searched(
    client: Client, wanted: dict[str, list[int] | None], broker_id: int | None
) -> tuple[list[TopicPartition], list[TopicPartition]]:
    """The partitions to search: the given ones or all; with a broker, those it replicates.

    Then those that cannot be searched, because they have no leader and no broker is given.
    """
    await _require_broker(client, broker_id)
    if wanted:
        known = await partitions_of(client, wanted)  # a topic that does not exist is an error
        await require_partitions(client, _partitions(known, wanted))
    topics = await find_topics(client, list(wanted) or None)
    searched: list[TopicPartition] = []
    leaderless: list[TopicPartition] = []
    for topic in topics:
        for one in topic.partitions:
            if broker_id is not None and broker_id not in one.replicas:
                continue
            if one.id in (wanted.get(topic.name) or [one.id]):
                is_led = broker_id is not None or one.leader is not None
                (searched if is_led else leaderless).append(TopicPartition(topic.name, one.id))
    return searched, leaderless


async def _known(client: Client, candidates: Sequence[ActiveProducer]) -> dict[int, Transaction]:
    """The coordinators' transactions of the candidates, by producer id."""
    ids = tuple({one.producer_id for one in candidates})
    if not ids:
        return {}
    listed = await list_transactions(client, TransactionFilter(producer_ids=ids))
    found = await describe_transactions(client, [one.transactional_id for one in listed])
    return {
        one.producer_id: transaction
        for one in listed
        if (transaction := found.get(one.transactional_id)) is not None
    }


def _partitions(
    known: dict[str, list[int]], wanted: dict[str, list[int] | None]
) -> list[TopicPartition]:
    return [
        TopicPartition(topic, number)
        for topic, numbers in wanted.items()
        for number in (known[topic] if numbers is None else numbers)
    ]
