"""`kctl perf produce`."""

import uuid
from typing import Annotated

import typer

from kctl.admin.connection import ask
from kctl.admin.log_offsets import partitions_of
from kctl.cli.arguments.files import read_text
from kctl.cli.confirmation import refuse_if_read_only
from kctl.cli.errors import ExitStatus, usage, usage_error
from kctl.cli.interrupts import ctrl_c_noted
from kctl.cli.options import KafkaText, session_of
from kctl.commands.perf.arguments import (
    AcksOption,
    NumRecords,
    PrintMetrics,
    RecordSize,
    Settings,
    Topic,
)
from kctl.commands.perf.running import exit_status, progress, show_metrics
from kctl.records.lines import parse_separator
from kctl.streaming.choices import Acks, Compression
from kctl.views.kafka_text.perf import producer_line
from kctl.views.perf import PRODUCER_COLUMNS

DEFAULT_TRANSACTION_MS = 3000
"""As in kafka-producer-perf-test."""


def produce(
    ctx: typer.Context,
    topic: Topic,
    num_records: NumRecords = 100_000,
    record_size: RecordSize = 100,
    throughput: Annotated[
        float, typer.Option(help="Maximum records per second; -1 for no limit.")
    ] = -1,
    acks: AcksOption = Acks.ALL,
    compression: Annotated[
        Compression, typer.Option("-z", "--compression", help="Compression type.")
    ] = Compression.NONE,
    payload_file: Annotated[
        str | None,
        typer.Option(
            "--payload-file",
            metavar="FILE",
            help="Choose the records at random from the lines of this file; - is stdin.",
        ),
    ] = None,
    payload_delimiter: Annotated[
        str,
        typer.Option("--payload-delimiter", metavar="TEXT", help="Separator in --payload-file."),
    ] = "\\n",
    monotonic: Annotated[
        bool, typer.Option("--payload-monotonic", help="Send the values 0, 1, 2 …")
    ] = False,
    transactional_id: Annotated[
        str | None,
        typer.Option(
            help="Write in transactions with this transactional id (default: a random one, if "
            "--transaction-duration-ms is given).",
        ),
    ] = None,
    transaction_duration_ms: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Commit a transaction every N milliseconds (default with --transactional-id: "
            f"{DEFAULT_TRANSACTION_MS}).",
        ),
    ] = None,
    print_metrics: PrintMetrics = False,
    settings: Settings = None,
    text_format: KafkaText = None,
) -> ExitStatus:
    """Measure produce throughput and latency, by default with random records.

    Ctrl-C stops early and prints the results so far; an open transaction is aborted.
    """
    session = session_of(ctx)
    transaction = _transaction(transactional_id, transaction_duration_ms, acks)
    payloads = _payloads(payload_file, payload_delimiter, monotonic=monotonic)
    refuse_if_read_only(session)
    ask(session, lambda client: partitions_of(client, [topic]))  # fails early; creates no topic
    from kctl.streaming.config import client_properties  # imports librdkafka
    from kctl.streaming.measuring import Load, ProducerTest
    from kctl.streaming.statistics import ClientStatistics
    from kctl.streaming.waiting import AcknowledgementWatch

    properties = {
        "acks": acks,
        "compression.type": compression,
        "queue.buffering.max.messages": 1_000_000,
        **client_properties(session, settings or []),
    }
    statistics = ClientStatistics()
    if print_metrics:
        properties |= statistics.properties()
    if transaction:
        properties["transactional.id"] = transaction[0]
    per_s = throughput if throughput > 0 else None
    duration_s = transaction[1] if transaction else None
    load = Load(topic, num_records, record_size, per_s, payloads, monotonic, duration_s)
    with ctrl_c_noted() as interrupted, progress(num_records) as show:
        waiting = AcknowledgementWatch(session, limit_s=session.timeout).check
        result = ProducerTest(properties, load, show, interrupted, waiting).run()
    if text_format:
        session.out.lines([producer_line(result)])
    else:
        more = {"metrics": statistics.metrics()} if print_metrics else {}
        session.out.record({**result, **more}, PRODUCER_COLUMNS, name="records")
    show_metrics(session, statistics.metrics())
    return exit_status(interrupted)


def _transaction(
    transactional_id: str | None, duration_ms: int | None, acks: Acks
) -> tuple[str, float] | None:
    """Transactional id and duration in seconds; None without transactions."""
    if transactional_id is None and duration_ms is None:
        return None
    if acks is not Acks.ALL:
        raise usage_error(f"transactions need --acks all, not {acks}", "omit --acks")
    name = transactional_id or f"kctl-perf-{uuid.uuid4()}"
    return name, (duration_ms or DEFAULT_TRANSACTION_MS) / 1000


def _payloads(file: str | None, delimiter: str, *, monotonic: bool) -> tuple[bytes, ...]:
    """The records of a payload file; empty without one."""
    if file is None:
        return ()
    if monotonic:
        raise usage_error(
            "--payload-file cannot be combined with --payload-monotonic", "omit one of them"
        )
    ends = usage(parse_separator, delimiter)
    lines = [line for line in read_text(file).encode().split(ends) if line]
    if not lines:
        raise usage_error(f"{file} has no records", "it needs at least one line")
    return tuple(lines)
