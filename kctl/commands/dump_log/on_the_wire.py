"""`kctl dump-log segments` and `locate` for a running broker: what the protocol shows of a log."""

from pathlib import Path

from broker.model import TopicPartition
from broker.net.client import Client
from broker.records.batch import iterate_batches
from kctl.admin.connection import ask
from kctl.admin.log_offsets import list_offsets, partitions_of, require_partitions
from kctl.admin.record_times import record_times
from kctl.admin.replica_fetch import FetchSizes, fetch_from_replica
from kctl.admin.replica_states import list_replicas
from kctl.admin.topics import find_topics
from kctl.cli.arguments.partitions import PLACES
from kctl.cli.errors import CliError
from kctl.cli.options import Session
from kctl.dump.segments.listing import Segment
from kctl.dump.segments.locating import batch_detail, record_detail

_FETCH_BYTES = 1 << 20


def read_whole_logs(session: Session, topic: str, partition: int | None) -> list[Segment]:
    """The log of each partition (None: all) as if it were one segment, as its leader reports it.

    CliError if the topic or the partition does not exist. Partitions without a leader are missing,
    and those whose leader does not answer, which is reported.
    """

    async def query(client: Client) -> list[Segment]:
        await partitions_of(client, [topic])
        if partition is not None:
            await require_partitions(client, [TopicPartition(topic, partition)])
        found = [
            one
            for one in await list_replicas(client, await find_topics(client, [topic]))
            if one.is_leader
            and one.log_end_offset is not None
            and partition in (None, one.partition.partition)
        ]
        starts = [(one.partition, one.log_start_offset or 0) for one in found]
        first = await record_times(client, starts)
        newest = dict.fromkeys((one.partition for one in found), PLACES["max-timestamp"])
        last = await list_offsets(client, newest, errors={})
        logs = []
        for state, start in zip(found, starts, strict=True):
            newest_ms = last[state.partition].timestamp if state.partition in last else -1
            end = (state.log_end_offset or 0) - 1
            logs.append(
                Segment(
                    state.partition,
                    Path(),
                    start[1],
                    end if end >= start[1] else None,
                    state.size_bytes or 0,
                    0,
                    first.get(start),
                    newest_ms if newest_ms >= 0 else None,
                    is_active=True,
                )
            )
        return logs

    return ask(session, query, partial=True)


def locate_on_leader(
    session: Session, place: TopicPartition, offset: int
) -> list[dict[str, object]]:
    """Leader, batch and record of an offset; CliError if the partition does not have it."""

    async def query(client: Client) -> list[dict[str, object]]:
        await require_partitions(client, [place])
        (topic,) = await find_topics(client, [place.topic])
        leader = topic.partitions[place.partition].leader
        if leader is None:
            raise CliError(f"{place} has no leader", "kctl topics describe shows its replicas")
        ids = {topic.name: topic.topic_id} if topic.topic_id else {}
        sizes = FetchSizes(_FETCH_BYTES, max_wait_ms=0)
        data = (await fetch_from_replica(client, leader, {place: offset}, ids, sizes))[place]
        start, end = data.log_start_offset, data.high_watermark
        records = data.records
        raw = bytes(records) if isinstance(records, bytes | bytearray | memoryview) else b""
        batches = (one for one in iterate_batches(raw) if one.last_offset >= offset)
        batch = next(batches, None)
        if batch is None:
            raise CliError(
                f"{place} has no offset {offset}",
                f"it has {start} to {end - 1}" if end > 0 else f"kctl offsets {place.topic}",
            )
        detail = f"broker {leader}; log start {start}, high watermark {end}"
        rows: list[dict[str, object]] = [{"step": "leader", "detail": detail}]
        rows.append(
            {"step": "batch", "offset": batch.base_offset, "size": batch.size_in_bytes}
            | {"detail": batch_detail(batch)}
        )
        record = next((one for one in batch.records() if one.offset >= offset), None)
        if record is not None:
            rows.append(
                {"step": "record", "offset": record.offset, "detail": record_detail(record)}
            )
        empty = dict.fromkeys(("file", "offset", "position", "size"))
        return [empty | row for row in rows]

    return ask(session, query)
