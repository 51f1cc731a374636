"""`kctl transactions abort`: the marker that a coordinator will never send."""

from typing import Annotated

import typer

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.log_offsets import partitions_of
from kctl.admin.transactions import Marker, abort_transaction, describe_producers
from kctl.commands.transaction_words import PartitionOption, TopicOption, named_places
from kctl.confirm import DryRun, Plan, Yes, agreed
from kctl.errors import CliError, ExitStatus
from kctl.options import session_of
from kctl.outcomes import Outcome, show_outcomes
from kctl.tables import Column

COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("producer_id", right=True),
    Column("producer_epoch", "EPOCH", right=True),
    Column("coordinator_epoch", right=True),
    Column("start_offset", right=True),
]


def abort(
    ctx: typer.Context,
    place: Annotated[
        str | None, typer.Argument(metavar="TOPIC:PARTITION", help="Where it is open.")
    ] = None,
    topic: TopicOption = None,
    partition: PartitionOption = None,
    start_offset: Annotated[
        int | None, typer.Option(help="The offset at which the transaction begins.")
    ] = None,
    producer_id: Annotated[
        int | None, typer.Option(help="Its producer, for brokers before Kafka 3.0.")
    ] = None,
    producer_epoch: Annotated[int | None, typer.Option(help="With --producer-id.")] = None,
    coordinator_epoch: Annotated[int | None, typer.Option(help="With --producer-id.")] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Abort a transaction on one partition, past its coordinator.

    For transactions that hang (`kctl transactions hanging`): one that its coordinator knows is
    ended by the coordinator, and loses records when it is ended here.
    """
    session = session_of(ctx)
    where = _one_partition(named_places([place] if place else None, topic, partition))
    if start_offset is not None:
        offset = start_offset
        marker = ask(session, lambda client: _marker_at(client, where, offset))
    else:
        marker = _said(where, producer_id, producer_epoch, coordinator_epoch)
    row = {
        "topic": where.topic,
        "partition": where.partition,
        "producer_id": marker.producer_id,
        "producer_epoch": marker.producer_epoch,
        "coordinator_epoch": marker.coordinator_epoch,
        "start_offset": start_offset,
    }
    plan = Plan("Abort this transaction?", [row], COLUMNS, "producer_id")
    if not agreed(session, plan, yes=yes, dry_run=dry_run):
        return
    error = ask(session, lambda client: abort_transaction(client, marker))
    show_outcomes(session.out, [Outcome(str(where), error)], "partition", "aborted")


async def _marker_at(client: Client, place: TopicPartition, start_offset: int) -> Marker:
    """For the transaction that begins at the offset; CliError if none does."""
    await partitions_of(client, [place.topic])
    for producer in await describe_producers(client, [place]):
        if producer.start_offset == start_offset:
            return _marker(
                place, producer.producer_id, producer.producer_epoch, producer.coordinator_epoch
            )
    raise CliError(
        f"no open transaction begins at offset {start_offset} of {place}",
        f"kctl transactions producers {place.topic}:{place.partition} shows those that are open",
    )


def _said(
    place: TopicPartition,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
) -> Marker:
    """For the transaction that the command line describes whole."""
    if producer_id is None or producer_epoch is None or coordinator_epoch is None:
        raise CliError(
            "which transaction?",
            "say --start-offset; or --producer-id, --producer-epoch and --coordinator-epoch",
            ExitStatus.USAGE,
        )
    return _marker(place, producer_id, producer_epoch, coordinator_epoch)


def _marker(
    place: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> Marker:
    # A producer that never saw a marker has coordinator epoch -1; 0 is not above any real one.
    return Marker(place, producer_id, producer_epoch, max(0, coordinator_epoch))


def _one_partition(wanted: dict[str, list[int] | None]) -> TopicPartition:
    named = [(topic, number) for topic, numbers in wanted.items() for number in numbers or [-1]]
    if len(named) != 1 or named[0][1] < 0:
        raise CliError("name one partition", "e.g. orders:0", ExitStatus.USAGE)
    return TopicPartition(*named[0])
