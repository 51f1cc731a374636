"""The output files of a task: one per directory, a new one when a file is full."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from crc32c import crc32c

from kctl.spark.planning.plan import Piece
from kctl.spark.planning.settings import ExportFormat, PartitionColumn, TaskSettings
from kctl.spark.writing.content import UNDECODABLE, decode_content
from kctl.spark.writing.formats import TableWriter, open_writer
from kctl.spark.writing.results import UNKNOWN, ExportedFile

MAX_OPEN_FILES = 24
"""Maximum number of open files; beyond it the least recently written file is closed."""

_READ_BYTES = 8 * 1024 * 1024
_TIME_FORMATS = {PartitionColumn.DATE: "%Y-%m-%d", PartitionColumn.HOUR: "%H"}


class _File:
    """A file that is being written."""

    def __init__(self, path: Path, relative: str, writer: TableWriter) -> None:
        self.path = path
        self.relative = relative
        self.writer = writer
        self.records = 0


class OutputFiles:
    """The files of one attempt, below its directory."""

    def __init__(self, directory: Path, stem: str, settings: TaskSettings) -> None:
        self._directory = directory
        self._stem = stem
        self._settings = settings
        self._open: dict[str, _File] = {}
        """By directory, in order of the last write."""
        self._closed: list[ExportedFile] = []
        self._count = 0

    def write(self, piece: Piece, table: pa.Table) -> int:
        """Write rows of one piece; returns how many could not be decoded and were kept aside."""
        good, bad = decode_content(table, self._settings)
        if len(bad):
            self._append(UNDECODABLE, bad, ExportFormat.PARQUET)
        for directory, rows in self._by_directory(piece, good):
            wanted = [
                name for name in self._settings.columns if name not in self._settings.partition_by
            ]
            self._append(directory, rows.select(wanted), self._settings.export_format)
        return len(bad)

    def _by_directory(self, piece: Piece, table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """The rows grouped by directory."""
        groups = [("", table)]
        for level in self._settings.partition_by:
            groups = [
                (f"{directory}{level}={name}/", part)
                for directory, rows in groups
                for name, part in _split(piece, rows, level)
            ]
        return iter(groups)

    def _append(self, directory: str, table: pa.Table, export_format: ExportFormat) -> None:
        if not len(table):
            return
        file = self._open.pop(directory, None) or self._new(directory, table.schema, export_format)
        self._open[directory] = file
        file.writer.write(table)
        file.records += len(table)
        if file.path.stat().st_size >= self._settings.file_bytes:
            self._close(directory)

    def _new(self, directory: str, schema: pa.Schema, export_format: ExportFormat) -> _File:
        if len(self._open) >= MAX_OPEN_FILES:
            self._close(next(iter(self._open)))
        relative = f"{directory}{self._stem}-{self._count:04d}.{export_format}"
        self._count += 1
        path = self._directory / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        return _File(path, relative, open_writer(export_format, path, schema))

    def _close(self, directory: str) -> None:
        file = self._open.pop(directory)
        file.writer.close()
        self._closed.append(
            ExportedFile(
                file.relative, file.records, file.path.stat().st_size, file_checksum(file.path)
            )
        )

    def close(self) -> list[ExportedFile]:
        """Close all files; returns the files written."""
        for directory in list(self._open):
            self._close(directory)
        return self._closed


def _split(piece: Piece, table: pa.Table, level: PartitionColumn) -> list[tuple[object, pa.Table]]:
    if level is PartitionColumn.TOPIC:
        return [(piece.topic, table)]
    if level is PartitionColumn.PARTITION:
        return [(piece.partition, table)]
    texts = pc.fill_null(time_texts(table, level), "__HIVE_DEFAULT_PARTITION__")
    return [(text.as_py(), table.filter(pc.equal(texts, text))) for text in pc.unique(texts)]


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
    except pa.ArrowInvalid:  # damaged: the checksum differs
        return UNKNOWN


def file_checksum(path: Path) -> str:
    """The CRC-32C of a file in hexadecimal."""
    crc = 0
    with path.open("rb") as file:
        while data := file.read(_READ_BYTES):
            crc = crc32c(data, crc)
    return f"{crc:08x}"
