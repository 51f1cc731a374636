"""`kctl verify consume`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.log_offsets import log_ends, log_starts, partitions_of
from kctl.cli.confirmation import refuse_if_read_only
from kctl.cli.errors import ExitStatus, usage_error
from kctl.cli.interrupts import TERMINATION, ctrl_c_noted
from kctl.cli.options import KafkaText, Session, session_of
from kctl.commands.perf.arguments import Settings
from kctl.commands.verify.produce import NO_LIMIT, Topic, TopicOption, required_topic
from kctl.model.numbered import Numbered
from kctl.streaming.choices import IsolationLevel
from kctl.views.kafka_text.verifiable import committed, counted, event, places, text_of
from kctl.views.verify import CONSUME_COLUMNS, consume_report

if TYPE_CHECKING:
    from confluent_kafka import Message

Offsets = Mapping[TopicPartition, int]


def consume(
    ctx: typer.Context,
    topic: Topic = None,
    topic_option: TopicOption = None,
    expect: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Number of records that each producer sent; detects records lost at the end.",
        ),
    ] = None,
    isolation: Annotated[
        IsolationLevel, typer.Option("--isolation-level", help="Isolation level.")
    ] = IsolationLevel.READ_COMMITTED,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            "--group-id",
            metavar="GROUP",
            help="With --format kafka: the consumer group, which commits offsets.",
        ),
    ] = None,
    records: Annotated[
        int,
        typer.Option(
            "--max-messages",
            min=NO_LIMIT,
            metavar="N",
            help="With --format kafka: stop after N records; -1: at Ctrl-C.",
        ),
    ] = NO_LIMIT,
    reset_policy: Annotated[
        str,
        typer.Option("--reset-policy", hidden=True, metavar="earliest|latest|none"),
    ] = "earliest",
    settings: Settings = None,
    text_format: KafkaText = None,
) -> ExitStatus:
    """Read a topic to its end and find records of kctl verify produce that are lost or duplicate.

    RESULT is exact if each number arrived exactly once, and nothing else; otherwise the exit status
    is 3. GAPS lists ranges of missing numbers. With --format kafka, reads as a member of a group
    and prints JSON lines as kafka-verifiable-consumer does; -v adds a line per record.
    """
    session = session_of(ctx)
    name = required_topic(topic, topic_option)
    if text_format:
        return _as_kafka(session, name, group, records, reset_policy, settings or [])
    if group:
        raise usage_error("--group needs --format kafka", "without it, no group is used")

    async def bounds(client: Client) -> tuple[Offsets, Offsets]:
        found = await partitions_of(client, [name])
        own = [TopicPartition(name, partition) for partition in found[name]]
        return await log_starts(client, own), await log_ends(client, own)

    starts, ends = ask(session, bounds)
    with ctrl_c_noted(*TERMINATION) as interrupted:
        found, partitions = _read(session, (starts, ends), isolation, settings or [], interrupted)
    if expect is not None:
        found.expect(expect)
    report = consume_report(name, found, partitions)
    session.out.record(report, CONSUME_COLUMNS, name="result")
    if interrupted.is_set():
        return ExitStatus.INTERRUPTED
    return ExitStatus.OK if found.is_exact else ExitStatus.FOUND


def _read(
    session: Session,
    bounds: tuple[Offsets, Offsets],
    isolation: IsolationLevel,
    settings: Sequence[str],
    interrupted: Event,
) -> tuple[Numbered, Mapping[int, int]]:
    # imports librdkafka
    from kctl.streaming.config import client_properties, refuse_commits_if_read_only
    from kctl.streaming.reading import PartitionReader, open_consumer

    properties = {
        "group.id": "kctl-verify",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": isolation,
        "auto.offset.reset": "earliest",
        **client_properties(session, settings),
    }
    refuse_commits_if_read_only(session, properties)
    found, partitions = Numbered(), Counter[int]()
    with open_consumer(properties) as consumer:
        for batch in PartitionReader(consumer, *bounds).batches(lambda: None):
            for record in batch:
                place = TopicPartition(record.topic or "", record.partition or 0)
                found.add(place, record.value)
                partitions[place.partition] += 1
            if interrupted.is_set():
                break
    return found, partitions


def _as_kafka(
    session: Session,
    topic: str,
    group: str | None,
    records: int,
    reset_policy: str,
    settings: Sequence[str],
) -> ExitStatus:
    if not group:
        raise usage_error("--format kafka needs --group", "kafka-verifiable-consumer needs one too")
    policies = {"earliest": "earliest", "latest": "latest", "none": "error"}
    if reset_policy not in policies:
        raise usage_error(
            f"--reset-policy {reset_policy}: unknown", f"one of {', '.join(policies)}"
        )
    refuse_if_read_only(session)
    ask(session, lambda client: partitions_of(client, [topic]))
    from kctl.streaming.config import client_properties
    from kctl.streaming.verifying import consume_in_group

    properties = {
        "group.id": group,
        "enable.auto.commit": False,
        "auto.offset.reset": policies[reset_policy],
        **client_properties(session, settings),
    }
    session.out.lines([event("startup_complete")])
    limit = None if records == NO_LIMIT else records
    with ctrl_c_noted(*TERMINATION) as interrupted:
        consume_in_group(properties, topic, limit, _EventPrinter(session), interrupted)
    session.out.lines([event("shutdown_complete")])
    return ExitStatus.OK


class _EventPrinter:
    """Prints the lines of kafka-verifiable-consumer; see `Observer`."""

    def __init__(self, session: Session) -> None:
        self._out = session.out
        self._verbose = bool(session.verbose)

    def assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """Print the assigned partitions."""
        self._out.lines([event("partitions_assigned", partitions=places(partitions))])

    def revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """Print the revoked partitions."""
        self._out.lines([event("partitions_revoked", partitions=places(partitions))])

    def consumed(self, messages: "Sequence[Message]") -> None:
        """Print how many records were read of each partition."""
        seen: dict[TopicPartition, tuple[int, int, int]] = {}
        for message in messages:
            place = TopicPartition(message.topic() or "", message.partition() or 0)
            offset = message.offset() or 0
            count, lowest, _ = seen.get(place, (0, offset, offset))
            seen[place] = (count + 1, lowest, offset)
            if self._verbose:
                fields = {"key": text_of(message.key()), "value": text_of(message.value())}
                where = {"topic": place.topic, "partition": place.partition, "offset": offset}
                self._out.lines([event("record_data", **(fields | where))])
        self._out.lines([event("records_consumed", count=len(messages), partitions=counted(seen))])

    def committed(self, offsets: Offsets, error: str | None) -> None:
        """Print the committed offsets, or why they were not committed."""
        fields: dict[str, object] = {"offsets": committed(offsets)}
        fields |= {"success": True} if error is None else {"success": False, "error": error}
        self._out.lines([event("offsets_committed", **fields)])
