"""`kctl spark-export`: the noun, and the examples of its verbs."""

import typer

from kctl.cli.command_tree import DefaultVerbGroup, command
from kctl.cli.help import format_examples
from kctl.commands.spark_export.compact import compact
from kctl.commands.spark_export.list_exports import list_exports
from kctl.commands.spark_export.run import run
from kctl.commands.spark_export.verify import verify

DEFAULT_VERB = "run"


class ExportGroup(DefaultVerbGroup):
    """A group whose default verb is `run`."""

    default_verb = DEFAULT_VERB


app = typer.Typer(
    cls=ExportGroup,
    help="Export topics to Parquet and other formats with Spark.\n\nThe default verb is run.",
    epilog=format_examples(
        [
            "kctl spark-export orders 'audit.*' --to /data/orders",
            "kctl spark-export orders --from-dir /var/lib/kafka --to /data/orders",
            "kctl spark-export verify /data/orders",
        ]
    ),
    add_completion=False,
    callback=lambda: None,
)

command(
    app,
    DEFAULT_VERB,
    examples=[
        "kctl spark-export run orders --to /data/orders",
        "kctl spark-export 'audit.*' --to /data/audit --since -1d --partition-by date",
        "kctl spark-export orders --to /data/orders --incremental",
        "kctl spark-export orders --from-dir /var/lib/kafka --to /data/orders --dry-run",
        "kctl spark-export orders --to /data/orders --value string --format jsonl",
        "kctl spark-export orders --to hdfs://names/orders --master spark://host:7077",
        "kctl spark-export --resume --to /data/orders",
    ],
)(run)

command(
    app,
    "verify",
    examples=[
        "kctl spark-export verify /data/orders",
        "kctl spark-export verify /data/orders -b broker1:9092",
        "kctl spark-export verify /data/orders --from-dir /var/lib/kafka",
    ],
)(verify)

command(
    app,
    "list",
    examples=[
        "kctl spark-export list /data/orders",
        "kctl spark-export list /data/orders -o json",
    ],
)(list_exports)

command(
    app,
    "compact",
    examples=[
        "kctl spark-export compact /data/orders",
        "kctl spark-export compact /data/orders --file-size 512",
    ],
)(compact)
