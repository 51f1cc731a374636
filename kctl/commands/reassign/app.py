"""`kctl reassign`: the noun, and the examples of its verbs."""

from kctl.cli.command_tree import command, noun
from kctl.commands.reassign.cancel import cancel
from kctl.commands.reassign.execute import execute
from kctl.commands.reassign.plan import plan
from kctl.commands.reassign.run import run
from kctl.commands.reassign.status import list_moves, verify

app = noun("Plan, run and verify partition reassignments.")

command(
    app,
    "plan",
    examples=[
        "kctl reassign plan --drain 3 --out plan.json",
        "kctl reassign plan orders --replication-factor 3 --rack-aware",
        "kctl reassign plan --balance count --balance leaders --by broker",
        "kctl reassign plan --add-brokers 3 -o json",
        "kctl reassign plan orders --broker-list 1,2,3 --format kafka",
    ],
)(plan)

command(
    app,
    "run",
    examples=[
        "kctl reassign run --drain 3 --throttle 50MB --yes",
        "kctl reassign run orders --replication-factor 3 --dry-run",
        "kctl reassign run --file plan.json --batch-size 5 --yes",
    ],
)(run)

command(
    app,
    "execute",
    examples=[
        "kctl reassign execute plan.json --throttle 50MB --yes",
        "kctl reassign execute plan.json --rollback back.json --dry-run",
    ],
)(execute)

command(
    app,
    "verify",
    examples=[
        "kctl reassign verify plan.json",
        "kctl reassign verify plan.json --clear-throttles",
    ],
)(verify)

command(
    app,
    "list",
    examples=["kctl reassign list", "kctl reassign list orders -o json"],
)(list_moves)

command(
    app,
    "cancel",
    examples=[
        "kctl reassign cancel orders:0 --yes",
        "kctl reassign cancel --file plan.json --dry-run",
        "kctl reassign cancel --all --yes",
    ],
)(cancel)
