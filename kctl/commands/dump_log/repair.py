"""`kctl dump-log repair`."""

from pathlib import Path
from typing import Annotated

import typer

from kctl.cli.options import session_of
from kctl.dump.run import (
    explained,
)


def repair(
    ctx: typer.Context,
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Damaged partition directory or log directory.")
    ],
    target: Annotated[
        Path, typer.Option("--to", metavar="NEWDIR", help="Directory to write to; must not exist.")
    ],
    index_interval_bytes: Annotated[
        int,
        typer.Option(min=0, help="Bytes between index entries, as in the config of the topic."),
    ] = 4096,
    keep_later: Annotated[
        bool,
        typer.Option(
            "--keep-later-segments",
            help="Keep undamaged segments after a damaged one; leaves a gap in the offsets.",
        ),
    ] = False,
    skip_damaged: Annotated[
        bool,
        typer.Option(
            "--skip-damaged",
            help="Keep all undamaged batches, also those after a damaged one; leaves gaps in the "
            "offsets.",
        ),
    ] = False,
) -> None:
    """Copy the undamaged part of a log to a new directory.

    Every batch is checked. The log is truncated at the first damaged batch, as a broker would do
    it; with --skip-damaged only the damaged batches are left out. Indexes, snapshots and leader
    epochs are rebuilt. The damaged directory is not changed. The output lists files, bytes
    and offsets that were kept and dropped.
    """
    from broker.log.config import LogConfig  # imported here: this imports most of the broker
    from kctl.dump.checking.repair import REPAIR_COLUMNS, RepairOptions, repair_directory

    out = session_of(ctx).out
    config = LogConfig(index_interval_bytes=index_interval_bytes)
    try:
        how = RepairOptions(config, keep_later=keep_later, skip_damaged=skip_damaged)
        done = list(repair_directory(directory, target, how))
    except OSError as error:
        raise explained(error) from error
    out.rows([step.row() for step in done], REPAIR_COLUMNS, name="file")
