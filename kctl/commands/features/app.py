"""`kctl features`: the noun, and the examples of its verbs."""

import typer

from kctl.cli.command_tree import command, noun
from kctl.commands.features.change import disable, downgrade, upgrade
from kctl.commands.features.describe import describe, versions

app = noun("Describe, upgrade and downgrade the features of a KRaft cluster.")


@app.callback(invoke_without_command=True)
def features(ctx: typer.Context) -> None:
    """Without a verb, describe the features."""
    if ctx.invoked_subcommand is None:
        describe(ctx)


command(
    app,
    "describe",
    examples=["kctl features describe", "kctl features describe --format kafka"],
)(describe)

command(
    app,
    "upgrade",
    examples=[
        "kctl features upgrade metadata.version=4.1 --dry-run",
        "kctl features upgrade --release-version 4.1 --yes",
    ],
)(upgrade)

command(
    app,
    "downgrade",
    examples=["kctl features downgrade share.version=0 --dry-run"],
)(downgrade)

command(app, "disable", examples=["kctl features disable share.version --dry-run"])(disable)

command(
    app,
    "versions",
    examples=["kctl features versions 4.1", "kctl features versions 4.0 --format kafka"],
)(versions)
