"""One run of dump-log: file after file, with errors contained per file.

An unreadable file is reported in one line and the others are still shown; the exit status is then
1. Batches with a wrong CRC are shown and reported; the exit status is then 3.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from broker.errors import CorruptRecord
from broker.log.checkpoints import CorruptCheckpoint
from broker.protocol.errors import DecodeError
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.output import Output
from kctl.dump.checking.findings import FINDING_COLUMNS, Finding
from kctl.dump.kafka_text.options import Afterwards, KafkaOptions
from kctl.dump.kafka_text.text import dump_file
from kctl.dump.progress import Watch, progress_bar
from kctl.dump.reading.decoders import decoder_for
from kctl.dump.reading.files import DumpFile, FileKind, Found
from kctl.dump.rows.columns import COLUMNS, NAMES
from kctl.dump.rows.file_rows import rows_of
from kctl.dump.rows.log_rows import Row, View
from kctl.dump.rows.row_writer import RowWriter

UNREADABLE = (CorruptRecord, CorruptCheckpoint, DecodeError, OSError, CliError)
KAFKA_KINDS = frozenset(
    {
        FileKind.LOG,
        FileKind.OFFSET_INDEX,
        FileKind.TIME_INDEX,
        FileKind.TXN_INDEX,
        FileKind.SNAPSHOT,
    }
)


class Fence:
    """Reports errors of files and keeps the exit status."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self.status = ExitStatus.OK

    def report(self, error: Exception) -> None:
        """Print the error to stderr, after the output so far."""
        sys.stdout.flush()
        self._out.error(explained(error))
        self.status = ExitStatus.FAILED

    def found(self, problem: str) -> None:
        """Print what is wrong with a batch that could be read nevertheless."""
        sys.stdout.flush()
        self._out.note(problem)
        self.status = self.status or ExitStatus.FOUND

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Report a file that cannot be read inside the block."""
        try:
            yield
        except BrokenPipeError:  # the reader of our output has gone
            raise
        except UNREADABLE as error:
            self.report(error)


def explained(error: Exception) -> CliError:
    """The error in one line."""
    if isinstance(error, CliError):
        return error
    if isinstance(error, OSError):
        return CliError(f"{error.filename}: {(error.strerror or str(error)).lower()}")
    return CliError(str(error))


class FindingWriter:
    """Shows findings: in tables a line each as they are found, in other formats as one list."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._rows: list[Row] = []
        self.count = 0

    def add(self, finding: Finding) -> None:
        """Add a finding."""
        self.count += 1
        if self._out.format.is_for_people:
            self._out.lines([str(finding)])
        else:
            self._rows.append(finding.row())

    def close(self, *, is_complete: bool = True) -> None:
        """Show the list, or that no problems were found if the check was complete."""
        if not self._out.format.is_for_people:
            self._out.rows(self._rows, FINDING_COLUMNS, name="file")
        elif not self.count and is_complete:
            self._out.lines(["no problems found"])


# --- Kafka's own text --------------------------------------------------------------------------


def dump_as_kafka(files: Iterable[Found], options: KafkaOptions, out: Output) -> ExitStatus:
    """Print what kafka-dump-log prints."""
    fence = Fence(out)
    afterwards = Afterwards(on_problem=fence.report)
    with progress_bar(is_wanted=not sys.stdout.isatty()) as watch:
        for found in files:
            if isinstance(found, DumpFile) and found.kind in KAFKA_KINDS:
                heard = replace(options, on_position=watch(found))
                with fence.guard():
                    out.chunks(dump_file(found, heard, afterwards))
            elif isinstance(found, DumpFile):
                out.lines([f"Dumping {found.path}"])
                out.note(f"Ignoring unknown file {found.path}")
            else:
                out.lines([f"Dumping {found.argument}"])
                fence.report(found)
    sys.stdout.flush()
    for line in afterwards.lines():
        out.note(line)
    return fence.status


# --- rows --------------------------------------------------------------------------------------


def dump_rows(files: Iterable[Found], view: View, out: Output) -> ExitStatus:
    """Show batches or records, and the entries of the other files."""
    fence = Fence(out)
    writer = RowWriter(out, show_empty=view.filters.is_empty)
    with progress_bar(is_wanted=not sys.stdout.isatty()) as watch:
        for found in files:
            if isinstance(found, CliError):
                fence.report(found)
            else:
                _show_file(writer, found, view, fence, watch)
    writer.close()
    return fence.status


def _show_file(writer: RowWriter, file: DumpFile, view: View, fence: Fence, watch: Watch) -> None:
    if file.is_named and not _size(file.path):
        fence.report(CliError(f"{file.path}: empty"))
        return
    rows = _guarded(file, watched(view, file, fence, watch), fence)
    if file.kind is FileKind.LOG:
        writer.file(str(file.path), rows, view.columns, view.name)
    else:
        writer.file(str(file.path), rows, COLUMNS[file.kind], NAMES[file.kind])


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1  # reading it reports the error


def watched(view: View, file: DumpFile, fence: Fence, watch: Watch) -> View:
    """The view for one file, with its decoder and callbacks."""
    decoder = view.decoder or decoder_for(file.path.absolute().parent.name)
    return replace(
        view,
        decoder=decoder,
        on_problem=fence.report,
        on_bad_crc=fence.found,
        on_position=watch(file),
    )


def _guarded(file: DumpFile, view: View, fence: Fence) -> Iterator[Row]:
    with fence.guard():
        yield from rows_of(file, view)
