"""Arguments of `kctl perf`."""

from typing import Annotated

import typer

from kctl.streaming.choices import Acks

MAX_RECORD_BYTES = 1_000_000_000
"""librdkafka's limit of message.max.bytes."""

Topic = Annotated[str, typer.Argument(help="Topic to use.")]
NumRecords = Annotated[
    int, typer.Option("-n", "--num-records", "--messages", min=1, help="Number of records.")
]
RecordSize = Annotated[
    int,
    typer.Option(
        "-s", "--record-size", min=0, max=MAX_RECORD_BYTES, help="Size of a record in bytes."
    ),
]
AcksOption = Annotated[Acks, typer.Option("-a", "--acks", help="Acknowledgements to wait for.")]
PrintMetrics = Annotated[
    bool,
    typer.Option("--print-metrics", help="Also print the statistics of the client (librdkafka)."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("-X", "--property", metavar="KEY=VALUE", help="Set a librdkafka property."),
]
