"""`kctl throttle`: the noun, and the examples of its verbs."""

from kctl.cli.command_tree import command, noun
from kctl.commands.throttle.change import clear, set_throttles
from kctl.commands.throttle.list import list_throttles

app = noun("List, set and clear replication throttles.")

command(
    app,
    "list",
    examples=["kctl throttle list", "kctl throttle list --leaked", "kctl throttle list -o json"],
)(list_throttles)

command(
    app,
    "set",
    examples=[
        "kctl throttle set 50MB --brokers 1 --yes",
        "kctl throttle set 20MB orders --dry-run",
        "kctl throttle set --log-dirs 100MB --brokers 1 --yes",
    ],
)(set_throttles)

command(
    app,
    "clear",
    examples=[
        "kctl throttle clear --leaked --yes",
        "kctl throttle clear orders --dry-run",
        "kctl throttle clear --brokers 1 --yes",
    ],
)(clear)
