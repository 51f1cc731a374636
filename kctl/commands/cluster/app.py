"""`kctl cluster`: the noun, and the examples of its verbs."""

import os

import typer

from kctl.cli.arguments.zookeeper import ZooKeeperOption
from kctl.cli.command_tree import command, noun
from kctl.cli.contexts import refuse_empty_variable
from kctl.cli.errors import usage_error
from kctl.commands.cluster.describe import describe, show_id
from kctl.commands.cluster.unregister import unregister

app = noun("Describe the cluster; unregister brokers.")


@app.callback(invoke_without_command=True)
def cluster(ctx: typer.Context, zookeeper: ZooKeeperOption = None) -> None:
    """Without a verb, describe the cluster."""
    if ctx.invoked_subcommand is None:
        if zookeeper is None:
            refuse_empty_variable("KCTL_ZOOKEEPER")
        describe(ctx, zookeeper)
    elif zookeeper is not None and zookeeper != os.environ.get("KCTL_ZOOKEEPER"):
        raise usage_error(
            "-z is an option of the verb describe", "kctl cluster describe -z HOST:PORT/CHROOT"
        )


command(
    app,
    "describe",
    examples=[
        "kctl cluster describe -b localhost:9092",
        "kctl cluster -b localhost:9092 -o yaml",
        "kctl cluster -b localhost:9092 -z localhost:2181/kafka",
    ],
)(describe)

command(
    app,
    "id",
    examples=[
        "kctl cluster id -b localhost:9092",
        "kctl cluster id -b localhost:9092 --format kafka",
    ],
)(show_id)

command(
    app,
    "unregister",
    examples=["kctl cluster unregister 4 --dry-run", "kctl cluster unregister 4 --yes"],
)(unregister)
