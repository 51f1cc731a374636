"""`kctl configs`: the noun, and the examples of its verbs."""

from kctl.cli.command_tree import command, noun
from kctl.commands.configs.alter import (
    alter,
    append_items,
    delete_values,
    set_values,
    subtract_items,
)
from kctl.commands.configs.describe import describe, diff

app = noun("Describe and alter configs of topics, brokers, groups and client metrics.")

command(
    app,
    "describe",
    examples=[
        "kctl configs describe topic:orders",
        "kctl configs describe broker:1 --all -o wide",
        "kctl configs describe brokers",
        "kctl configs describe --entity-type topics --entity-name orders --format kafka",
    ],
)(describe)

command(
    app,
    "alter",
    examples=[
        "kctl configs alter topic:orders --set retention.ms=86400000 --yes",
        "kctl configs alter brokers --delete log.retention.ms --dry-run",
        "kctl configs alter topic:orders --append cleanup.policy=compact --yes",
        "kctl configs alter --topic orders --add-config segment.ms=9000 --yes",
        "kctl configs alter client-metrics:producers --set interval.ms=60000 --dry-run",
    ],
)(alter)

command(
    app,
    "set",
    examples=["kctl configs set topic:orders retention.ms=86400000 --yes"],
)(set_values)

command(app, "delete", examples=["kctl configs delete topic:orders retention.ms --yes"])(
    delete_values
)

command(app, "append", examples=["kctl configs append topic:orders cleanup.policy=compact --yes"])(
    append_items
)

command(
    app, "subtract", examples=["kctl configs subtract topic:orders cleanup.policy=compact --yes"]
)(subtract_items)

command(
    app,
    "diff",
    examples=[
        "kctl configs diff topic:orders topic:payments",
        "kctl configs diff broker:1 brokers -o json",
    ],
)(diff)
