"""`kctl verify produce`."""

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.admin.connection import ask
from kctl.admin.log_offsets import partitions_of
from kctl.cli.arguments.amounts import INT64_MAX
from kctl.cli.confirmation import refuse_if_read_only
from kctl.cli.errors import CliError, ExitStatus, usage_error
from kctl.cli.interrupts import TERMINATION, ctrl_c_noted
from kctl.cli.options import KafkaText, Session, session_of
from kctl.commands.perf.arguments import AcksOption, Settings
from kctl.streaming.choices import Acks
from kctl.views.kafka_text.verifiable import event, text_of
from kctl.views.verify import PRODUCE_COLUMNS

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

Topic = Annotated[
    str | None, typer.Argument(metavar="TOPIC", help="Topic to use.", show_default=False)
]
TopicOption = Annotated[str | None, typer.Option("--topic", metavar="TOPIC", hidden=True)]
NO_LIMIT = -1


def produce(
    ctx: typer.Context,
    topic: Topic = None,
    topic_option: TopicOption = None,
    records: Annotated[
        int,
        typer.Option(
            "-n",
            "--num-records",
            "--max-messages",
            min=NO_LIMIT,
            metavar="N",
            help="Number of records; -1: until Ctrl-C.",
        ),
    ] = NO_LIMIT,
    throughput: Annotated[
        float, typer.Option(metavar="N", help="Maximum records per second; -1 for no limit.")
    ] = NO_LIMIT,
    acks: AcksOption = Acks.ALL,
    prefix: Annotated[
        str | None,
        typer.Option(
            "--value-prefix",
            metavar="PREFIX",
            help="Write PREFIX.0, PREFIX.1 …: one prefix for each of several producers.",
        ),
    ] = None,
    keys: Annotated[
        int | None,
        typer.Option(
            "--repeating-keys", min=1, metavar="N", help="Use keys 0 to N-1 in turn; default: none."
        ),
    ] = None,
    create_time: Annotated[
        int | None,
        typer.Option(
            "--message-create-time",
            min=0,
            max=INT64_MAX // 2,
            metavar="MS",
            help="Timestamp of the first record; the next ones follow by a millisecond.",
        ),
    ] = None,
    settings: Settings = None,
    text_format: KafkaText = None,
) -> ExitStatus:
    """Write the records 0, 1, 2 … to an existing topic and count which were acknowledged.

    kctl verify consume finds lost and duplicate ones. Fails if a record was not acknowledged. With
    --format kafka, prints a JSON line per record, as kafka-verifiable-producer does.
    """
    session = session_of(ctx)
    name = required_topic(topic, topic_option)
    refuse_if_read_only(session)
    ask(session, lambda client: partitions_of(client, [name]))  # fails early; creates no topic
    from kctl.streaming.config import client_properties  # imports librdkafka
    from kctl.streaming.verifying import NumberedLoad, NumberedProducer
    from kctl.streaming.waiting import AcknowledgementWatch

    load = NumberedLoad(
        name,
        None if records == NO_LIMIT else records,
        throughput if throughput > 0 else None,
        prefix or "",
        keys,
        create_time,
    )
    properties = {"acks": acks, **client_properties(session, settings or [])}
    tally = _Tally(session, is_kafka=bool(text_format))
    waiting = AcknowledgementWatch(session, limit_s=session.timeout).check
    producer = NumberedProducer(properties, load, tally.delivered, waiting)
    if text_format:
        session.out.lines([event("startup_complete")])
    stalled: CliError | None = None
    with ctrl_c_noted(*TERMINATION) as interrupted:
        try:
            producer.run(interrupted)
        except CliError as error:
            if error.status is not ExitStatus.TIMED_OUT:
                raise
            stalled = error
    per_s = producer.sent / producer.seconds if producer.seconds else 0.0
    if text_format:
        fields = {"sent": producer.sent, "acked": tally.acked, "target_throughput": int(throughput)}
        session.out.lines(
            [event("shutdown_complete"), event("tool_data", **fields, avg_throughput=per_s)]
        )
    else:
        report: dict[str, object] = {
            "topic": name,
            "sent": producer.sent,
            "acked": tally.acked,
            "failed": tally.failed,
            "first_error": tally.first_error or None,
            "records_per_s": round(per_s, 1),
            "partitions": {str(one): tally.partitions[one] for one in sorted(tally.partitions)},
        }
        session.out.record(report, PRODUCE_COLUMNS, name="acked")
    if stalled:
        raise stalled
    if tally.acked < producer.sent:
        raise CliError(
            f"{producer.sent - tally.acked} of {producer.sent} records were not acknowledged: "
            f"{tally.first_error}"
        )
    return ExitStatus.INTERRUPTED if interrupted.is_set() and records >= 0 else ExitStatus.OK


def required_topic(argument: str | None, option: str | None) -> str:
    """The topic, from either place; usage error if there is no topic, or two."""
    if not (argument or option) or (argument and option):
        raise usage_error("specify one topic", "e.g. kctl verify produce orders -n 1000")
    return argument or option or ""


class _Tally:
    """Counts the outcomes of records, and prints them as the tool does."""

    def __init__(self, session: Session, *, is_kafka: bool) -> None:
        self.acked = self.failed = 0
        self.first_error = ""
        self.partitions: Counter[int] = Counter()
        self._out = session.out
        self._is_kafka = is_kafka

    def delivered(self, error: "KafkaError | None", message: "Message") -> None:
        fields: dict[str, object] = {
            "key": text_of(message.key()),
            "value": text_of(message.value()),
        }
        if error is not None:
            self.failed += 1
            self.first_error = self.first_error or f"{error.str()} ({error.name()})"
            fields |= {"topic": message.topic(), "exception": error.name(), "message": error.str()}
        else:
            self.acked += 1
            self.partitions[message.partition() or 0] += 1
            fields |= {"offset": message.offset(), "topic": message.topic()}
            fields["partition"] = message.partition()
        if self._is_kafka:
            name = "producer_send_success" if error is None else "producer_send_error"
            self._out.lines([event(name, **fields)])
