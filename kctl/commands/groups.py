"""`kctl groups`: the noun, and the examples of its verbs."""

from kctl.commands.group_change import delete, delete_group_offsets, remove_group_members
from kctl.commands.group_reset import reset_offsets
from kctl.commands.group_show import describe, list_consumer_groups
from kctl.commands.group_watch import watch
from kctl.groups import command, noun

app = noun("Consumer groups: who reads what, how far.")

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
