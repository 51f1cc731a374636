"""`spark-export compact`: many exports of a directory become one, with files of the wanted size.

The rows are those of the old exports, and so are the counts, offsets and gaps in the manifest: an
`--incremental` afterwards continues where the last one ended. The old exports are verified first
and replaced only when the new one is complete; a run that is killed changes nothing, or is finished
by `--resume`.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from broker.model import TopicPartition
from kctl.cli.errors import CliError
from kctl.cli.options import Session
from kctl.spark.decoding.evolution import conform_table
from kctl.spark.manifest_checks import verify_continuity, verify_files, verify_rows
from kctl.spark.planning.continuation import continue_settings
from kctl.spark.planning.origin import Origin
from kctl.spark.planning.plan import ExportTask, Gap, OffsetRange, Piece, Plan
from kctl.spark.planning.settings import ContentType, ExportFormat, TaskSettings
from kctl.spark.publishing.export_directory import ExportDirectory, LocalExportDirectory
from kctl.spark.publishing.paths import AnyPath
from kctl.spark.reading_back import stored_streams, written_schema
from kctl.spark.summary import show_result
from kctl.spark.writing.content import REASON, UNDECODABLE
from kctl.spark.writing.output import OutputFiles
from kctl.spark.writing.results import PartitionCount, TaskResult

Manifests = Mapping[int, Mapping[str, Any]]


def compact_exports(location: str, file_bytes: int, session: Session) -> None:
    """Replace all exports of a directory by one; CliError if that would lose or mix anything."""
    started = time.monotonic()
    target = LocalExportDirectory(location)
    if not target.exports():
        raise CliError(f"{target.path}: contains no exports", "kctl spark-export TOPIC… --to DIR")
    with target.staging.locked():
        if target.staging.is_resumable:
            raise CliError(f"{target.path}: contains an interrupted export", "--resume finishes it")
        plan, result, path = _compact(target, file_bytes=file_bytes)
    show_result(session, plan, [result], path, time.monotonic() - started)


def rewrite_exports(target: ExportDirectory, wider: TaskSettings) -> None:
    """Replace all exports by one whose values have the schema of `wider`; the caller has the lock.

    CliError, and nothing is changed, if a stored value would not be exact in it.
    """
    if not isinstance(target, LocalExportDirectory):
        raise CliError(
            f"{target.path}: the new records need wider types, but only exports in local "
            "directories can be rewritten",
            "--schema-evolution add keeps the types; export to another directory for wider ones",
        )
    try:
        # Schema 0: rows have the fields that their writers had, without defaults of a new schema.
        _compact(target, value_schema=wider.value_schema, schema_id=0, registry=wider.registry)
    except pa.ArrowInvalid as error:
        target.staging.clear()
        raise CliError(
            f"{target.path}: a stored value does not fit the wider type: {error}",
            "--schema-evolution add keeps the types",
        ) from error


def _compact(target: LocalExportDirectory, **changes: Any) -> tuple[Plan, TaskResult, AnyPath]:
    manifests = {number: target.manifest(number) for number in target.exports()}
    settings = replace(_common_settings(manifests), **changes)
    _check_sound(target, manifests)
    plan = _plan(manifests, settings)
    target.staging.prepare()
    result = _rewrite(target, plan, settings, manifests)
    target.staging.keep(plan)
    return plan, result, target.commit(plan, [result])


def _common_settings(manifests: Manifests) -> TaskSettings:
    """The settings of all exports; CliError if they are not one table, or not Parquet."""
    *earlier, newest = (
        TaskSettings.from_json({"staging": "", **manifest["settings"]})
        for manifest in manifests.values()
    )
    if newest.export_format is not ExportFormat.PARQUET:
        raise CliError(f"exports in {newest.export_format} cannot be compacted", "only Parquet can")
    for each in earlier:
        continue_settings(replace(each, value_schema=""), newest.to_json())
        if (each.since_ms, each.until_ms) != (newest.since_ms, newest.until_ms):
            raise CliError(
                "the exports cover different time ranges (--since, --until)",
                "compact them separately",
            )
    return newest


def _check_sound(target: LocalExportDirectory, manifests: Manifests) -> None:
    """CliError if an export is damaged, or offsets are missing or duplicated."""
    findings = list(verify_continuity(manifests))
    for number, manifest in manifests.items():
        findings += verify_files(target, number)
        findings += verify_rows(target, number, manifest)
    if findings:
        first = findings[0]
        raise CliError(
            f"{target.export_path(first.export)}: {first.what}: {first.problem}",
            f"kctl spark-export verify {target.path} --deep",
        )


def _plan(manifests: Manifests, settings: TaskSettings) -> Plan:
    entries: dict[TopicPartition, list[Mapping[str, Any]]] = {}
    for manifest in manifests.values():
        for entry in manifest["partitions"]:
            partition = TopicPartition(entry["topic"], entry["partition"])
            entries.setdefault(partition, []).append(entry)
    ids = {(e["topic"], e.get("topic_id")) for each in entries.values() for e in each}
    clusters = {manifest.get("cluster_id") for manifest in manifests.values()}
    if len(clusters) > 1 or len(ids) > len({topic for topic, _ in ids}):
        raise CliError(
            "the exports are from different logs: a topic was recreated", "compact them separately"
        )
    return Plan(
        tuple(_whole_range(partition, each) for partition, each in sorted(entries.items())),
        (ExportTask(0, ()),),
        settings.to_json(),
        uuid4().hex,
        is_overwrite=True,
        origin=Origin(
            next(iter(clusters)),
            {topic: topic_id for topic, topic_id in ids if topic_id},
            {
                str(partition): each[-1]["leader_epoch"]
                for partition, each in entries.items()
                if each[-1].get("leader_epoch") is not None
            },
        ),
        mode="compact",
        gaps=tuple(
            Gap(*partition, gap["first_offset"], gap["end_offset"], gap["reason"])
            for partition, each in entries.items()
            for entry in each
            for gap in entry.get("gaps", ())
        ),
        state=_state(manifests),
    )


def _state(manifests: Manifests) -> dict[str, Any]:
    """The newest topic configs and group offsets."""
    topics: dict[str, Any] = {}
    groups: dict[str, Any] | None = None
    for manifest in manifests.values():
        topics |= manifest.get("topics") or {}
        if manifest.get("groups") is not None:
            groups = {**(groups or {}), **manifest["groups"]}
    return {"topics": topics, "groups": groups}


def _whole_range(partition: TopicPartition, entries: list[Mapping[str, Any]]) -> OffsetRange:
    ranges = [entry["range"] for entry in entries]
    return OffsetRange(
        *partition,
        min(each["first_offset"] for each in ranges),
        max(each["end_offset"] for each in ranges),
    )


def _rewrite(
    target: LocalExportDirectory, plan: Plan, settings: TaskSettings, manifests: Manifests
) -> TaskResult:
    """Copy the rows of all files, directory by directory, in the order of the exports."""
    schema = written_schema(settings)
    totals = _totals(plan, manifests)
    with target.staging.attempt(0) as directory:
        sink = OutputFiles(directory, "part-00000", settings)
        for level, table in _stored_tables(target, manifests):
            is_decodable = settings.value_type is not ContentType.REGISTRY or settings.registry
            if level == UNDECODABLE and is_decodable:
                _decode_again(table, sink, totals)
                continue
            if level == UNDECODABLE:  # a registry is needed to decode it
                sink.append(level, table, ExportFormat.PARQUET)
                continue
            names = [name for name in schema.names if name not in settings.partition_by]
            wanted = pa.schema([schema.field(name) for name in names])
            sink.append(level, conform_table(table, wanted), ExportFormat.PARQUET)
        files = sink.close()
        counts = [
            replace(total, streams=stored_streams(directory, partition, settings) or {})
            for partition, total in totals.items()
        ]
        return target.staging.finish(directory, TaskResult(0, tuple(counts), tuple(files)))


def _decode_again(
    table: pa.Table, sink: OutputFiles, totals: dict[TopicPartition, PartitionCount]
) -> None:
    """Records set aside become rows if they fit the schema of the new export."""
    table = table.drop_columns([REASON])
    keys = table.select(["topic", "partition"]).group_by(["topic", "partition"]).aggregate([])
    for key in keys.to_pylist():
        partition = TopicPartition(key["topic"], key["partition"])
        is_here = pc.and_(
            pc.equal(table.column("topic"), partition.topic),
            pc.equal(table.column("partition"), partition.partition),
        )
        records = table.filter(is_here)
        count = sink.write(Piece(*partition, 0, 0, 0), records)
        total = totals[partition]
        totals[partition] = replace(
            total,
            records=total.records + count.records,
            undecodable=total.undecodable - len(records) + count.undecodable,
        )


def _stored_tables(
    target: LocalExportDirectory, manifests: Manifests
) -> Iterator[tuple[str, pa.Table]]:
    for number, manifest in manifests.items():
        for file in manifest["files"]:
            level = f"{Path(file['path']).parent}/".removeprefix("./")
            rows = ds.dataset(target.export_path(number) / file["path"], format="parquet")
            for batch in rows.to_batches():
                yield level, pa.Table.from_batches([batch])


def _totals(plan: Plan, manifests: Manifests) -> dict[TopicPartition, PartitionCount]:
    """The counts of all exports."""
    totals = {each.topic_partition: PartitionCount(*each.topic_partition) for each in plan.ranges}
    names = ("records", "undecodable", "size_bytes", "first_offset", "last_offset")
    for manifest in manifests.values():
        for entry in manifest["partitions"]:
            partition = TopicPartition(entry["topic"], entry["partition"])
            fields = {name: entry[name] for name in names}
            totals[partition] = totals[partition].plus(PartitionCount(*partition, **fields))
    return totals
