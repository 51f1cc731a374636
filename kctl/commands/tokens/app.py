"""`kctl tokens`: the noun, and the examples of its verbs."""

from kctl.cli.command_tree import command, noun
from kctl.commands.tokens.change import expire, renew
from kctl.commands.tokens.list import create, list_all

app = noun("Create, renew, expire and list delegation tokens.")

command(
    app,
    "list",
    examples=["kctl tokens list", "kctl tokens list --owner alice -o json"],
)(list_all)

command(
    app,
    "create",
    examples=[
        "kctl tokens create --max-lifetime 1d --renewer scheduler",
        "kctl tokens create --owner User:job-7 -o json",
    ],
)(create)

command(app, "renew", examples=["kctl tokens renew RhS2Pm1jTGy7GzIFBwP9Kw --period 12h"])(renew)

command(app, "expire", examples=["kctl tokens expire RhS2Pm1jTGy7GzIFBwP9Kw --yes"])(expire)
