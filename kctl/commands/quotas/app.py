"""`kctl quotas`: the noun, and the examples of its verbs."""

from kctl.cli.command_tree import command, noun
from kctl.commands.quotas.change import delete_quotas, set_quotas
from kctl.commands.quotas.list import list_quotas, resolve

app = noun("List, set, delete and resolve client quotas.")

command(
    app,
    "list",
    examples=[
        "kctl quotas list",
        "kctl quotas list --user alice",
        "kctl quotas list --entity-type users --format kafka",
    ],
)(list_quotas)

command(
    app,
    "set",
    examples=[
        "kctl quotas set producer_byte_rate=10MB --user alice --yes",
        "kctl quotas set request_percentage=50 --user alice --client reports --dry-run",
        "kctl quotas set consumer_byte_rate=1MB --client-defaults --yes",
        "kctl quotas set connection_creation_rate=20 --ip-defaults --yes",
    ],
)(set_quotas)

command(
    app,
    "delete",
    examples=[
        "kctl quotas delete producer_byte_rate --user alice --yes",
        "kctl quotas delete --user alice --dry-run",
    ],
)(delete_quotas)

command(
    app,
    "resolve",
    examples=[
        "kctl quotas resolve --user alice --client reports",
        "kctl quotas resolve --ip 10.0.0.7 -o json",
    ],
)(resolve)
