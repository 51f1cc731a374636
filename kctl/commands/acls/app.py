"""`kctl acls`: the noun, and the examples of its verbs."""

from kctl.cli.command_tree import command, noun
from kctl.commands.acls.change import add, apply, remove
from kctl.commands.acls.explain import audit, explain
from kctl.commands.acls.list import export, list_acls

app = noun("List, add, remove, explain and audit ACLs.")

command(
    app,
    "list",
    examples=[
        "kctl acls list",
        "kctl acls list --principal alice",
        "kctl acls list topic:orders --pattern match",
        "kctl acls list --topic orders --format kafka",
    ],
)(list_acls)

command(
    app,
    "add",
    examples=[
        "kctl acls add topic:orders --allow alice --operation read --operation describe",
        "kctl acls add topic:orders --allow User:shop --producer",
        "kctl acls add topic:orders group:billing --allow User:billing --consumer",
        "kctl acls add topic:raw- --pattern prefixed --allow etl --dry-run",
        "kctl acls add topic:orders --deny mallory --deny-host 10.0.0.9",
    ],
)(add)

command(
    app,
    "remove",
    examples=[
        "kctl acls remove topic:orders --allow alice --operation read --yes",
        "kctl acls remove --principal alice --dry-run",
        "kctl acls remove topic:orders --pattern match --dry-run",
    ],
)(remove)

command(
    app,
    "explain",
    examples=[
        "kctl acls explain alice read topic:orders",
        "kctl acls explain User:shop write topic:orders --host 10.0.0.7 -o json",
    ],
)(explain)

command(app, "audit", examples=["kctl acls audit", "kctl acls audit -o json"])(audit)

command(app, "export", examples=["kctl acls export"])(export)

command(
    app,
    "apply",
    examples=[
        "kctl acls apply acls.yaml --dry-run",
        "kctl acls apply acls.yaml --prune --yes",
    ],
)(apply)
