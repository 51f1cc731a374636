"""Resolves positions (`-15m`, `@2026-11-01`, `-10`) to offsets of partitions."""

from collections.abc import Sequence

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.log_offsets import Errors, list_offsets, log_ends, log_starts
from kctl.cli.errors import CliError
from kctl.model.offsets import Anchor, OffsetAnswer, Position


async def resolve_positions(
    client: Client,
    partitions: Sequence[TopicPartition],
    positions: Sequence[Position],
    *,
    read_committed: bool = False,
    skip_unanswered: bool = False,
) -> list[dict[TopicPartition, int]]:
    """The offset of every partition at each position, limited to its log.

    A time after the last record is the log end. CliError for a partition without a leader, with the
    reason; with
    `skip_unanswered`, in a partial query, those of brokers that did not answer are missing.
    """
    errors: Errors = {}
    starts = await log_starts(client, partitions, errors=errors)
    ends = await log_ends(client, partitions, read_committed=read_committed, errors=errors)
    silent = [partition for partition in partitions if partition not in starts.keys() & ends]
    if skip_unanswered and not errors.keys() & set(silent):
        # Their brokers did not answer, which is reported; see broker_queries.
        partitions, silent = [tp for tp in partitions if tp not in silent], []
        ends = {tp: ends[tp] for tp in partitions}
    if silent:
        raise CliError(
            f"no offsets for {', '.join(_with_reason(tp, errors) for tp in silent)}",
            "kctl topics describe shows the leaders",
        )
    return [
        await _at_time(client, position.number, ends)
        if position.anchor is Anchor.TIME
        else {tp: position.offset(starts[tp], ends[tp]) for tp in partitions}
        for position in positions
    ]


def _with_reason(partition: TopicPartition, errors: Errors) -> str:
    reason = errors.get(partition)
    return f"{partition} ({reason.name})" if reason else str(partition)


async def _at_time(
    client: Client, timestamp_ms: int, ends: dict[TopicPartition, int]
) -> dict[TopicPartition, int]:
    found = await list_offsets(client, dict.fromkeys(ends, timestamp_ms))
    return {
        partition: found[partition].offset if _is_known(found, partition) else end
        for partition, end in ends.items()
    }


def _is_known(found: dict[TopicPartition, OffsetAnswer], partition: TopicPartition) -> bool:
    return partition in found and found[partition].offset >= 0
