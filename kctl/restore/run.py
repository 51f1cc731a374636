"""The import of topics: create, write in transactions, restore groups and configs."""

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.group_offsets import commit_offsets
from kctl.admin.groups import describe_groups
from kctl.admin.log_offsets import log_ends
from kctl.cli.confirmation import refuse_if_read_only
from kctl.cli.errors import CliError
from kctl.cli.options import Session
from kctl.cli.progress import progress_display
from kctl.model.groups import DEAD, EMPTY
from kctl.model.topics import Topic
from kctl.restore.exports import SourceTopic, open_exports, read_topics
from kctl.restore.rows import partition_rows
from kctl.restore.topics import (
    check_existing,
    create_topic,
    exported_configs,
    find_topic,
    finish_topic,
    has_records,
    is_being_imported,
)
from kctl.restore.writer import GroupOffsets, ImportWriter
from kctl.spark.manifest_checks import range_of

_POLL_S: Final = 0.05


@dataclass(frozen=True)
class ImportRequest:
    """A parsed command line."""

    location: str
    topics: Sequence[str] = ()
    exports: Sequence[int] = ()
    renames: Mapping[str, str] = field(default_factory=dict)
    has_groups: bool = False
    has_configs: bool = True
    is_append: bool = False
    replication_factor: int | None = None
    use_now: bool = False
    """Write records without a timestamp with the current time."""
    compression: str = "none"
    dry_run: bool = False


def import_exports(request: ImportRequest, session: Session) -> list[dict[str, Any]]:
    """Restore the topics; a row per partition. CliError if that is not possible."""
    if not request.dry_run:
        refuse_if_read_only(session)
    with open_exports(request.location) as target:
        sources = read_topics(target, request.topics, request.exports)
        _check_renames(request.renames, sources)
        if request.dry_run:
            return [row for each in sources for row in _planned(each, request, session)]
        if request.has_groups:
            _check_groups(session, sources)
        return [row for each in sources for row in _import_topic(each, request, session)]


def _check_renames(renames: Mapping[str, str], sources: Sequence[SourceTopic]) -> None:
    names = [each.name for each in sources]
    if unknown := sorted(set(renames) - set(names)):
        raise CliError(f"--rename {unknown[0]}: not among {', '.join(names)}")
    targets = [renames.get(name, name) for name in names]
    if len(set(targets)) < len(targets):
        raise CliError("--rename: two topics would have the same name", "use different names")


def _check_groups(session: Session, sources: Sequence[SourceTopic]) -> None:
    """CliError if a group to restore has members: they would commit their own offsets."""
    names = sorted({group for each in sources for group in each.groups})
    if not any(each.has_groups for each in sources):
        raise CliError(
            "the exports contain no group offsets", "export with --groups, or omit it here"
        )
    for group in ask(session, lambda client: describe_groups(client, names)) if names else ():
        if group.state not in (EMPTY, DEAD):
            raise CliError(
                f"group {group.group_id} has members", "stop its consumers, or omit --groups"
            )


def _import_topic(
    source: SourceTopic, request: ImportRequest, session: Session
) -> list[dict[str, Any]]:
    name = request.renames.get(source.name, source.name)
    configs = exported_configs(source) if request.has_configs else {}
    topic, is_ours = _prepare(source, name, configs, request, session)
    run = _run_id(source, topic)
    groups = _renamed(source.groups, name) if request.has_groups else {}
    writer = ImportWriter(session, run, groups, request.compression)
    try:
        targets = [TopicPartition(name, each) for each in source.parts]
        progress = writer.begin(targets)
        if not (progress or is_ours or request.is_append) and has_records(session, topic):
            raise CliError(
                f"topic {name} is not empty, and was not filled by an import of this export",
                "--append adds the records, --rename imports to another topic",
            )
        writer.translated_before(progress)
        # From now on a run that is killed has progress, so the next one continues.
        for each in targets:
            if each not in progress:
                writer.advance(each, range_of(source.parts[each.partition][0].entry).first_offset)
        writer.commit()
        rows = _write(source, name, writer, progress, request, session)
        _commit_ends(session, writer.left, _visible_ends(session, targets))
    finally:
        writer.close()
    if is_ours:
        finish_topic(session, name, configs)
    return rows


