"""`kctl monitor`: the noun, and the examples of its verbs."""

from kctl.cli.command_tree import command, noun
from kctl.commands.monitor.history import history
from kctl.commands.monitor.run import run

app = noun("Watch clusters: serve metrics of lag and health, keep a history.")

command(
    app,
    "run",
    examples=[
        "kctl monitor run",
        "kctl monitor run --contexts prod,staging --listen 0.0.0.0:9308",
        "kctl monitor run --history lag.db --interval 30",
        "kctl monitor run --probe",
        "kctl monitor run --once",
    ],
)(run)

command(
    app,
    "history",
    examples=[
        "kctl monitor history billing --since 2h",
        "kctl monitor history billing --topic orders --samples -o csv",
    ],
)(history)
