"""`kctl dump-log show`."""

from typing import Annotated, Any

import typer

from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.options import KafkaText, session_of
from kctl.cli.output import OutputFormat
from kctl.dump.arguments import (
    KafkaFlags,
    check_decoder_classes,
    make_filters,
    refuse_with_kafka_text,
    refuse_with_stats,
)
from kctl.dump.kafka_text.options import KafkaOptions
from kctl.dump.reading.files import ALL_KINDS, FileKind, find_files
from kctl.dump.rows.log_rows import View
from kctl.dump.run import (
    KAFKA_KINDS,
    dump_as_kafka,
    dump_rows,
)

KAFKA_PANEL = "Options of kafka-dump-log"


def _kafka(name: str, text: str, metavar: str | None = None) -> Any:
    """An option of kafka-dump-log with the same name."""
    return typer.Option(
        name, help=text, metavar=metavar, show_default=False, rich_help_panel=KAFKA_PANEL
    )


def show(
    ctx: typer.Context,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE…",
            help="Log files, partition directories, log directories, or globs such as 'orders-*'.",
            show_default=False,
        ),
    ] = None,
    records: Annotated[
        bool, typer.Option("--records", help="Show records instead of batches.")
    ] = False,
    batches: Annotated[
        bool, typer.Option("--batches", help="Show batches even if --key or --header is given.")
    ] = False,
    offset: Annotated[
        str | None,
        typer.Option(metavar="FIRST:LAST", help="Show only these offsets, both inclusive."),
    ] = None,
    time_range: Annotated[
        str | None,
        typer.Option(
            "--time",
            metavar="FROM:TO",
            help="Show only these times: 2026-01-31T12:00 (UTC), milliseconds since 1970, or -15m.",
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help="Show only records with this key: text, or base64:…; can be repeated.",
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=VALUE]", help="Show only records with this header; can be repeated."
        ),
    ] = None,
    producer_id: Annotated[
        list[int] | None,
        typer.Option(metavar="ID", help="Show only records of this producer id; can be repeated."),
    ] = None,
    kind: Annotated[
        list[FileKind] | None,
        typer.Option(
            metavar="KIND",
            help=f"Read only these kinds of files in directories: {', '.join(FileKind)}; "
            "can be repeated.",
        ),
    ] = None,
    stats: Annotated[
        bool, typer.Option("--stats", help="Show statistics and a histogram of record sizes.")
    ] = False,
    text_format: KafkaText = None,
    files: Annotated[
        str | None, _kafka("--files", "Comma-separated list of files.", "FILE,…")
    ] = None,
    print_data_log: Annotated[
        bool, _kafka("--print-data-log", "Print records with keys and values.")
    ] = False,
    deep_iteration: Annotated[bool, _kafka("--deep-iteration", "Print records.")] = False,
    skip_record_metadata: Annotated[
        bool, _kafka("--skip-record-metadata", "Print only the key and value of records.")
    ] = False,
    offsets_decoder: Annotated[
        bool, _kafka("--offsets-decoder", "Decode records of __consumer_offsets.")
    ] = False,
    transaction_log_decoder: Annotated[
        bool, _kafka("--transaction-log-decoder", "Decode records of __transaction_state.")
    ] = False,
    cluster_metadata_decoder: Annotated[
        bool, _kafka("--cluster-metadata-decoder", "Decode records of a KRaft metadata log.")
    ] = False,
    share_group_state_decoder: Annotated[
        bool, _kafka("--share-group-state-decoder", "Decode records of __share_group_state.")
    ] = False,
    verify_index_only: Annotated[
        bool,
        _kafka("--verify-index-only", "Compare indexes with their log without printing entries."),
    ] = False,
    index_sanity_check: Annotated[
        bool, _kafka("--index-sanity-check", "Check indexes as a broker does at startup.")
    ] = False,
    max_bytes: Annotated[
        int | None,
        _kafka("--max-bytes", "Read at most this many bytes of each .log file.", "BYTES"),
    ] = None,
    max_message_size: Annotated[
        int,
        _kafka(
            "--max-message-size",
            "Maximum size of a batch that an index points to (default 5 MB).",
            "BYTES",
        ),
    ] = 5 * 1024 * 1024,
    key_decoder_class: Annotated[
        str | None, _kafka("--key-decoder-class", "Only StringDecoder is available.", "CLASS")
    ] = None,
    value_decoder_class: Annotated[
        str | None, _kafka("--value-decoder-class", "Only StringDecoder is available.", "CLASS")
    ] = None,
) -> int:
    """Show the contents of log files.

    Reads .log, .index, .timeindex, .txnindex and .snapshot files, checkpoints, meta.properties and
    partition.metadata. For a directory, all its files and those of its partitions are read. Records
    of __consumer_offsets, __transaction_state, __share_group_state and __cluster_metadata (KRaft,
    also its snapshots *.checkpoint) are decoded. Keys and values that are not text are
    shown in base64; in JSON, key_encoding and value_encoding tell the encoding.

    With --format kafka the output is that of kafka-dump-log in Kafka 3.9.
    """
    out = session_of(ctx).out
    is_csv = out.format is OutputFormat.CSV
    arguments = [*(paths or []), *filter(None, (files or "").split(","))]
    if not arguments:
        raise CliError("no file specified", "kctl dump-log FILE…", ExitStatus.USAGE)
    check_decoder_classes(key_decoder_class, value_decoder_class)
    flags = KafkaFlags(
        print_data_log or bool(key_decoder_class or value_decoder_class),
        deep_iteration,
        skip_record_metadata,
        offsets_decoder,
        transaction_log_decoder,
        cluster_metadata_decoder,
        share_group_state_decoder,
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
        from kctl.dump.stats.run import dump_stats  # imported here: show must start fast

        refuse_with_stats(filters)
        return dump_stats(find_files(arguments, {FileKind.LOG}), view, out)
    # Only one kind of rows: CSV has one header, and a filter applies to records only.
    if is_of_records or batches or not filters.is_empty or (is_csv and not kind):
        kinds &= {FileKind.LOG}
    return dump_rows(find_files(arguments, kinds), view, out)