def _prepare(
    source: SourceTopic,
    name: str,
    configs: Mapping[str, str],
    request: ImportRequest,
    session: Session,
) -> tuple[Topic, bool]:
    """(the topic, whether this or an interrupted import has created it)."""
    topic = find_topic(session, name)
    is_ours = topic is None
    if topic is None:
        create_topic(session, source, name, request.replication_factor, configs)
        topic = find_topic(session, name)
        if topic is None:
            raise CliError(f"topic {name} was created, but is not in the metadata yet", "try again")
    else:
        check_existing(session, source, topic)
        is_ours = is_being_imported(session, topic, configs)
    return topic, is_ours


def _run_id(source: SourceTopic, topic: Topic) -> str:
    """The transactional id and the group of an import: one per exported log and target topic.

    With the id of the target, so that a topic that was deleted is imported from the beginning.
    """
    identity = f"{source.source_id}/{source.name}/{topic.topic_id}/{topic.name}"
    return f"kctl-import-{topic.name}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"


def _renamed(groups: GroupOffsets, name: str) -> GroupOffsets:
    return {
        group: {TopicPartition(name, each.partition): offset for each, offset in offsets.items()}
        for group, offsets in groups.items()
        if offsets
    }


def _write(
    source: SourceTopic,
    name: str,
    writer: ImportWriter,
    progress: Mapping[TopicPartition, int],
    request: ImportRequest,
    session: Session,
) -> list[dict[str, Any]]:
    done = 0
    with progress_display(of_bytes=False) as show:
        show(f"importing {name}", 0, source.records)
        for partition in source.parts:
            target = TopicPartition(name, partition)
            for table in partition_rows(source, partition, progress.get(target, 0)):
                writer.write(target, table, use_now=request.use_now)
                done += len(table)
                show(f"importing {name}", done, source.records)
            writer.advance(target, source.end_offset(partition))
        writer.commit()
    return [_row(source, name, each, progress, writer) for each in source.parts]


def _visible_ends(
    session: Session, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    """The ends of partitions, once consumers can read everything before them.

    A coordinator writes the markers of a transaction after it has acknowledged the commit. Other
    producers may have open transactions: then the wait ends after half of the timeout.
    """

    async def query(client: Client) -> dict[TopicPartition, int]:
        deadline = time.monotonic() + session.timeout / 2
        while True:
            stable = await log_ends(client, partitions, read_committed=True)
            ends = await log_ends(client, partitions)
            if stable == ends or time.monotonic() > deadline:
                return ends
            await asyncio.sleep(_POLL_S)

    return ask(session, query)


def _commit_ends(
    session: Session,
    left: Mapping[TopicPartition, Iterable[str]],
    ends: Mapping[TopicPartition, int],
) -> None:
    """Groups that had read everything are placed at the end of the new partitions."""
    by_group: dict[str, dict[TopicPartition, int]] = {}
    for partition, groups in left.items():
        for group in groups:
            by_group.setdefault(group, {})[partition] = ends[partition]
    for group, offsets in by_group.items():
        outcomes = ask(session, _commit(group, offsets), check=f"kctl groups describe {group}")
        for partition, code in outcomes.items():
            if code:
                raise CliError(f"group {group}, {partition}: {code.name}")


def _commit(group: str, offsets: Mapping[TopicPartition, int]) -> Callable[..., Any]:
    return lambda client: commit_offsets(client, group, offsets)


def _row(
    source: SourceTopic,
    name: str,
    partition: int,
    progress: Mapping[TopicPartition, int],
    writer: ImportWriter,
) -> dict[str, Any]:
    target = TopicPartition(name, partition)
    records, first, last = writer.written.get(target, (0, None, None))
    return {
        **_exported(source, name, partition),
        "records": records,
        "resumed_at": progress.get(target),
        "first_offset": first,
        "last_offset": last,
    }


def _planned(
    source: SourceTopic, request: ImportRequest, session: Session
) -> Iterable[dict[str, Any]]:
    name = request.renames.get(source.name, source.name)
    topic = find_topic(session, name)
    if topic is not None:
        check_existing(session, source, topic)
    for partition, parts in source.parts.items():
        yield {
            **_exported(source, name, partition),
            "records": sum(part.records for part in parts),
            "resumed_at": None,
            "first_offset": None,
            "last_offset": None,
        }


def _exported(source: SourceTopic, name: str, partition: int) -> dict[str, Any]:
    ranges = [range_of(part.entry) for part in source.parts[partition]]
    return {
        "topic": name,
        "partition": partition,
        "exported_topic": source.name,
        "exported_first_offset": min(each.first_offset for each in ranges),
        "exported_end_offset": max(each.end_offset for each in ranges),
    }
