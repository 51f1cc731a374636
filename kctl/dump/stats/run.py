"""Runs `--stats`: statistics per directory."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.output import Output, OutputFormat
from kctl.cli.tables import record_lines
from kctl.dump.progress import Watch, progress_bar
from kctl.dump.reading.files import DumpFile, FileKind, Found
from kctl.dump.rows.log_rows import View
from kctl.dump.run import Fence, watched
from kctl.dump.stats.log_stats import LogStats
from kctl.dump.stats.text import CSV_COLUMNS, SUMMARY, flat_row, histogram_lines, summary


def dump_stats(files: Iterable[Found], view: View, out: Output) -> ExitStatus:
    """Show the statistics of each directory."""
    fence = Fence(out)
    found = _segments(files, fence)
    with progress_bar(is_wanted=True) as watch:
        counted = [
            _count(directory, list(group), view, fence, watch)
            for directory, group in groupby(found, key=lambda file: file.path.parent)
        ]
    if out.format.is_for_people:
        for stats in counted:
            out.heading(str(stats.directory))
            look = out.look()
            out.safe_lines(record_lines(summary(stats), SUMMARY, look))
            out.safe_lines([*histogram_lines(stats.row(), look.paint), ""])
    elif out.format is OutputFormat.CSV:
        out.rows([flat_row(stats.row()) for stats in counted], CSV_COLUMNS, name="directory")
    else:
        out.rows([stats.row() for stats in counted], SUMMARY, name="directory")
    return fence.status


def _segments(files: Iterable[Found], fence: Fence) -> Iterator[DumpFile]:
    for found in files:
        if isinstance(found, CliError):
            fence.report(found)
        elif found.kind is FileKind.LOG:
            yield found
        else:
            fence.report(CliError(f"{found.path}: --stats counts .log files only"))


def _count(
    directory: Path, files: list[DumpFile], view: View, fence: Fence, watch: Watch
) -> LogStats:
    stats = LogStats(directory)
    for file in files:
        with fence.guard():
            stats.add_segment(file, watched(view, file, fence, watch))
    return stats
