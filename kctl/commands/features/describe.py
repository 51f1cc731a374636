"""`kctl features describe` and `versions`."""

from typing import Annotated

import typer

from kctl.admin.connection import ask
from kctl.admin.features import describe_features
from kctl.cli.errors import usage
from kctl.cli.options import KafkaText, session_of
from kctl.model.features import METADATA_VERSIONS, release_updates
from kctl.views.features import COLUMNS, LEVEL_COLUMNS, feature_row, level_row
from kctl.views.kafka_text.features import description_lines, mapping_lines


def describe(ctx: typer.Context, text_format: KafkaText = None) -> None:
    """Show the levels of features that the brokers support, and those in effect.

    FINALIZED is the level in effect; 0 is off. Clusters that use ZooKeeper have no features.
    """
    session = session_of(ctx)
    found = ask(session, describe_features)
    if text_format:
        session.out.lines(description_lines(found))
        return
    if not found.features:
        session.out.nothing("the cluster has no features: it is not in KRaft mode")
        return
    rows = [feature_row(one, found) for one in found.features]
    session.out.rows(rows, COLUMNS, name="feature")


def versions(
    ctx: typer.Context,
    release: Annotated[
        str | None,
        typer.Argument(
            metavar="RELEASE",
            help="A release or metadata version, e.g. 4.1 or 4.0-IV3; default: the newest known.",
            show_default=False,
        ),
    ] = None,
    release_option: Annotated[
        str | None, typer.Option("--release-version", metavar="RELEASE", hidden=True)
    ] = None,
    text_format: KafkaText = None,
) -> None:
    """Show the levels that each feature has by default in a release; needs no cluster."""
    session = session_of(ctx)
    wanted = release or release_option or METADATA_VERSIONS[-1]
    levels = usage(release_updates, wanted)
    if text_format:
        session.out.lines(mapping_lines(wanted, levels))
        return
    session.out.rows(map(level_row, levels), LEVEL_COLUMNS, name="feature")
