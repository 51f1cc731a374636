"""`kctl streams`: the noun, and the examples of its verbs."""

from kctl.cli.command_tree import command, noun
from kctl.commands.streams.reset import reset

app = noun("Reset Kafka Streams applications.")

command(
    app,
    "reset",
    examples=[
        "kctl streams reset word-count --input-topics lines --dry-run",
        "kctl streams reset word-count --input-topics lines --by-duration 1d --yes",
    ],
)(reset)
