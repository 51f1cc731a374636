"""`kctl cluster`: the noun, and the examples of its verbs."""

import typer

from kctl.cli.command_tree import command, noun
from kctl.commands.cluster.describe import describe, show_id

app = noun("Describe the cluster.")


@app.callback(invoke_without_command=True)
def cluster(ctx: typer.Context) -> None:
    """Without a verb, describe the cluster."""

    if ctx.invoked_subcommand is None:
        describe(ctx)


command(
    app,
    "describe",
    examples=["kctl cluster describe -b localhost:9092", "kctl cluster -b localhost:9092 -o yaml"],
)(describe)

command(
    app,
    "id",
    examples=[
        "kctl cluster id -b localhost:9092",
        "kctl cluster id -b localhost:9092 --format kafka",
    ],
)(show_id)
