"""`kctl perf consume`."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import typer

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.log_offsets import partitions_of
from kctl.admin.positions import resolve_positions
from kctl.cli.errors import ExitStatus
from kctl.cli.interrupts import ctrl_c_noted
from kctl.cli.options import KafkaText, session_of
from kctl.commands.perf.arguments import NumRecords, PrintMetrics, Settings, Topic
from kctl.commands.perf.running import consumer_properties, exit_status, progress, show_metrics
from kctl.model.offsets import END, START
from kctl.views.kafka_text.perf import consumer_lines, detailed_lines
from kctl.views.perf import CONSUMER_COLUMNS, INTERVAL_COLUMNS


def consume(
    ctx: typer.Context,
    topic: Topic,
    num_records: NumRecords = 100_000,
    from_latest: Annotated[
        bool, typer.Option("--from-latest", help="Read only new records.")
    ] = False,
    idle: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.1, help="Exit when no record arrives for this long."),
    ] = 10.0,
    detailed: Annotated[
        bool,
        typer.Option(
            "--show-detailed-stats", help="Also print the results of each --reporting-interval."
        ),
    ] = False,
    reporting_interval: Annotated[
        int, typer.Option(metavar="MS", min=1, help="Interval of --show-detailed-stats.")
    ] = 5000,
    print_metrics: PrintMetrics = False,
    settings: Settings = None,
    text_format: KafkaText = None,
) -> ExitStatus:
    """Measure consume throughput.

    Ctrl-C stops early and prints the results so far.
    """
    session = session_of(ctx)

    async def begin(client: Client) -> Mapping[TopicPartition, int]:
        found = await partitions_of(client, [topic])
        places = [TopicPartition(topic, partition) for partition in found[topic]]
        return (await resolve_positions(client, places, [END if from_latest else START]))[0]

    starts = ask(session, begin)
    # imports librdkafka
    from kctl.streaming.config import client_properties, refuse_commits_if_read_only
    from kctl.streaming.measuring import measure_consumer
    from kctl.streaming.statistics import ClientStatistics, Intervals

    started = datetime.now()
    properties = consumer_properties(client_properties(session, settings or []))
    refuse_commits_if_read_only(session, properties)
    statistics = ClientStatistics()
    if print_metrics:
        properties |= statistics.properties()
    parts = Intervals()
    with ctrl_c_noted() as interrupted, progress(num_records) as show:
        shown, every_s = (parts.add, reporting_interval / 1000) if detailed else (show, 1.0)
        result = measure_consumer(
            properties, starts, num_records, idle, shown, interrupted, every_s
        )
    if detailed:
        parts.add(result)
    if text_format:
        lines = detailed_lines(parts.rows) if detailed else None
        session.out.lines(lines or consumer_lines(result, started, datetime.now()))
    elif detailed and session.output.is_for_people:
        session.out.rows(parts.rows, INTERVAL_COLUMNS, name="time")
    if not text_format:
        more: dict[str, object] = {"metrics": statistics.metrics()} if print_metrics else {}
        more |= {"intervals": parts.rows} if detailed else {}
        session.out.record(result | more, CONSUMER_COLUMNS, name="records")
    show_metrics(session, statistics.metrics())
    return exit_status(interrupted)
