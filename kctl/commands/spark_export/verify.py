"""`kctl spark-export verify`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from kctl.cli.errors import ExitStatus
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


def verify(
    ctx: typer.Context,
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="Directory that contains the exports.")
    ],
    from_dir: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="LOGDIR", help="Compare with the log directory of a broker; can be repeated."
        ),
    ] = None,
    deep: Annotated[
        bool,
        typer.Option("--deep", help="Compare the values of all rows, not only their number."),
    ] = False,
    registry: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="KCTL_SCHEMA_REGISTRY_URL",
            help="Schema registry, to compare exports made with --value registry.",
        ),
    ] = None,
    engine: Engine = None,
    master: Master = None,
    conf: Conf = None,
    packages: Packages = None,
    jars: Jars = None,
) -> int:
    """Verify exports against their manifests and, if given, against the source.

    Compares the size, checksum and record count of each file, and finds offsets that are in two
    exports or, after incremental exports, in none. With a cluster (-b) or log directories the
    exported offsets are read again and counted.

    --deep also reads all rows of Parquet and ORC files, and with a source all its records, and
    compares the checksum of each column with the manifest. Prints one line per problem. The exit
    status is 0 if no problems are found and 3 otherwise.
    """
    # Imported here because importing Arrow takes longer than most commands run.
    from kctl.registry.settings import registry_settings
    from kctl.spark.verify import FINDING_COLUMNS, verify_exports

    session = session_of(ctx)
    options = engine_options(session, engine, None, master, conf, packages, jars)
    findings = verify_exports(
        export_location(directory),
        tuple(from_dir or ()),
        session,
        options,
        is_deep=deep,
        registry=registry_settings(session, registry),
    )
    session.out.rows([asdict(each) for each in findings], FINDING_COLUMNS, name="what")
    if findings:
        return ExitStatus.FOUND
    session.out.note(f"{directory}: no problems found")
    return ExitStatus.OK
