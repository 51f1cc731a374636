"""`kctl context`: the noun, and the examples of its verbs."""

from kctl.cli.command_tree import command, noun
from kctl.cli.options import CLUSTER_PRECEDENCE
from kctl.commands.context.change import delete, set_context, use
from kctl.commands.context.show import list_contexts, show

app = noun(f"Manage contexts: named clusters.\n\n{CLUSTER_PRECEDENCE}")

command(app, "list", examples=["kctl context list", "kctl context list -o yaml"])(list_contexts)

command(app, "show", examples=["kctl context show", "kctl context show prod -o json"])(show)

command(
    app,
    "set",
    examples=[
        "kctl context set dev -b localhost:9192",
        "kctl context set prod -b kafka1:9092,kafka2:9092 --protected",
        "kctl context set prod --read-only",
        "kctl context set prod --zookeeper zk1:2181/kafka",
    ],
)(set_context)

command(app, "use", examples=["kctl context use dev"])(use)

command(app, "delete", examples=["kctl context delete prod"])(delete)
