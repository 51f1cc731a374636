"""Options of the engines, which the verbs of `kctl spark-export` share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.cli.contexts import EXPORT_ENGINES
from kctl.cli.errors import CliError, ExitStatus, usage_error
from kctl.cli.options import Session

if TYPE_CHECKING:
    from kctl.spark.engine.local import EngineOptions
SPARK, LOCAL = EXPORT_ENGINES

Engine = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Engine that runs the tasks: spark (the default), or local: processes on this "
        "machine, which start faster. A context can have another default (export_engine).",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Processes of the local engine; by default one per core."
    ),
]
Master = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Spark master; by default the cores of this machine."),
]
Conf = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="Set a Spark property; can be repeated."),
]
Packages = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GROUP:NAME:VERSION", help="Jar that Spark downloads from Maven; can be repeated."
    ),
]
Jars = Annotated[
    list[str] | None, typer.Option(metavar="FILE", help="Jar to add to Spark; can be repeated.")
]
PyFiles = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE", help="Python file to send to the workers; can be repeated."),
]


def engine_options(
    session: Session,
    engine: str | None,
    workers: int | None,
    master: str | None,
    conf: list[str] | None,
    packages: list[str] | None,
    jars: list[str] | None,
    py_files: list[str] | None = None,
) -> "EngineOptions":
    """The options of the chosen engine; a usage error if an option belongs to the other one.

    Without --engine, an option of one engine chooses it; then the context decides.
    """
    from kctl.spark.engine.local import LocalOptions
    from kctl.spark.engine.session import SparkOptions, resilient_master

    of_spark = {
        "--master": master,
        "--conf": conf,
        "--packages": packages,
        "--jars": jars,
        "--py-files": py_files,
    }
    given = [name for name, value in of_spark.items() if value]
    chosen = engine or (SPARK if given else None) or (LOCAL if workers else None)
    chosen = chosen or session.active_context[1].export_engine or SPARK
    if chosen not in EXPORT_ENGINES:
        raise usage_error(f"--engine {chosen}: unknown", f"choose from {', '.join(EXPORT_ENGINES)}")
    misplaced = given if chosen == LOCAL else ["--workers"] if workers else []
    if misplaced:
        other = SPARK if chosen == LOCAL else LOCAL
        raise usage_error(
            f"{misplaced[0]} has no effect with --engine {chosen}",
            f"omit it, or use --engine {other}",
        )
    if chosen == LOCAL:
        return LocalOptions(workers or 0)
    return SparkOptions(
        resilient_master(master),
        dict(_setting(each) for each in conf or ()),
        py_files=tuple(py_files or ()),
        packages=tuple(packages or ()),
        jars=tuple(jars or ()),
        is_verbose=bool(session.verbose),
    )


def export_location(text: str) -> str:
    """`--to` as a local path or a URL; a usage error if it is empty or its scheme is incomplete."""
    if not text.strip():
        raise usage_error("--to is empty", "name a directory")
    if text.startswith("file:"):
        return "/" + text.removeprefix("file:").lstrip("/")
    if text.startswith("~"):
        return str(Path(text).expanduser())
    scheme, colon, rest = text.partition(":")
    if colon and scheme.isalnum() and rest.startswith("/") and not rest.startswith("//"):
        raise usage_error(f"--to {text}: not a URL", f"{scheme}://{rest.lstrip('/')}")
    return text


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise CliError(f"--conf {text}: expected KEY=VALUE", status=ExitStatus.USAGE)
    return key, value
