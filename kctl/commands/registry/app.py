"""`kctl registry`: the noun, and the examples of its verbs."""

from kctl.cli.command_tree import command, noun
from kctl.commands.registry.change import (
    check_schema,
    compatibility,
    delete_schema,
    register_schema,
)
from kctl.commands.registry.show import diff_schemas, list_subjects, list_versions, show_schema

app = noun("List, show, compare, check, register and delete schemas of a schema registry.")

command(
    app,
    "list",
    examples=[
        "kctl registry list --registry http://localhost:8081",
        "kctl registry list --deleted -o json",
    ],
)(list_subjects)
command(app, "versions", examples=["kctl registry versions orders-value"])(list_versions)
command(
    app,
    "show",
    examples=[
        "kctl registry show orders-value",
        "kctl registry show orders-value:1 -o json",
        "kctl registry show id:42",
    ],
)(show_schema)
command(
    app,
    "diff",
    examples=[
        "kctl registry diff orders-value",
        "kctl registry diff orders-value:1 orders-value:3",
    ],
)(diff_schemas)
command(
    app,
    "check",
    examples=[
        "kctl registry check orders-value order.avsc",
        "kctl registry check orders-value order.avsc --version 1 -o json",
    ],
)(check_schema)
command(
    app,
    "register",
    examples=[
        "kctl registry register orders-value order.avsc",
        "kctl registry register orders-value o.proto --reference a.proto=address:1",
    ],
)(register_schema)
command(
    app,
    "delete",
    examples=[
        "kctl registry delete orders-value:3 --dry-run",
        "kctl registry delete orders-value --yes",
    ],
)(delete_schema)
command(
    app,
    "compatibility",
    examples=[
        "kctl registry compatibility orders-value",
        "kctl registry compatibility orders-value --set full",
    ],
)(compatibility)
