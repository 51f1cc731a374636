"""Arrow tables → files of one format."""

import base64
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final, Protocol, cast

import pyarrow as pa

from kctl.spark.planning.settings import Codec, Compression, ExportFormat, TaskSettings
from kctl.spark.writing.json_lines import json_lines

_ORC_CODECS: Final = {
    Codec.NONE: "uncompressed",
    Codec.SNAPPY: "snappy",
    Codec.LZ4: "lz4",
    Codec.ZSTD: "zstd",
}


class TableWriter(Protocol):
    """One file being written."""

    def write(self, table: pa.Table) -> None:
        """Add rows."""

    def close(self) -> None:
        """Finish the file; it can be read then."""


class ParquetFile:
    """Parquet, a row group per table."""

    def __init__(self, path: Path, schema: pa.Schema, compression: Compression) -> None:
        from pyarrow import parquet

        # Dictionaries pay off only for repeated values, not for keys and values of records.
        # Statistics of keys and values are not used and would cost a comparison per record.
        repeating = [n for n in ("topic", "partition", "timestamp_type") if n in schema.names]
        compared = [n for n in ("topic", "partition", "offset", "timestamp") if n in schema.names]
        self._writer = parquet.ParquetWriter(
            path,
            schema,
            compression=compression.codec.value,
            compression_level=compression.level,
            use_dictionary=repeating or False,
            write_statistics=compared or False,
        )

    def write(self, table: pa.Table) -> None:
        """Add a row group."""
        self._writer.write_table(table, row_group_size=len(table) or None)

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()


class OrcFile:
    """ORC."""

    def __init__(self, path: Path, schema: pa.Schema, compression: Compression) -> None:
        from pyarrow import orc

        del schema  # ORC takes the schema of the first table
        self._writer = orc.ORCWriter(str(path), compression=_ORC_CODECS[compression.codec])

    def write(self, table: pa.Table) -> None:
        """Add a stripe."""
        self._writer.write(table)

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()


class CsvFile:
    """CSV with a header line; bytes in base64, headers as JSON, times in ISO 8601."""

    def __init__(self, path: Path, schema: pa.Schema, compression: Compression) -> None:
        from pyarrow import csv

        self._file = _open_text(path, compression)
        self._writer = csv.CSVWriter(self._file, _csv_schema(schema))

    def write(self, table: pa.Table) -> None:
        """Add lines."""
        self._writer.write_table(csv_table(table))

    def close(self) -> None:
        """Flush and close."""
        self._writer.close()
        self._file.close()


class JsonLinesFile:
    """One JSON object per line; bytes in base64, times in ISO 8601."""

    def __init__(self, path: Path, schema: pa.Schema, compression: Compression) -> None:
        del schema
        self._file = _open_text(path, compression)

    def write(self, table: pa.Table) -> None:
        """Add lines."""
        self._file.write(json_lines(table))

    def close(self) -> None:
        """Flush and close."""
        self._file.close()


def _open_text(path: Path, compression: Compression) -> IO[bytes]:
    """A new text file; `.gz` is understood by Spark, Hive and command-line tools."""
    if compression.codec is Codec.GZIP:
        level = 6 if compression.level is None else compression.level
        return cast(IO[bytes], gzip.open(path, "wb", level))
    return path.open("wb")


def _plain(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def csv_table(table: pa.Table) -> pa.Table:
    """The table with numbers and strings only."""
    columns = [_csv_column(column) for column in table.columns]
    return pa.Table.from_arrays(columns, schema=_csv_schema(table.schema))


def _csv_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([(field.name, _csv_type(field.type)) for field in schema])


def _csv_type(kind: pa.DataType) -> pa.DataType:
    return kind if pa.types.is_integer(kind) else pa.string()


def _csv_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_string(kind):
        return column
    show = _json if pa.types.is_nested(kind) else _plain
    texts = [None if value is None else show(value) for value in column.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.string())])


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=_plain)


# Avro is written by Spark: see spark_writer.
_WRITERS: dict[ExportFormat, Callable[[Path, Any, Compression], TableWriter]] = {
    ExportFormat.PARQUET: ParquetFile,
    ExportFormat.JSONL: JsonLinesFile,
    ExportFormat.CSV: CsvFile,
    ExportFormat.ORC: OrcFile,
}


def file_suffix(export_format: ExportFormat, settings: TaskSettings) -> str:
    """The ending of file names: the format, and `.gz` for compressed text."""
    compression = _compression(export_format, settings)
    is_text = export_format in (ExportFormat.JSONL, ExportFormat.CSV)
    is_packed = is_text and compression.codec is Codec.GZIP
    return f"{export_format}.gz" if is_packed else str(export_format)


def open_writer(
    export_format: ExportFormat, path: Path, schema: pa.Schema, settings: TaskSettings
) -> TableWriter:
    """Create a file."""
    return _WRITERS[export_format](path, schema, _compression(export_format, settings))


def _compression(export_format: ExportFormat, settings: TaskSettings) -> Compression:
    """The codec of a file; records set aside are Parquet, whatever the format of the rows."""
    is_own = export_format is settings.export_format
    return Compression.parse(settings.compression if is_own else "", export_format)
