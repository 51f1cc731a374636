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
from kctl.commands.perf.arguments import NumRecords, Settings, Topic
from kctl.commands.perf.running import consumer_properties, exit_status, progress
from kctl.model.offsets import END, START
from kctl.views.kafka_text.perf import consumer_lines
from kctl.views.perf import CONSUMER_COLUMNS


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

    started = datetime.now()
    properties = consumer_properties(client_properties(session, settings or []))
    refuse_commits_if_read_only(session, properties)
    with ctrl_c_noted() as interrupted, progress(num_records) as show:
        result = measure_consumer(properties, starts, num_records, idle, show, interrupted)
    if text_format:
        session.out.lines(consumer_lines(result, started, datetime.now()))
    else:
        session.out.record(result, CONSUMER_COLUMNS, name="records")
    return exit_status(interrupted)
