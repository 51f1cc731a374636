"""`kctl transactions`: the noun, and the examples of its verbs."""

from kctl.cli.command_tree import command, noun
from kctl.commands.transactions.abort import abort
from kctl.commands.transactions.describe import describe, find_hanging, list_all, producers

app = noun("List and describe transactions; find and abort hanging ones.")

command(
    app,
    "list",
    examples=[
        "kctl transactions list",
        "kctl transactions list --state Ongoing --longer-than 5m",
        "kctl transactions list --producer-id 1000 -o json",
    ],
)(list_all)

command(
    app,
    "describe",
    examples=[
        "kctl transactions describe --all",
        "kctl transactions describe payments-1 --format kafka",
    ],
)(describe)

command(
    app,
    "producers",
    examples=[
        "kctl transactions producers orders:0",
        "kctl transactions producers orders -o wide",
    ],
)(producers)

command(
    app,
    "hanging",
    examples=[
        "kctl transactions hanging",
        "kctl transactions hanging orders --max-transaction-timeout 60",
        "kctl transactions hanging --broker-id 0 --format kafka",
    ],
)(find_hanging)

command(
    app,
    "abort",
    examples=[
        "kctl transactions abort orders:0 --start-offset 1042 --dry-run",
        "kctl transactions abort orders:0 --start-offset 1042 --yes",
    ],
)(abort)
