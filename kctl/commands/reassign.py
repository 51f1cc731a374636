"""`kctl reassign`: the noun, and the examples of its verbs."""

from kctl.commands.reassign_change import cancel, execute
from kctl.commands.reassign_plan import plan
from kctl.commands.reassign_run import run
from kctl.commands.reassign_show import list_moves, verify
from kctl.groups import command, noun

app = noun("Move replicas between brokers.")

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
