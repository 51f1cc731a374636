"""What `kctl dump-log show` was asked for: options as they were typed → what the readers take."""

import time
from dataclasses import dataclass

from kctl.dump.decoders import OFFSETS_DECODER, TRANSACTIONS_DECODER, Decoder
from kctl.dump.filters import (
    EVERYTHING,
    Filters,
    parse_bytes,
    parse_header,
    parse_offsets,
    parse_times,
)
from kctl.dump.kafka_records import RecordStyle
from kctl.errors import CliError, ExitStatus


@dataclass(frozen=True)
class KafkaFlags:
    """The options of kafka-dump-log, as they were given."""

    print_data_log: bool
    deep_iteration: bool
    skip_record_metadata: bool
    offsets_decoder: bool
    transaction_log_decoder: bool

    @property
    def decoder(self) -> Decoder | None:
        """The decoder that was asked for."""
        if self.offsets_decoder:
            return OFFSETS_DECODER
        return TRANSACTIONS_DECODER if self.transaction_log_decoder else None

    @property
    def style(self) -> RecordStyle | None:
        """How Kafka's tool would print records; None for batches only."""
        contents = self.print_data_log or self.decoder is not None
        if not contents and not self.deep_iteration:
            return None
        return RecordStyle(contents, not self.skip_record_metadata, self.decoder)


def make_filters(
    offset: str | None,
    time_range: str | None,
    keys: list[str] | None,
    headers: list[str] | None,
    producer_ids: list[int] | None,
) -> Filters:
    """The filters as they were typed; CliError says what is wrong with one."""
    now_ms = time.time_ns() // 1_000_000
    return Filters(
        offsets=parse_offsets(offset) if offset else EVERYTHING,
        times=parse_times(time_range, now_ms) if time_range else EVERYTHING,
        keys=frozenset(map(parse_bytes, keys or ())),
        producer_ids=frozenset(producer_ids or ()),
        headers=tuple(map(parse_header, headers or ())),
    )


def check_decoder_classes(*names: str | None) -> None:
    """Refuse Java classes, which only Java can load; Kafka's default reads text, as we do."""
    for name in filter(None, names):
        if name.rpartition(".")[2] != "StringDecoder":
            raise CliError(
                f"{name}: kctl cannot load Java classes", "leave the option out", ExitStatus.USAGE
            )


def refuse_with_kafka_text(filters: Filters, *, stats: bool) -> None:
    """Kafka's tool prints whole files, and that is what its text is compared with."""
    if stats or not filters.is_empty:
        raise CliError(
            "--format kafka prints whole files, as Kafka's tool does",
            "leave out --format kafka, or the filters and --stats",
            ExitStatus.USAGE,
        )


def refuse_with_stats(filters: Filters) -> None:
    """Statistics are taken of batches, whose headers say nothing of keys."""
    if filters.needs_records:
        raise CliError(
            "--stats counts whole batches",
            "leave out --key and --header; --offset, --time and --producer-id choose batches",
            ExitStatus.USAGE,
        )
