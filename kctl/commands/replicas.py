"""`kctl replicas list` and `kctl replicas verify`."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated

import typer

from broker.model import TopicPartition, Uuid
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.describe_topics import topic_configs
from kctl.admin.log_offsets import list_offsets
from kctl.admin.replica_fetch import FetchSizes
from kctl.admin.replica_states import list_replicas
from kctl.admin.topic_selection import require_all_found
from kctl.admin.topics import find_topics
from kctl.cli.arguments.amounts import parse_bytes
from kctl.cli.arguments.partitions import no_partition_matches, parse_timestamp
from kctl.cli.arguments.topics import KAFKA_PANEL, Regex, Selection, TopicNames, select
from kctl.cli.command_tree import command, noun
from kctl.cli.errors import ExitStatus
from kctl.cli.missing import no_such_broker
from kctl.cli.options import KafkaText, Session, session_of
from kctl.cli.tables import partition_name
from kctl.model.replica_checks import ReplicaComparison
from kctl.model.replicas import ReplicaState
from kctl.model.topics import Topic
from kctl.operations.replica_verification import compare_once
from kctl.plans.replica_comparison import ReplicaCheck
from kctl.views.kafka_text.replica_verification import finding_lines, lag_line, start_line
from kctl.views.quantities import plural
from kctl.views.replica_checks import COLUMNS, comparison_row
from kctl.views.replicas import COLUMNS as LIST_COLUMNS
from kctl.views.replicas import replica_row

app = noun("List the replicas of partitions; verify that they are identical.")

AT_ONCE = 16
"""Partitions that are read at a time; limits the memory."""
IDLE_PAUSE_S = 0.2
PATIENCE = 4
"""Rounds without progress after which a replica counts as lagging."""


@command(
    app,
    "list",
    examples=[
        "kctl replicas list orders",
        "kctl replicas list orders --out-of-sync",
        "kctl replicas list 'orders.*' --regex --broker 2 -o json",
    ],
)
def list_all(
    ctx: typer.Context,
    names: TopicNames = None,
    regex: Regex = False,
    brokers: Annotated[
        list[int] | None,
        typer.Option("--broker", min=0, help="Only replicas on this broker; can be repeated."),
    ] = None,
    out_of_sync: Annotated[
        bool, typer.Option("--out-of-sync", help="Only replicas that are not in the ISR.")
    ] = False,
) -> None:
    """List replicas with their role, log start, high watermark (HW) and log end offset (LEO).

    Every broker is queried for its own replicas, so followers are shown as they are, not as the
    leader knows them. STATUS is isr, or osr for a replica that is out of sync. LAG is the number of
    records that the leader has and the replica does not. Replicas on a broker that does not answer
    are listed without offsets.
    """
    session = session_of(ctx)
    wanted = select(names or [], regex=regex)

    async def query(client: Client) -> list[ReplicaState]:
        found = await find_topics(client, wanted.exact_names)
        chosen = set(wanted.pick(topic.name for topic in found))
        topics = [topic for topic in found if topic.name in chosen]
        require_all_found(wanted, topics)
        states = await list_replicas(client, topics)
        # A broker that is down is in no metadata any more, but has its replicas.
        known = {*client.cluster.nodes, *(state.broker for state in states)}
        if missing := set(brokers or ()) - known:
            raise no_such_broker(missing, known)
        return states

    states = [
        state
        for state in ask(session, query, partial=True)
        if state.broker in (brokers or (state.broker,)) and not (out_of_sync and state.is_in_sync)
    ]
    session.out.rows(map(replica_row, states), LIST_COLUMNS, name=partition_name)


@command(
    app,
    "verify",
    examples=[
        "kctl replicas verify orders",
        "kctl replicas verify --time -1h -o json",
        "kctl replicas verify 'orders.*' --regex",
        "kctl replicas verify --topics-include orders --format kafka",
    ],
)
def verify(
    ctx: typer.Context,
    names: TopicNames = None,
    regex: Regex = False,
    since: Annotated[
        str,
        typer.Option(
            "--time",
            metavar="WHEN",
            help="Where to start: earliest, or a time (ISO 8601, milliseconds, -1h).",
        ),
    ] = "earliest",
    fetch_size: Annotated[
        str, typer.Option("--fetch-size", metavar="BYTES", help="Bytes per fetch and partition.")
    ] = "1MiB",
    max_wait_ms: Annotated[
        int,
        typer.Option(
            "--max-wait-ms", min=0, help="How long a broker may wait for data, in milliseconds."
        ),
    ] = 500,
    report_interval_ms: Annotated[
        int | None,
        typer.Option(
            "--report-interval-ms",
            metavar="N",
            min=1,
            help="Continue with new records until Ctrl-C, and report every N milliseconds.",
        ),
    ] = None,
    text_format: KafkaText = None,
    topics_include: Annotated[
        str | None,
        typer.Option(
            "--topics-include",
            metavar="REGEX",
            help="Same as TOPIC --regex.",
            rich_help_panel=KAFKA_PANEL,
        ),
    ] = None,
) -> ExitStatus:
    """Read all replicas of partitions and compare them, up to the current high watermark.

    Offsets and checksums of batches must be equal and the checksums valid; in compacted topics,
    records at the same offset must be equal. Status 3 if replicas differ, lag or are missing. If a
    broker does not answer, the other replicas are compared, and the status is 4.
    """
    session = session_of(ctx)
    wanted = select(names, regex=regex, kafka_topic=topics_include)
    sizes = FetchSizes(parse_bytes(fetch_size, "--fetch-size"), max_wait_ms)
    timestamp = parse_timestamp(since)
    checks, ids = ask(session, lambda client: _begin(client, wanted, timestamp), partial=True)
    if not checks and not session.unanswered:
        raise no_partition_matches(*(names or ()), topics_include)
    if text_format:
        session.out.lines([start_line(datetime.now())])
    try:
        while True:
            for group in _groups(checks):
                _compare(session, group, ids, sizes)
            results = [check.result() for check in checks]
            status = _show(session, results, as_kafka=bool(text_format))
            if report_interval_ms is None:
                return status
            time.sleep(report_interval_ms / 1000)
            checks = [check.next_part() for check in checks]
    except KeyboardInterrupt:
        raise typer.Exit(ExitStatus.INTERRUPTED) from None


async def _begin(
    client: Client, wanted: Selection, timestamp: int
) -> tuple[list[ReplicaCheck], dict[str, Uuid]]:
    """The checks of all partitions, at their start offsets."""
    found = await find_topics(client, wanted.exact_names)
    chosen = set(wanted.pick(topic.name for topic in found))
    topics = [topic for topic in found if topic.name in chosen]
    require_all_found(wanted, topics)
    partitions = [TopicPartition(t.name, p.id) for t in topics for p in t.partitions]
    starts = await list_offsets(client, dict.fromkeys(partitions, timestamp))
    compacted = await _compacted(client, topics)
    checks = [
        ReplicaCheck(key, partition.replicas, starts[key].offset, topic.name in compacted)
        for topic in topics
        for partition in topic.partitions
        # Partitions without a leader are skipped; -1: no record is that recent.
        if (key := TopicPartition(topic.name, partition.id)) in starts and starts[key].offset >= 0
    ]
    return checks, {topic.name: topic.topic_id or Uuid.ZERO for topic in topics}


async def _compacted(client: Client, topics: Sequence[Topic]) -> set[str]:
    configs = await topic_configs(client, topics) if topics else {}
    return {
        name
        for name, settings in configs.items()
        for setting in settings
        if setting.name == "cleanup.policy" and "compact" in (setting.value or "")
    }


def _groups(checks: Sequence[ReplicaCheck]) -> Iterator[Sequence[ReplicaCheck]]:
    return (checks[at : at + AT_ONCE] for at in range(0, len(checks), AT_ONCE))


def _compare(
    session: Session, group: Sequence[ReplicaCheck], ids: Mapping[str, Uuid], sizes: FetchSizes
) -> None:
    """Complete the checks of a group, in queries of limited duration."""

    async def some_rounds(client: Client) -> int:
        idle = 0
        stop_s = time.monotonic() + session.timeout / 2
        while time.monotonic() < stop_s:
            going = [check for check in group if not check.is_over]
            if not going or idle == PATIENCE:
                return PATIENCE
            idle = 0 if await compare_once(client, going, ids, sizes) else idle + 1
            # Followers learn of a new high watermark only with their next fetch.
            await asyncio.sleep(IDLE_PAUSE_S if idle else 0)
        return idle

    while ask(session, some_rounds, partial=True) < PATIENCE:
        continue


def _show(session: Session, results: Sequence[ReplicaComparison], *, as_kafka: bool) -> ExitStatus:
    if as_kafka:
        now = datetime.now()
        lag_lines = [lag_line(now, results)] if results else []
        session.out.lines([*finding_lines(now, results), *lag_lines])
    else:
        session.out.rows(map(comparison_row, results), COLUMNS, name=partition_name)
        session.out.note(_summary(results))
    is_well = all(result.status in {"same", "incomplete"} for result in results)
    return ExitStatus.OK if is_well else ExitStatus.FOUND


def _summary(results: Sequence[ReplicaComparison]) -> str:
    worst = max(results, key=lambda result: result.lag, default=None)
    compared = f"{plural(len(results), 'partition')} compared"
    if worst is None:
        return compared
    where = f" ({worst.partition})" if worst.lag else ""
    return f"{compared}; max lag {worst.lag}{where}"
