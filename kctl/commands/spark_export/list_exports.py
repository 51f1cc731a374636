"""`kctl spark-export list`."""

from typing import Annotated

import typer

from kctl.cli.options import session_of
from kctl.commands.spark_export.options import (
    Conf,
    Engine,
    Jars,
    Master,
    Packages,
    engine_options,
    export_location,
)


def list_exports(
    ctx: typer.Context,
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="Directory that contains the exports.")
    ],
    engine: Engine = None,
    master: Master = None,
    conf: Conf = None,
    packages: Packages = None,
    jars: Jars = None,
) -> None:
    """List the exports in a directory.

    Shows when and how each was written, and how much it contains. With -o json also the offsets of
    each partition.
    """
    # Imported here because importing Arrow takes longer than most commands run.
    from kctl.spark import listing

    session = session_of(ctx)
    options = engine_options(session, engine, None, master, conf, packages, jars)
    rows = listing.list_exports(export_location(directory), options)
    session.out.rows(rows, listing.EXPORT_COLUMNS, name="path")
