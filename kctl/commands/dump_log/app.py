"""`kctl dump-log`: the noun, and the examples of its verbs."""

import typer

from kctl.cli.command_tree import DefaultVerbGroup, command
from kctl.cli.help import format_examples
from kctl.commands.dump_log.check import check
from kctl.commands.dump_log.repair import repair
from kctl.commands.dump_log.segments import locate_offset, segments
from kctl.commands.dump_log.show import show

app = typer.Typer(
    cls=DefaultVerbGroup,
    help="Show, locate, check and repair the files of a log.\n\nThe default verb is show.",
    epilog=format_examples(
        [
            "kctl dump-log /var/lib/kafka/orders-0",
            "kctl dump-log check /var/lib/kafka",
            "kctl dump-log repair /var/lib/kafka/orders-0 --to /tmp/orders-0",
        ]
    ),
    add_completion=False,
    callback=lambda: None,
)

command(
    app,
    DefaultVerbGroup.default_verb,
    examples=[
        "kctl dump-log show /var/lib/kafka/orders-0",
        "kctl dump-log /var/lib/kafka/orders-0/00000000000000000000.log --records",
        "kctl dump-log orders-0 --records --offset 1000:1010 -o json",
        "kctl dump-log orders-0 --key alice --time -15m: -o jsonl",
        "kctl dump-log orders-0 --stats",
        "kctl dump-log __consumer_offsets-7 --records -o wide",
        "kctl dump-log __cluster_metadata-0 --records -o jsonl",
        "kctl dump-log --format kafka --print-data-log --files 00000000000000000000.log",
    ],
)(show)

command(
    app,
    "check",
    examples=[
        "kctl dump-log check /var/lib/kafka",
        "kctl dump-log check /var/lib/kafka/orders-0 -o json",
    ],
)(check)

command(
    app,
    "repair",
    examples=["kctl dump-log repair /var/lib/kafka/orders-0 --to /var/lib/saved/orders-0"],
)(repair)

command(
    app,
    "segments",
    examples=[
        "kctl dump-log segments /var/lib/kafka/orders-0 -b localhost:9092",
        "kctl dump-log segments /var/lib/kafka --retention 7d -o json",
        "kctl dump-log segments orders -b localhost:9092",
    ],
)(segments)

command(
    app,
    "locate",
    examples=[
        "kctl dump-log locate /var/lib/kafka/orders-0 300",
        "kctl dump-log locate orders:0 300 -b localhost:9092",
    ],
)(locate_offset)
