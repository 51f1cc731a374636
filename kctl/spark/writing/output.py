"""The output files of a task: one per directory, a new one when a file is full.

Rows are buffered per directory until they make a row group. Without that, a task whose records
belong to a hundred dates would write a row group of a few kilobytes per date and chunk. All buffers
together are limited; beyond it the largest is written.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from crc32c import crc32c

from kctl.spark.decoding.columns import arrow_schema
from kctl.spark.planning.plan import Piece
from kctl.spark.planning.settings import ExportFormat, PartitionColumn, TaskSettings
from kctl.spark.writing.checksums import table_streams
from kctl.spark.writing.content import UNDECODABLE, columns_to_read, rows_of, written_columns
from kctl.spark.writing.formats import TableWriter, file_suffix, open_writer
from kctl.spark.writing.results import UNKNOWN, ExportedFile, PartitionCount

MAX_OPEN_FILES: Final = 200
"""Maximum number of open files; beyond it the least recently written file is closed."""
_BUFFERED_GROUPS: Final = 4
"""Row groups that all buffers together may hold."""
_GROUPS_PER_FILE: Final = 4
"""A file has at least about this many row groups, so that its size can be kept."""
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"

_READ_BYTES = 8 * 1024 * 1024
_TIME_FORMATS = {PartitionColumn.DATE: "%Y-%m-%d", PartitionColumn.HOUR: "%H"}


class _File:
    """A file that is being written."""

    def __init__(self, path: Path, relative: str, writer: TableWriter) -> None:
        self.path = path
        self.relative = relative
        self.writer = writer
        self.records = 0


class _Buffer:
    """Rows of one directory that are not written yet."""

    def __init__(self, export_format: ExportFormat) -> None:
        self.export_format = export_format
        self.tables: list[pa.Table] = []
        self.size_bytes = 0


class OutputFiles:
    """The files of one attempt, below its directory."""

    def __init__(self, directory: Path, stem: str, settings: TaskSettings) -> None:
        self._directory = directory
        self._stem = stem
        self._settings = settings
        self._group_bytes = min(
            settings.row_group_bytes, max(1, settings.file_bytes // _GROUPS_PER_FILE)
        )
        self._buffers: dict[str, _Buffer] = {}
        self._buffered_bytes = 0
        self._open: dict[str, _File] = {}
        """By directory, in order of the last write."""
        self._closed: list[ExportedFile] = []
        self._count = 0

    def write(self, piece: Piece, table: pa.Table) -> PartitionCount:
        """Write rows of one piece; returns their counts and checksums."""
        good, bad = rows_of(table, self._settings)
        if len(bad):
            self.append(UNDECODABLE, bad, ExportFormat.PARQUET)
        rows = written_columns(good, self._settings)
        for directory, group in self._by_directory(piece, good, rows):
            self.append(directory, group, self._settings.export_format)
        return count_rows(piece, good, bad, rows)

    def _by_directory(
        self, piece: Piece, good: pa.Table, rows: pa.Table
    ) -> Iterator[tuple[str, pa.Table]]:
        """The rows to write grouped by directory."""
        levels = self._settings.partition_by
        rows = rows.drop_columns([name for name in levels if name in rows.column_names])
        groups = [("", good.select(["timestamp"]), rows)]
        for level in levels:
            groups = [
                (f"{directory}{level}={name}/", times.filter(chosen), part.filter(chosen))
                if chosen is not None
                else (f"{directory}{level}={name}/", times, part)
                for directory, times, part in groups
                for name, chosen in _split(piece, times, level)
            ]
        return ((directory, part) for directory, _, part in groups)

    def append(self, directory: str, table: pa.Table, export_format: ExportFormat) -> None:
        """Write rows of one directory, which is empty or ends with a slash."""
        if not len(table):
            return
        buffer = self._buffers.setdefault(directory, _Buffer(export_format))
        buffer.tables.append(table)
        buffer.size_bytes += table.nbytes
        self._buffered_bytes += table.nbytes
        if buffer.size_bytes >= self._group_bytes:
            self._flush(directory)
        while self._buffered_bytes > _BUFFERED_GROUPS * self._group_bytes:
            self._flush(max(self._buffers, key=lambda each: self._buffers[each].size_bytes))

    def _flush(self, directory: str) -> None:
        """Write the buffered rows of a directory, in row groups of about the wanted size."""
        buffer = self._buffers.pop(directory)
        self._buffered_bytes -= buffer.size_bytes
        table = pa.concat_tables(buffer.tables).combine_chunks()
        num_groups = max(1, round(buffer.size_bytes / self._group_bytes))
        num_rows = -(-len(table) // num_groups)
        for start in range(0, len(table), num_rows):
            self._write_group(directory, table.slice(start, num_rows), buffer.export_format)

    def _write_group(self, directory: str, group: pa.Table, export_format: ExportFormat) -> None:
        file = self._open.pop(directory, None) or self._new(directory, group.schema, export_format)
        self._open[directory] = file
        file.writer.write(group)
        file.records += len(group)
        if file.path.stat().st_size >= self._settings.file_bytes:
            self._close(directory)

    def _new(self, directory: str, schema: pa.Schema, export_format: ExportFormat) -> _File:
        if len(self._open) >= MAX_OPEN_FILES:
            self._close(next(iter(self._open)))
        suffix = file_suffix(export_format, self._settings)
        relative = f"{directory}{self._stem}-{self._count:04d}.{suffix}"
        self._count += 1
        path = self._directory / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        return _File(path, relative, open_writer(export_format, path, schema, self._settings))

    def _close(self, directory: str) -> None:
        file = self._open.pop(directory)
        file.writer.close()
        self._closed.append(
            ExportedFile(
                file.relative, file.records, file.path.stat().st_size, file_checksum(file.path)
            )
        )

    def close(self) -> list[ExportedFile]:
        """Write what is buffered and close all files; returns the files written."""
        for directory in list(self._buffers):
            self._flush(directory)
        for directory in list(self._open):
            self._close(directory)
        return self._closed

    def abandon(self) -> None:
        """Close all files without completing them: the attempt has failed."""
        for file in self._open.values():
            file.writer.close()


def count_rows(piece: Piece, good: pa.Table, bad: pa.Table, rows: pa.Table) -> PartitionCount:
    """The counts of rows written (`good`, as `rows`) and set aside (`bad`), in offset order."""
    ends = [t.column("offset")[at].as_py() for t in (good, bad) if len(t) for at in (0, -1)]
    return PartitionCount(
        piece.topic,
        piece.partition,
        len(good),
        len(bad),
        first_offset=min(ends, default=None),
        last_offset=max(ends, default=None),
        streams=table_streams(rows),
    )


def write_empty_file(directory: Path, topic: str, settings: TaskSettings) -> ExportedFile:
    """A file without rows, so that readers of an export without records find its columns."""
    nothing = arrow_schema(columns_to_read(settings)).empty_table()
    rows = written_columns(rows_of(nothing, settings)[0], settings)
    rows = rows.drop_columns([name for name in settings.partition_by if name in rows.column_names])
    names = {PartitionColumn.TOPIC: topic}
    levels = "".join(f"{level}={names.get(level, _NO_VALUE)}/" for level in settings.partition_by)
    relative = f"{levels}part-00000-0000.{file_suffix(settings.export_format, settings)}"
    path = directory / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = open_writer(settings.export_format, path, rows.schema, settings)
    writer.write(rows)
    writer.close()
    return ExportedFile(relative, 0, path.stat().st_size, file_checksum(path))


def _split(
    piece: Piece, table: pa.Table, level: PartitionColumn
) -> list[tuple[object, pa.ChunkedArray | None]]:
    """(directory name, which rows; None for all)."""
    if level is PartitionColumn.TOPIC:
        return [(piece.topic, None)]
    if level is PartitionColumn.PARTITION:
        return [(piece.partition, None)]
    texts = pc.fill_null(time_texts(table, level), _NO_VALUE)
    names = pc.unique(texts)
    if len(names) == 1:
        return [(names[0].as_py(), None)]
    return [(text.as_py(), pc.equal(texts, text)) for text in names]


def time_texts(table: pa.Table, level: PartitionColumn) -> pa.ChunkedArray:
    """Date or hour of each row as in directory names; null without a timestamp."""
    return pc.strftime(table.column("timestamp"), format=_TIME_FORMATS[level])


def describe_file(path: Path, relative: str) -> ExportedFile:
    """Size, checksum and records of a data file; UNKNOWN records if its format has no count."""
    return ExportedFile(relative, _rows(path), path.stat().st_size, file_checksum(path))


def _rows(path: Path) -> int:
    """The row count in the metadata of a file."""
    if path.suffix != ".parquet":
        return UNKNOWN
    from pyarrow import parquet

    try:
        return int(parquet.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError):  # damaged: the checksum differs
        return UNKNOWN


def file_checksum(path: Path) -> str:
    """The CRC-32C of a file in hexadecimal."""
    crc = 0
    with path.open("rb") as file:
        while data := file.read(_READ_BYTES):
            crc = crc32c(data, crc)
    return f"{crc:08x}"
