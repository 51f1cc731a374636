"""`kctl perf`: measure a cluster with real clients."""

import sys
from collections.abc import Mapping
from datetime import datetime
from threading import Event
from typing import Annotated

import typer

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.log_offsets import known_partitions, partitions_of
from kctl.admin.positions import resolve_positions
from kctl.confirm import refuse_if_read_only
from kctl.errors import ExitStatus
from kctl.groups import command, noun
from kctl.kafka_text.perf import consumer_lines, latency_lines, producer_line
from kctl.options import KafkaText, Session, session_of
from kctl.records.position import END, START
from kctl.streaming.choices import Acks, Compression
from kctl.streaming.interrupts import ctrl_c_noted
from kctl.tables import Column

app = noun("Measure how fast a cluster writes and reads.")

RATES = [
    Column("records", "Records"),
    Column("bytes", "Bytes"),
    Column("seconds", "Seconds"),
    Column("records_per_s", "Records/s"),
    Column("mb_per_s", "MB/s"),
]
LATENCIES = [
    Column("avg_ms", "Latency avg (ms)"),
    Column("p50_ms", "50 %"),
    Column("p95_ms", "95 %"),
    Column("p99_ms", "99 %"),
    Column("p99.9_ms", "99.9 %"),
    Column("max_ms", "Max"),
]

Topic = Annotated[str, typer.Argument(help="The topic to measure with.")]
NumRecords = Annotated[
    int, typer.Option("-n", "--num-records", "--messages", min=1, help="How many records.")
]
RecordSize = Annotated[int, typer.Option("-s", "--record-size", min=0, help="Bytes per record.")]
AcksOption = Annotated[
    Acks, typer.Option("-a", "--acks", help="Who must have a record before it counts.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("-X", "--property", metavar="KEY=VALUE", help="A setting of librdkafka."),
]


@command(
    app,
    "produce",
    examples=[
        "kctl perf produce load --num-records 10000 --record-size 100",
        "kctl perf produce load -n 1000 --throughput 5000 --acks 1 -z lz4 -o json",
    ],
)
def produce(
    ctx: typer.Context,
    topic: Topic,
    num_records: NumRecords = 100_000,
    record_size: RecordSize = 100,
    throughput: Annotated[
        float, typer.Option(help="Records per second; -1 is as many as can be.")
    ] = -1,
    acks: AcksOption = Acks.ALL,
    compression: Annotated[
        Compression, typer.Option("-z", "--compression", help="How batches are compressed.")
    ] = Compression.NONE,
    settings: Settings = None,
    text_format: KafkaText = None,
) -> ExitStatus:
    """Write random records; how many per second, and how long each took.

    Ctrl-C ends it early, with what was measured until then.
    """
    session = session_of(ctx)
    refuse_if_read_only(session)
    ask(session, lambda client: known_partitions(client, [topic]))  # fails soon if it must
    from kctl.streaming.config import client_properties  # librdkafka, when it is needed
    from kctl.streaming.measuring import Load, ProducerTest

    properties = {
        "acks": acks,
        "compression.type": compression,
        "queue.buffering.max.messages": 1_000_000,
        **client_properties(session, settings or []),
    }
    load = Load(topic, num_records, record_size, throughput if throughput > 0 else None)
    with ctrl_c_noted() as interrupted:
        result = ProducerTest(properties, load, _progress(session), interrupted).run()
    if text_format:
        session.out.lines([producer_line(result)])
    else:
        session.out.record(result, [*RATES, *LATENCIES], name="records")
    return _status(interrupted)


@command(
    app,
    "consume",
    examples=[
        "kctl perf consume load --num-records 10000",
        "kctl perf consume load -n 1000 -o json",
    ],
)
def consume(
    ctx: typer.Context,
    topic: Topic,
    num_records: NumRecords = 100_000,
    from_latest: Annotated[
        bool, typer.Option("--from-latest", help="Wait for new records only.")
    ] = False,
    idle: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="Stop when nothing came for so long.")
    ] = 10.0,
    settings: Settings = None,
    text_format: KafkaText = None,
) -> ExitStatus:
    """Read records and throw them away; how many per second.

    Ctrl-C ends it early, with what was measured until then.
    """
    session = session_of(ctx)

    async def begin(client: Client) -> Mapping[TopicPartition, int]:
        found = await partitions_of(client, [topic])
        places = [TopicPartition(topic, partition) for partition in found[topic]]
        return (await resolve_positions(client, places, [END if from_latest else START]))[0]

    starts = ask(session, begin)
    from kctl.streaming.config import client_properties  # librdkafka, when it is needed
    from kctl.streaming.measuring import measure_consumer

    started = datetime.now()
    properties = _consumer_properties(client_properties(session, settings or []))
    with ctrl_c_noted() as interrupted:
        result = measure_consumer(
            properties, starts, num_records, idle, _progress(session), interrupted
        )
    if text_format:
        session.out.lines(consumer_lines(result, started, datetime.now()))
    else:
        session.out.record(result, [*RATES, Column("joining_s", "Until first")], name="records")
    return _status(interrupted)


@command(
    app,
    "latency",
    examples=["kctl perf latency load --num-records 20 --acks 1"],
)
def latency(
    ctx: typer.Context,
    topic: Topic,
    num_records: NumRecords = 1000,
    record_size: RecordSize = 100,
    acks: AcksOption = Acks.ALL,
    settings: Settings = None,
    text_format: KafkaText = None,
) -> ExitStatus:
    """Send one record at a time and wait for it: how long it takes from end to end.

    Ctrl-C ends it early, with what was measured until then.
    """
    session = session_of(ctx)
    refuse_if_read_only(session)
    ask(session, lambda client: partitions_of(client, [topic]))
    from kctl.streaming.config import client_properties  # librdkafka, when it is needed
    from kctl.streaming.measuring import Load, measure_latency

    shared = client_properties(session, settings or [])
    sending = {"acks": acks, "linger.ms": 0, **shared}
    load = Load(topic, num_records, record_size)
    reading = _consumer_properties(shared)
    with ctrl_c_noted() as interrupted:
        result = measure_latency(sending, reading, load, session.timeout, interrupted)
    if text_format:
        session.out.lines(latency_lines(result))
    else:
        session.out.record(result, [Column("records", "Records"), *LATENCIES], name="records")
    return _status(interrupted)


def _status(interrupted: Event) -> ExitStatus:
    return ExitStatus.INTERRUPTED if interrupted.is_set() else ExitStatus.OK


def _consumer_properties(shared: dict[str, object]) -> dict[str, object]:
    own: dict[str, object] = {
        "group.id": "kctl-perf",
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 100,
        "auto.offset.reset": "earliest",
    }
    return own | shared


class _Silence:
    """Nothing is shown while it runs."""

    def __call__(self, result: Mapping[str, float]) -> None:
        """Show nothing."""


class _LiveLine:
    """A line on the terminal for every second."""

    def __init__(self, session: Session) -> None:
        self._out = session.out

    def __call__(self, result: Mapping[str, float]) -> None:
        """Show how it stands."""
        line = f"{result['records']:,.0f} records, {result['records_per_s']:,.0f}/s, "
        line += f"{result['mb_per_s']:.1f} MB/s"
        if "p99_ms" in result:
            line += f", latency 50 % {result['p50_ms']:.1f} ms, 99 % {result['p99_ms']:.1f} ms"
        self._out.note(line)


def _progress(session: Session) -> _LiveLine | _Silence:
    return _LiveLine(session) if sys.stderr.isatty() else _Silence()
