"""`kctl dump-log segments` and `locate`."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.describe_topics import topic_configs
from kctl.admin.topics import find_topics
from kctl.cli.arguments.amounts import INT64_MAX, parse_bytes
from kctl.cli.errors import usage, usage_error
from kctl.cli.options import Session, session_of
from kctl.cli.times import iso_time, now_ms, parse_duration_ms
from kctl.commands.dump_log.on_the_wire import locate_on_leader, read_whole_logs
from kctl.dump.segments.listing import (
    Expiry,
    Retention,
    Segment,
    expiries,
    log_files,
    log_start_offset,
    read_segments,
)
from kctl.dump.segments.locating import locate
from kctl.model.topics import Topic
from kctl.views.segments import SEGMENT_COLUMNS, STEP_COLUMNS


def segments(
    ctx: typer.Context,
    place: Annotated[
        str,
        typer.Argument(
            metavar="DIR|TOPIC[:PARTITION]", help="Partition or log directory, or a topic."
        ),
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

    For a topic the leaders are queried. The protocol does not show segments: each partition is one
    row, from the log start offset to the end, with its size and when the newest record expires.
    """
    session = session_of(ctx)
    given = _given(retention, retention_bytes)
    if not Path(place).exists() and "/" not in place and session.names_cluster():
        rows = _whole_logs(session, place, given)
    else:
        rows = _on_disk(session, Path(place), given)
    session.out.rows(rows, SEGMENT_COLUMNS, name="file")


def _whole_logs(session: Session, place: str, given: Retention | None) -> list[dict[str, object]]:
    topic, colon, number = place.rpartition(":")
    if colon and not number.isdecimal():
        raise usage_error(f"{place!r} is not TOPIC:PARTITION", "e.g. orders:0")
    found = read_whole_logs(session, topic if colon else place, int(number) if colon else None)
    rules = {} if given else _from_cluster(session, sorted({one.partition.topic for one in found}))
    rows = []
    for one in found:
        rule = given or rules.get(one.partition.topic) or Retention()
        # A single segment is never above retention.bytes as a whole.
        (expiry,) = expiries([one], one.base_offset, replace(rule, retention_bytes=None))
        rows.append(_row(one, expiry) | {"index_bytes": None, "active": None, "file": None})
    return rows


def _on_disk(session: Session, directory: Path, given: Retention | None) -> list[dict[str, object]]:
    found = log_files(directory)
    rules = {} if given else _from_cluster(session, sorted({place.topic for place in found}))
    rows = []
    for place, files in sorted(found.items()):
        own = read_segments(place, files)
        rule = given or rules.get(place.topic) or Retention()
        times = expiries(own, log_start_offset(place, files), rule)
        rows += [_row(*pair) for pair in zip(own, times, strict=True)]
    return rows


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
    TOPIC:PARTITION the leader is queried; the protocol shows batch and record, but not the files.
    """
    session = session_of(ctx)
    topic, colon, number = place.rpartition(":")
    if colon and number.isdecimal() and not Path(place).exists():
        rows = locate_on_leader(session, TopicPartition(topic, int(number)), offset)
    else:
        found = log_files(Path(place))
        if len(found) > 1:
            raise usage_error(f"{place} has several partitions", "use the directory of one")
        rows = list(locate(next(iter(found.values())), offset))
    session.out.rows(rows, STEP_COLUMNS, name="step")
