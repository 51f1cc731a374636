"""`kctl spark-export compact`."""

from typing import Annotated

import typer

from kctl.cli.errors import usage_error
from kctl.cli.options import session_of
from kctl.commands.spark_export.options import export_location


def compact(
    ctx: typer.Context,
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="Local directory that contains the exports.")
    ],
    file_size: Annotated[
        int, typer.Option(metavar="MB", min=1, help="Target size of a file.")
    ] = 256,
) -> None:
    """Merge the exports in a directory into one with larger files.

    For directories with many small increments. All exports are verified first; damaged, missing or
    overlapping ones are refused. The manifest of the new export has the offsets, counts and gaps of
    all, so that --incremental continues after it. Only Parquet files in local directories.
    """
    # Imported here because importing Arrow takes longer than most commands run.
    from kctl.spark.compaction import compact_exports

    location = export_location(directory)
    if "://" in location:
        raise usage_error(f"{location}: only local directories can be compacted", "use Spark")
    compact_exports(location, file_size * 2**20, session_of(ctx))
