"""`kctl groups`: the noun, and the examples of its verbs."""

from kctl.cli.command_tree import command, noun
from kctl.commands.groups.delete import delete, delete_group_offsets
from kctl.commands.groups.describe import describe, list_consumer_groups
from kctl.commands.groups.remove_members import remove_group_members
from kctl.commands.groups.reset_offsets import reset_offsets
from kctl.commands.groups.watch import watch

app = noun("List, describe, watch, reset and delete consumer groups.")

command(app, "list", examples=["kctl groups list", "kctl groups list --state Stable -o json"])(
    list_consumer_groups
)

command(
    app,
    "describe",
    examples=[
        "kctl groups describe billing",
        "kctl groups describe billing --members -o wide",
        "kctl groups describe --all --totals",
        "kctl groups describe billing --fail-if 'lag>1000' --fail-if 'time-lag>5m'",
        "kctl groups describe --group billing --format kafka",
    ],
)(describe)

command(
    app,
    "watch",
    examples=["kctl groups watch billing --count 2 --interval 0.1"],
)(watch)

command(
    app,
    "reset-offsets",
    examples=[
        "kctl groups reset-offsets billing --topic orders --to-earliest",
        "kctl groups reset-offsets billing --topic orders:0 --shift-by -10 --execute",
        "kctl groups reset-offsets billing --all-topics --by-duration 15m --yes",
        "kctl groups reset-offsets billing --all-topics --to-current --export",
    ],
)(reset_offsets)

command(
    app,
    "delete-offsets",
    examples=["kctl groups delete-offsets billing --topic orders --yes"],
)(delete_group_offsets)

command(
    app,
    "remove-members",
    examples=["kctl groups remove-members billing --all --dry-run"],
)(remove_group_members)

command(
    app,
    "delete",
    examples=["kctl groups delete billing --dry-run", "kctl groups delete billing --yes"],
)(delete)
