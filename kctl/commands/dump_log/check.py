"""`kctl dump-log check`."""

from pathlib import Path
from typing import Annotated

import typer

from kctl.cli.errors import ExitStatus
from kctl.cli.options import session_of
from kctl.dump.progress import progress_bar
from kctl.dump.run import (
    Fence,
    FindingWriter,
)


def check(
    ctx: typer.Context,
    directories: Annotated[
        list[Path], typer.Argument(metavar="DIR…", help="Log directories or partition directories.")
    ],
) -> int:
    """Check log directories for damage and inconsistencies.

    Checks batches (size, CRC, records, order, gaps, leader epochs), offset, time and transaction
    indexes, producer snapshots and checkpoints. Nothing is changed. Prints one line per problem,
    with a remedy. The exit status is 0 if no problems are found and 3 otherwise.

    While a broker is writing to the directory, problems may be reported that disappear a moment
    later.
    """
    from kctl.dump.checking.directory import check_directory  # imported here: show must start fast

    out = session_of(ctx).out
    fence = Fence(out)
    findings = FindingWriter(out)
    with progress_bar(is_wanted=True) as watch:
        for directory in directories:
            with fence.guard():
                check_directory(directory, findings.add, watch)
    findings.close(is_complete=fence.status is ExitStatus.OK)
    return fence.status or (ExitStatus.FOUND if findings.count else ExitStatus.OK)
