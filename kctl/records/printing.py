"""How `kctl consume` prints records in each format."""

import csv
import io
import sys
from collections.abc import Callable, Sequence
from typing import Final, TextIO

from kctl.cli.errors import usage_error
from kctl.cli.json_colors import highlighted_if_json
from kctl.cli.output import Output, OutputFormat
from kctl.cli.tables import Column
from kctl.cli.terminal import visible_bytes
from kctl.cli.theme import has_color
from kctl.cli.times import iso_time
from kctl.model.records import TopicRecord
from kctl.records.format import Formatter, compile_format, format_headers
from kctl.records.json_lines import format_json_line
from kctl.views.kafka_text.console_consumer import console_text

KAFKA_TEXT: Final = "kafka"
CSV_FIELDS: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


def formatter(
    out: Output, text_format: str | None, null: str, console: dict[str, str]
) -> Formatter:
    """How records are written; ValueError if the format is not valid.

    On a terminal, records cannot control it, and JSON has colours.
    """
    shown = for_terminal(sys.stdout)
    if text_format == KAFKA_TEXT:
        return lambda record: shown(console_text(record, console))
    if text_format is not None:
        return compile_format(text_format, null.encode(), shown)
    _check_row_options(out)
    match out.format:
        case OutputFormat.JSON | OutputFormat.JSONL:
            return lambda record: out.json_text(format_json_line(record)).encode() + b"\n"
        case OutputFormat.CSV:
            return _csv_writer(csv_fields(out), shown)
        case OutputFormat.NAME:
            return compile_format("%t-%p@%o\\n")
        case OutputFormat.WIDE:
            return compile_format("%t-%p@%o\\t%T{iso}\\t%k\\t%s\\n", b"-", shown)
        case OutputFormat.YAML:
            raise ValueError("records cannot be shown as yaml; use -o jsonl")
        case _:
            return compile_format("%s\\n", null.encode(), shown)


def for_terminal(stream: TextIO) -> Callable[[bytes], bytes]:
    """How keys and values are shown on `stream`: as they are, if it is not a terminal."""
    if has_color(stream):
        return lambda data: highlighted_if_json(visible_bytes(data).decode()).encode()
    return visible_bytes if stream.isatty() else bytes


def csv_fields(out: Output) -> list[str]:
    """The fields of a record in CSV."""
    columns = [Column(name) for name in CSV_FIELDS]
    return [column.key for column in out.options.pick(columns, [dict.fromkeys(CSV_FIELDS)])]


def _check_row_options(out: Output) -> None:
    """Usage error for options that records do not have."""
    if out.options.sort_by:
        raise usage_error("records are not sorted: --sort-by is not available", "omit it")
    if out.options.columns and out.format is not OutputFormat.CSV:
        raise usage_error(
            "--columns chooses the fields of records only with -o csv",
            "--format chooses them as text, e.g. --format '%k %s\\n'",
        )


def _csv_writer(fields: Sequence[str], shown: Callable[[bytes], bytes]) -> Formatter:
    def write(record: TopicRecord) -> bytes:
        values = dict(zip(CSV_FIELDS, _csv_values(record), strict=True))
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow([values[field] for field in fields])
        return shown(text.getvalue().encode())

    return write


def _csv_values(record: TopicRecord) -> list[object]:
    contents = ("" if data is None else _shown(data) for data in (record.key, record.value))
    place = record.topic, record.partition, record.offset, iso_time(record.timestamp_ms)
    return [*place, *contents, _shown(format_headers(record))]


def _shown(data: bytes) -> str:
    return data.decode(errors="replace")
