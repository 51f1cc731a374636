"""Keys and values as text or JSON. Records that cannot be decoded are set aside, with the reason.

A record is set aside unchanged (`_undecodable/`): the chosen columns with key and value as bytes,
topic, partition, offset, timestamp, and why. No part of it is in the table, so that every value in
the table was written by a producer.
"""

import re
from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from kctl.cli.errors import CliError
from kctl.spark.decoding.columns import TYPES
from kctl.spark.decoding.json_values import NotDecodable, parse_json, to_structs
from kctl.spark.decoding.schema import decode_struct
from kctl.spark.planning.settings import ContentType, ExportFormat, PartitionColumn, TaskSettings
from kctl.spark.writing.selection import select_records, select_rows

UNDECODABLE: Final = "_undecodable/"
"""The directory, hidden from readers, of records that were set aside."""
REASON: Final = "reason"
"""The column with the reason, in records set aside."""

_YEAR_1_MS: Final = -62_135_596_800_000
_YEAR_10000_MS: Final = 253_402_300_800_000
_MICROSECONDS_MS: Final = (2**63 - 1) // 1000

Decoder = Callable[[pa.Array], tuple[pa.Array, pa.Array | None]]
"""(decoded column, reason for each value that could not be decoded; None if all could)."""


def columns_to_read(settings: TaskSettings) -> tuple[str, ...]:
    """The columns to write, and those that identify a record that is set aside."""
    identity = ("topic", "partition", "offset", "timestamp")
    compared = [name for name in TYPES if re.search(rf"\b{name}\b", settings.where)]
    return tuple(dict.fromkeys((*settings.columns, *identity, *compared)))


def decode_content(table: pa.Table, settings: TaskSettings) -> tuple[pa.Table, pa.Table]:
    """(rows with key and value decoded, rows set aside: unchanged, with the column `reason`)."""
    decoded = table
    problems = [_timestamp_problems(table, settings)]
    for name, decode in _decoders(settings).items():
        if name in table.column_names:
            column, reasons = decode(table.column(name).combine_chunks())
            decoded = decoded.set_column(table.column_names.index(name), name, column)
            if reasons is not None:
                problems.append(pc.binary_join_element_wise(name, reasons, ": "))
    found = [each for each in problems if each is not None]
    if not found:
        return decoded, _with_reason(table.slice(0, 0), pa.array([], pa.string()))
    reasons = pc.coalesce(*found)
    is_good = pc.is_null(reasons)
    return (
        decoded.filter(is_good),
        _with_reason(table.filter(pc.invert(is_good)), reasons.drop_null()),
    )


def rows_of(table: pa.Table, settings: TaskSettings) -> tuple[pa.Table, pa.Table]:
    """(the chosen rows, decoded, with all columns that were read; records set aside)."""
    good, bad = decode_content(select_records(table, settings), settings)
    return select_rows(good, settings), bad


def written_columns(rows: pa.Table, settings: TaskSettings) -> pa.Table:
    """The columns to write; with `--flatten` the fields of JSON values instead of the values."""
    table = rows.select(list(settings.columns))
    if not settings.is_flat or "value" not in settings.columns:
        return table
    kind = table.schema.field("value").type
    if not pa.types.is_struct(kind):
        return table
    at = table.column_names.index("value")
    fields = table.column("value").combine_chunks().flatten()
    table = table.remove_column(at)
    for number, (field, column) in enumerate(zip(kind, fields, strict=True)):
        taken = field.name in TYPES or field.name in set(PartitionColumn)
        name = f"value_{field.name}" if taken else field.name
        table = table.add_column(at + number, name, column)
    return table


def _with_reason(table: pa.Table, reasons: pa.Array) -> pa.Table:
    return table.append_column(REASON, reasons)


def _decoders(settings: TaskSettings) -> dict[str, Decoder]:
    kinds = {
        "key": _decoder(settings.key_type, settings, ""),
        "value": _decoder(settings.value_type, settings, settings.value_schema),
    }
    return {name: decoder for name, decoder in kinds.items() if decoder is not None}


def _decoder(kind: ContentType, settings: TaskSettings, schema: str) -> Decoder | None:
    if kind is ContentType.BINARY:
        return None
    if kind is ContentType.STRING:
        return _to_text
    if not schema:
        return _to_json_text
    arrow_type = decode_struct(schema)
    if kind is ContentType.REGISTRY:
        return lambda raw: _by_registry(raw, arrow_type, settings)
    return lambda raw: to_structs(raw, arrow_type, keep_unknown=settings.is_schema_inferred)


def _by_registry(
    raw: pa.Array, kind: pa.DataType, settings: TaskSettings
) -> tuple[pa.Array, pa.Array | None]:
    if not len(raw):
        return pa.array([], kind), None
    if settings.registry is None:
        raise CliError("the values have schemas in a registry", "use --registry URL")
    from kctl.spark.decoding.registry_values import RegistryValues

    values = RegistryValues(settings.registry, settings.schema_id)
    return values.to_structs(raw, kind, keep_unknown=True)


def _to_text(raw: pa.Array) -> tuple[pa.Array, pa.Array | None]:
    try:
        return raw.cast(pa.string()), None
    except pa.ArrowInvalid:  # at least one is not UTF-8
        return _one_by_one(raw, lambda value: None)


def _to_json_text(raw: pa.Array) -> tuple[pa.Array, pa.Array | None]:
    """The text unchanged, where it is JSON."""
    return _one_by_one(raw, parse_json)


def _one_by_one(
    raw: pa.Array, check: Callable[[bytes], object]
) -> tuple[pa.Array, pa.Array | None]:
    texts: list[str | None] = []
    reasons: list[str | None] = []
    for value in raw.to_pylist():
        text, reason = None, None
        if value is not None:
            try:
                text = value.decode()
                check(value)
            except UnicodeDecodeError:
                reason = "not UTF-8"
            except NotDecodable as error:
                text, reason = None, str(error)
        texts.append(text)
        reasons.append(reason)
    found = pa.array(reasons, pa.string())
    return pa.array(texts, pa.string()), None if found.null_count == len(found) else found


# --- timestamps --------------------------------------------------------------------------------


def _timestamp_problems(table: pa.Table, settings: TaskSettings) -> pa.Array | None:
    """Reasons for timestamps that the files or their readers do not support; None if all are fine.

    Producers that write microseconds where Kafka expects milliseconds are common: their years have
    five digits. Parquet holds these; text formats and directories by date do not.
    """
    first, end = _timestamp_range(settings)
    times = table.column("timestamp").combine_chunks().cast(pa.int64())
    is_outside = pc.or_(pc.less(times, first), pc.greater_equal(times, end))
    if not pc.any(is_outside).as_py():
        return None
    reasons = pc.binary_join_element_wise("timestamp", times.cast(pa.string()), "out of range", " ")
    return pc.if_else(is_outside, reasons, pa.scalar(None, pa.string()))


def _timestamp_range(settings: TaskSettings) -> tuple[int, int]:
    by_time = {PartitionColumn.DATE, PartitionColumn.HOUR}.intersection(settings.partition_by)
    is_text = settings.export_format is not ExportFormat.PARQUET and "timestamp" in settings.columns
    if by_time or is_text:
        return _YEAR_1_MS, _YEAR_10000_MS
    return -_MICROSECONDS_MS, _MICROSECONDS_MS
