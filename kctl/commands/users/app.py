"""`kctl users`: the noun, and the examples of its verbs."""

from kctl.cli.command_tree import command, noun
from kctl.commands.users.change import delete_user, set_user
from kctl.commands.users.list import list_users

app = noun("List, set and delete SCRAM credentials of users.")

command(
    app,
    "list",
    examples=["kctl users list", "kctl users list alice -o json", "kctl users list --format kafka"],
)(list_users)

command(
    app,
    "set",
    examples=[
        "kctl users set alice",
        "kctl users set alice --password-env ALICE_PASSWORD --yes",
        "kctl users set broker --password-file broker.secret -z localhost:2181/kafka",
    ],
)(set_user)

command(
    app,
    "delete",
    examples=[
        "kctl users delete alice --yes",
        "kctl users delete alice --mechanism SCRAM-SHA-256 --dry-run",
    ],
)(delete_user)
