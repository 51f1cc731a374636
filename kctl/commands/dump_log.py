"""`kctl dump-log`: what is in the files of a log, whether it is sound, and how to save it."""

from pathlib import Path
from typing import Annotated, Any

import typer

from kctl.dump.files import ALL_KINDS, FileKind, find_files
from kctl.dump.kafka_options import KafkaOptions
from kctl.dump.log_rows import View
from kctl.dump.progress import progress_bar
from kctl.dump.request import (
    KafkaFlags,
    check_decoder_classes,
    make_filters,
    refuse_with_kafka_text,
    refuse_with_stats,
)
from kctl.dump.run import (
    KAFKA_KINDS,
    Fence,
    FindingWriter,
    dump_as_kafka,
    dump_rows,
    explained,
)
from kctl.errors import CliError, ExitStatus
from kctl.groups import DefaultVerbGroup, command
from kctl.help import format_examples
from kctl.options import KafkaText, session_of
from kctl.output import OutputFormat

KAFKA_PANEL = "Options of kafka-dump-log"


app = typer.Typer(
    cls=DefaultVerbGroup,
    help="Read, check and repair the files of a log.\n\nWithout a verb: show.",
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


def _kafka(name: str, text: str, metavar: str | None = None) -> Any:
    """An option of kafka-dump-log, under its name there."""
    return typer.Option(
        name, help=text, metavar=metavar, show_default=False, rich_help_panel=KAFKA_PANEL
    )


@command(
    app,
    DefaultVerbGroup.default_verb,
    examples=[
        "kctl dump-log show /var/lib/kafka/orders-0",
        "kctl dump-log /var/lib/kafka/orders-0/00000000000000000000.log --records",
        "kctl dump-log orders-0 --records --offset 1000:1010 -o json",
        "kctl dump-log orders-0 --key alice --time -15m: -o jsonl",
        "kctl dump-log orders-0 --stats",
        "kctl dump-log __consumer_offsets-7 --records -o wide",
        "kctl dump-log --format kafka --print-data-log --files 00000000000000000000.log",
    ],
)
def show(
    ctx: typer.Context,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE…",
            help="Files of a log, partition or log directories, or patterns such as 'orders-*'.",
            show_default=False,
        ),
    ] = None,
    records: Annotated[
        bool, typer.Option("--records", help="Show records and not only batches.")
    ] = False,
    batches: Annotated[
        bool, typer.Option("--batches", help="Show batches, also with --key or --header.")
    ] = False,
    offset: Annotated[
        str | None,
        typer.Option(metavar="FIRST:LAST", help="Only these offsets, both included."),
    ] = None,
    time_range: Annotated[
        str | None,
        typer.Option(
            "--time",
            metavar="FROM:TO",
            help="Only these times: 2026-01-31T12:00 (UTC), milliseconds since 1970, or -15m.",
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY", help="Only records with this key: text, or base64:…; may be repeated."
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=VALUE]", help="Only records with this header; may be repeated."
        ),
    ] = None,
    producer_id: Annotated[
        list[int] | None,
        typer.Option(metavar="ID", help="Only what this producer wrote; may be repeated."),
    ] = None,
    kind: Annotated[
        list[FileKind] | None,
        typer.Option(
            metavar="KIND",
            help=f"Of directories, read only these: {', '.join(FileKind)}; may be repeated.",
        ),
    ] = None,
    stats: Annotated[
        bool, typer.Option("--stats", help="Count instead of showing, with a histogram.")
    ] = False,
    text_format: KafkaText = None,
    files: Annotated[str | None, _kafka("--files", "Files, separated by commas.", "FILE,…")] = None,
    print_data_log: Annotated[
        bool, _kafka("--print-data-log", "Print keys and values too.")
    ] = False,
    deep_iteration: Annotated[bool, _kafka("--deep-iteration", "Print records too.")] = False,
    skip_record_metadata: Annotated[
        bool, _kafka("--skip-record-metadata", "Of records, print key and value alone.")
    ] = False,
    offsets_decoder: Annotated[
        bool, _kafka("--offsets-decoder", "Read records as those of __consumer_offsets.")
    ] = False,
    transaction_log_decoder: Annotated[
        bool, _kafka("--transaction-log-decoder", "Read records as those of __transaction_state.")
    ] = False,
    verify_index_only: Annotated[
        bool, _kafka("--verify-index-only", "Compare indexes with their log, print no entries.")
    ] = False,
    index_sanity_check: Annotated[
        bool, _kafka("--index-sanity-check", "Check indexes as a starting broker does.")
    ] = False,
    max_bytes: Annotated[
        int | None, _kafka("--max-bytes", "Read no more of each .log file.", "BYTES")
    ] = None,
    max_message_size: Annotated[
        int,
        _kafka("--max-message-size", "The largest batch an index may point to (5 MB).", "BYTES"),
    ] = 5 * 1024 * 1024,
    key_decoder_class: Annotated[
        str | None, _kafka("--key-decoder-class", "StringDecoder is the one there is.", "CLASS")
    ] = None,
    value_decoder_class: Annotated[
        str | None, _kafka("--value-decoder-class", "StringDecoder is the one there is.", "CLASS")
    ] = None,
) -> int:
    """Show what is in the files of a log.

    Reads .log, .index, .timeindex, .txnindex and .snapshot files, the checkpoints, meta.properties
    and partition.metadata. A directory stands for all of its files, and for those of the partitions
    in it. Records of __consumer_offsets and __transaction_state are decoded. Keys and values that
    cannot be printed are shown in base64; in JSON key_encoding and value_encoding say which.

    With --format kafka everything reads as kafka-dump-log of Kafka 3.9 prints it.
    """
    out = session_of(ctx).out
    is_csv = out.format is OutputFormat.CSV
    arguments = [*(paths or []), *filter(None, (files or "").split(","))]
    if not arguments:
        raise CliError("no files named", "kctl dump-log FILE…", ExitStatus.USAGE)
    check_decoder_classes(key_decoder_class, value_decoder_class)
    flags = KafkaFlags(
        print_data_log or bool(key_decoder_class or value_decoder_class),
        deep_iteration,
        skip_record_metadata,
        offsets_decoder,
        transaction_log_decoder,
    )
    filters = make_filters(offset, time_range, key, header, producer_id)
    kinds = frozenset(kind or ALL_KINDS)
    if text_format or verify_index_only or index_sanity_check:
        refuse_with_kafka_text(filters, stats=stats)
        options = KafkaOptions(
            flags.style, verify_index_only, index_sanity_check, max_message_size, max_bytes
        )
        return dump_as_kafka(find_files(arguments, kinds & KAFKA_KINDS), options, out)
    is_of_records = not batches and (records or flags.style is not None or filters.needs_records)
    view = View(is_of_records, filters, flags.decoder, max_bytes)
    if stats:
        from kctl.dump.run_stats import dump_stats  # only here: showing a file shall start at once

        refuse_with_stats(filters)
        return dump_stats(find_files(arguments, {FileKind.LOG}), view, out)
    # Rows of one kind where others would only be in the way; CSV has one header.
    if is_of_records or batches or not filters.is_empty or (is_csv and not kind):
        kinds &= {FileKind.LOG}
    return dump_rows(find_files(arguments, kinds), view, out)


