"""`kctl verify`: the noun, and the examples of its verbs."""

from kctl.cli.command_tree import command, noun
from kctl.commands.verify.consume import consume
from kctl.commands.verify.produce import produce

app = noun("Write numbered records and find lost and duplicate ones.")

command(
    app,
    "produce",
    examples=[
        "kctl verify produce orders -n 1000",
        "kctl verify produce orders -n 10 --value-prefix 1 --format kafka",
    ],
)(produce)

command(
    app,
    "consume",
    examples=[
        "kctl verify consume orders",
        "kctl verify consume orders --expect 1000 -o json",
    ],
)(consume)
