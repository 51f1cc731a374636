"""`kctl dump-log segments` and `locate`."""

from pathlib import Path
from typing import Annotated

import typer

from broker.model import TopicPartition
from broker.net.client import Client
from broker.records.batch import iterate_batches
from kctl.admin.connection import ask
from kctl.admin.describe_topics import topic_configs
from kctl.admin.log_offsets import require_partitions
from kctl.admin.replica_fetch import FetchSizes, fetch_from_replica
from kctl.admin.topics import find_topics
from kctl.cli.arguments.amounts import INT64_MAX, parse_bytes
from kctl.cli.errors import CliError, usage, usage_error
from kctl.cli.options import Session, session_of
from kctl.cli.times import iso_time, now_ms, parse_duration_ms
from kctl.dump.segments.listing import (
    Expiry,
    Retention,
    Segment,
    expiries,
    log_files,
    log_start_offset,
    read_segments,
)
from kctl.dump.segments.locating import batch_detail, locate
from kctl.model.topics import Topic
from kctl.views.segments import SEGMENT_COLUMNS, STEP_COLUMNS

_FETCH_BYTES = 1 << 20


def segments(
    ctx: typer.Context,
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Partition directory or log directory.")
    ],
    retention: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Assume this retention.ms, e.g. 7d or 12h."),
    ] = None,
    retention_bytes: Annotated[
        str | None, typer.Option(metavar="BYTES", help="Assume this retention.bytes, e.g. 1GiB.")
    ] = None,
) -> None:
    """List segments: offsets, sizes, times, and when retention will delete them.

    The settings of the topics are read from the cluster, if one is given (-b or a context). For a
    stopped broker use --retention and --retention-bytes; without any, only segments before the log
    start offset have a time. The broker checks every log.retention.check.interval.ms, so a segment
    is deleted a little later than DELETED FROM; `now` means that it is due.
    """
    session = session_of(ctx)
    given = _given(retention, retention_bytes)
    found = log_files(directory)
    rules = {} if given else _from_cluster(session, sorted({place.topic for place in found}))
    rows = []
    for place, files in sorted(found.items()):
        own = read_segments(place, files)
        rule = given or rules.get(place.topic) or Retention()
        times = expiries(own, log_start_offset(place, files), rule)
        rows += [_row(*pair) for pair in zip(own, times, strict=True)]
    session.out.rows(rows, SEGMENT_COLUMNS, name="file")


def _given(retention: str | None, retention_bytes: str | None) -> Retention | None:
    if retention is None and retention_bytes is None:
        return None
    return Retention(
        None if retention is None else usage(parse_duration_ms, retention),
        None if retention_bytes is None else parse_bytes(retention_bytes, "--retention-bytes"),
    )


def _from_cluster(session: Session, names: list[str]) -> dict[str, Retention]:
    """Retention of the topics; those that the cluster does not have are missing."""
    if not session.names_cluster():
        return {}

    async def query(client: Client) -> dict[str, Retention]:
        known = {topic.name for topic in await find_topics(client)}
        topics = [Topic(name, None, False, ()) for name in names if name in known]
        found = {}
        for name, configs in (await topic_configs(client, topics) if topics else {}).items():
            values = {config.name: config.value or "" for config in configs}
            found[name] = Retention(
                int(values.get("retention.ms") or -1),
                int(values.get("retention.bytes") or -1),
                "delete" in values.get("cleanup.policy", "delete"),
            )
        return found

    return ask(session, query)


def _row(segment: Segment, expiry: Expiry) -> dict[str, object]:
    is_due = expiry.at_ms is not None and expiry.at_ms <= now_ms()
    return {
        "topic": segment.partition.topic,
        "partition": segment.partition.partition,
        "base_offset": segment.base_offset,
        "last_offset": segment.last_offset,
        "size_bytes": segment.size_bytes,
        "index_bytes": segment.index_bytes,
        "first_time": iso_time(segment.first_ms),
        "last_time": iso_time(segment.last_ms),
        "active": segment.is_active,
        "deleted_from": "now" if is_due else iso_time(expiry.at_ms),
        "reason": expiry.reason,
        "file": str(segment.path),
    }


def locate_offset(
    ctx: typer.Context,
    place: Annotated[
        str,
        typer.Argument(metavar="DIR|TOPIC:PARTITION", help="Partition directory, or a partition."),
    ],
    offset: Annotated[int, typer.Argument(min=0, max=INT64_MAX, help="The offset.")],
) -> None:
    """Show where an offset is stored, in the steps of the broker's own lookup.

    In a partition directory: segment, entry of the offset index, position, batch, record. For
    TOPIC:PARTITION the leader is queried; the protocol shows the batch, but not the files.
    """
    session = session_of(ctx)
    topic, colon, number = place.rpartition(":")
    if colon and number.isdecimal() and not Path(place).exists():
        rows = _on_the_wire(session, TopicPartition(topic, int(number)), offset)
    else:
        found = log_files(Path(place))
        if len(found) > 1:
            raise usage_error(f"{place} has several partitions", "use the directory of one")
        rows = list(locate(next(iter(found.values())), offset))
    session.out.rows(rows, STEP_COLUMNS, name="step")


def _on_the_wire(session: Session, place: TopicPartition, offset: int) -> list[dict[str, object]]:
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
        empty = dict.fromkeys(("file", "offset", "position", "size"))
        return [empty | row for row in rows]

    return ask(session, query)
