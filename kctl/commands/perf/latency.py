"""`kctl perf latency`."""

import typer

from kctl.admin.connection import ask
from kctl.admin.log_offsets import partitions_of
from kctl.cli.confirmation import refuse_if_read_only
from kctl.cli.errors import ExitStatus
from kctl.cli.interrupts import ctrl_c_noted
from kctl.cli.options import KafkaText, session_of
from kctl.commands.perf.arguments import AcksOption, NumRecords, RecordSize, Settings, Topic
from kctl.commands.perf.running import consumer_properties, exit_status
from kctl.streaming.choices import Acks
from kctl.views.kafka_text.perf import latency_lines
from kctl.views.perf import LATENCY_COLUMNS


def latency(
    ctx: typer.Context,
    topic: Topic,
    num_records: NumRecords = 1000,
    record_size: RecordSize = 100,
    acks: AcksOption = Acks.ALL,
    settings: Settings = None,
    text_format: KafkaText = None,
) -> ExitStatus:
    """Measure end-to-end latency: write a record, wait until it is read, repeat.

    Ctrl-C stops early and prints the results so far.
    """
    session = session_of(ctx)
    refuse_if_read_only(session)
    ask(session, lambda client: partitions_of(client, [topic]))
    from kctl.streaming.config import client_properties  # imports librdkafka
    from kctl.streaming.measuring import Load, measure_latency

    shared = client_properties(session, settings or [])
    sending = {"acks": acks, "linger.ms": 0, **shared}
    load = Load(topic, num_records, record_size)
    reading = consumer_properties(shared)
    with ctrl_c_noted() as interrupted:
        result = measure_latency(sending, reading, load, session.timeout, interrupted)
    if text_format:
        session.out.lines(latency_lines(result))
    else:
        session.out.record(result, LATENCY_COLUMNS, name="records")
    return exit_status(interrupted)
