"""`kctl transactions abort`."""

from typing import Annotated

import typer

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.log_offsets import partitions_of
from kctl.admin.transactions import abort_transaction, describe_producers
from kctl.cli.confirmation import DryRun, Plan, Yes, confirm_plan
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.options import session_of
from kctl.commands.transactions.arguments import PartitionOption, TopicOption, named_places
from kctl.model.outcomes import Outcome
from kctl.model.transactions import Marker
from kctl.views.outcomes import outcome_columns, show_outcomes
from kctl.views.transactions import MARKER_COLUMNS, marker_row


def abort(
    ctx: typer.Context,
    place: Annotated[
        str | None, typer.Argument(metavar="TOPIC:PARTITION", help="Partition of the transaction.")
    ] = None,
    topic: TopicOption = None,
    partition: PartitionOption = None,
    start_offset: Annotated[
        int | None, typer.Option(help="First offset of the transaction.")
    ] = None,
    producer_id: Annotated[
        int | None, typer.Option(help="Producer id, for brokers before Kafka 3.0.")
    ] = None,
    producer_epoch: Annotated[int | None, typer.Option(help="Used with --producer-id.")] = None,
    coordinator_epoch: Annotated[int | None, typer.Option(help="Used with --producer-id.")] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Abort a hanging transaction on one partition, bypassing its coordinator.

    Only for transactions found by `kctl transactions hanging`. A transaction that its coordinator
    still knows ends on its own; aborting it here loses records.
    """
    session = session_of(ctx)
    where = _one_partition(named_places([place] if place else None, topic, partition))
    if start_offset is not None:
        offset = start_offset
        marker = ask(session, lambda client: _marker_at(client, where, offset))
    else:
        marker = _said(where, producer_id, producer_epoch, coordinator_epoch)
    rows = [marker_row(marker, start_offset)]
    plan = Plan(
        "Abort this transaction?", rows, MARKER_COLUMNS, "producer_id", outcome_columns("partition")
    )
    if not confirm_plan(session, plan, yes=yes, dry_run=dry_run):
        return
    check = f"kctl transactions producers {where.topic}:{where.partition}"
    error = ask(session, lambda client: abort_transaction(client, marker), check=check)
    show_outcomes(session.out, [Outcome(str(where), error)], "partition", "aborted")


async def _marker_at(client: Client, place: TopicPartition, start_offset: int) -> Marker:
    """The marker of the transaction that starts at the offset; CliError if no transaction does."""
    await partitions_of(client, [place.topic])
    for producer in await describe_producers(client, [place]):
        if producer.start_offset == start_offset:
            return _marker(
                place, producer.producer_id, producer.producer_epoch, producer.coordinator_epoch
            )
    raise CliError(
        f"no open transaction starts at offset {start_offset} of {place}",
        f"kctl transactions producers {place.topic}:{place.partition} shows the open transactions",
    )


def _said(
    place: TopicPartition,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
) -> Marker:
    """The marker of the transaction given by producer id and epochs."""
    if producer_id is None or producer_epoch is None or coordinator_epoch is None:
        raise CliError(
            "no transaction specified",
            "use --start-offset; or --producer-id, --producer-epoch and --coordinator-epoch",
            ExitStatus.USAGE,
        )
    return _marker(place, producer_id, producer_epoch, coordinator_epoch)


def _marker(
    place: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> Marker:
    # Without a marker the coordinator epoch is -1; 0 is not above any real epoch.
    return Marker(place, producer_id, producer_epoch, max(0, coordinator_epoch))


def _one_partition(wanted: dict[str, list[int] | None]) -> TopicPartition:
    named = [(topic, number) for topic, numbers in wanted.items() for number in numbers or [-1]]
    if len(named) != 1 or named[0][1] < 0:
        raise CliError("specify one partition", "e.g. orders:0", ExitStatus.USAGE)
    return TopicPartition(*named[0])
