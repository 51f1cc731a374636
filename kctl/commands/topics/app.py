"""`kctl topics`: the noun, and the examples of its verbs."""

from kctl.cli.command_tree import command, noun
from kctl.commands.configs.describe import show_topic_configs
from kctl.commands.events import watch_topics
from kctl.commands.topics.alter import alter
from kctl.commands.topics.create import clone, create
from kctl.commands.topics.delete import delete
from kctl.commands.topics.describe import describe, list_topics

app = noun("List, describe, watch, create, alter and delete topics.")

command(
    app,
    "list",
    examples=[
        "kctl topics list",
        "kctl topics list 'orders.*' --regex -o wide",
        "kctl topics list --exclude-internal -o name",
    ],
)(list_topics)

command(
    app,
    "describe",
    examples=[
        "kctl topics describe orders",
        "kctl topics describe orders -o wide",
        "kctl topics describe --under-replicated",
        "kctl topics describe --topics-with-overrides",
        "kctl topics describe --topic orders --format kafka",
    ],
)(describe)

command(
    app,
    "create",
    examples=[
        "kctl topics create invoices --partitions 6",
        "kctl topics create clicks views -p 3 --config retention.ms=86400000",
        "kctl topics create manual --replica-assignment 1,1 --if-not-exists",
        "kctl topics create invoices --partitions 12 --if-not-exists --dry-run",
    ],
)(create)

command(
    app,
    "clone",
    examples=[
        "kctl topics clone orders orders-test",
        "kctl topics clone orders small -p 1 --config retention.ms=3600000",
    ],
)(clone)

command(
    app,
    "alter",
    examples=[
        "kctl topics alter orders --partitions 9 --yes",
        "kctl topics alter orders --config retention.ms=86400000 --dry-run",
        "kctl topics alter 'orders.*' --regex --delete-config retention.ms --yes",
        "kctl topics alter orders --replication-factor 1 --dry-run",
    ],
)(alter)

command(
    app,
    "configs",
    examples=["kctl topics configs orders", "kctl topics configs orders --all -o yaml"],
)(show_topic_configs)

command(
    app,
    "delete",
    examples=[
        "kctl topics delete orders-old --yes",
        "kctl topics delete 'test-.*' --regex --dry-run",
        "kctl topics delete gone --if-exists --yes",
    ],
)(delete)

command(
    app,
    "watch",
    examples=["kctl topics watch orders", "kctl topics watch 'orders.*' --regex -o jsonl --for 1h"],
)(watch_topics)
