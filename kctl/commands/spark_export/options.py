"""Spark's options, which all verbs of `kctl spark-export` have."""

from typing import TYPE_CHECKING, Annotated

import typer

from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.options import Session

if TYPE_CHECKING:
    from kctl.spark.engine.session import SparkOptions
Master = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Spark master; by default the cores of this machine."),
]
Conf = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="Set a Spark property. Can be repeated."),
]
Packages = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GROUP:NAME:VERSION", help="Jar that Spark downloads from Maven. Can be repeated."
    ),
]
Jars = Annotated[
    list[str] | None, typer.Option(metavar="FILE", help="Jar to add to Spark. Can be repeated.")
]


def spark_options(
    session: Session,
    master: str | None,
    conf: list[str] | None,
    packages: list[str] | None,
    jars: list[str] | None,
) -> "SparkOptions":
    """The options of a Spark session; a usage error if --conf is not KEY=VALUE."""
    from kctl.spark.engine.session import DEFAULT_MASTER, SparkOptions

    return SparkOptions(
        master or DEFAULT_MASTER,
        dict(_setting(each) for each in conf or ()),
        packages=all_given(packages),
        jars=all_given(jars),
        is_verbose=bool(session.verbose),
    )


def all_given(given: list[str] | None) -> tuple[str, ...]:
    """The values of an option that can be repeated."""
    return tuple(given or ())


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise CliError(f"--conf {text}: expected KEY=VALUE", status=ExitStatus.USAGE)
    return key, value