@command(
    app,
    "check",
    examples=[
        "kctl dump-log check /var/lib/kafka",
        "kctl dump-log check /var/lib/kafka/orders-0 -o json",
    ],
)
def check(
    ctx: typer.Context,
    directories: Annotated[
        list[Path], typer.Argument(metavar="DIR…", help="Log directories, or partitions of one.")
    ],
) -> int:
    """Check a log directory: everything in it, and whether it agrees.

    Batches (size, crc, records, order, gaps, leader epochs), offset, time and transaction indexes,
    producer snapshots, checkpoints. Nothing is changed. One line per finding, with what to do about
    it; status 0 if there is none, 3 if there are some.

    A directory that a broker is writing to can show findings that are not there a moment later.
    """
    from kctl.dump.check import check_directory  # only here: see `show`

    out = session_of(ctx).out
    fence = Fence(out)
    findings = FindingWriter(out)
    with progress_bar(is_wanted=True) as watch:
        for directory in directories:
            with fence.guard():
                check_directory(directory, findings.add, watch)
    findings.close(is_complete=fence.status is ExitStatus.OK)
    return fence.status or (ExitStatus.FOUND if findings.count else ExitStatus.OK)


@command(
    app,
    "repair",
    examples=["kctl dump-log repair /var/lib/kafka/orders-0 --to /var/lib/saved/orders-0"],
)
def repair(
    ctx: typer.Context,
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A damaged partition or log directory.")
    ],
    target: Annotated[
        Path, typer.Option("--to", metavar="NEWDIR", help="Where to write; must not exist yet.")
    ],
    index_interval_bytes: Annotated[
        int, typer.Option(help="Bytes between index entries, as the topic's config says.")
    ] = 4096,
    keep_later: Annotated[
        bool,
        typer.Option(
            "--keep-later-segments",
            help="Keep sound segments behind a damaged one, at the price of a gap in the offsets.",
        ),
    ] = False,
) -> None:
    """Save what is sound of a damaged log into a new directory.

    Every batch is checked; at the first damage the log is cut, as a broker would cut it, and what
    follows is left out. Indexes, snapshots and epochs are built anew. The damaged directory is not
    touched. What was kept and what was dropped is listed: file, bytes, offsets.
    """
    from broker.log.config import LogConfig  # only here: most of a broker comes with it
    from kctl.dump.repair import REPAIR_COLUMNS, repair_directory

    out = session_of(ctx).out
    config = LogConfig(index_interval_bytes=index_interval_bytes)
    try:
        done = list(repair_directory(directory, target, config, keep_later=keep_later))
    except OSError as error:
        raise explained(error) from error
    out.rows([step.row() for step in done], REPAIR_COLUMNS, name="file")
