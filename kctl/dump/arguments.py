"""Options of `kctl dump-log show` → filters, decoders and styles."""

import time
from dataclasses import dataclass

from kctl.cli.errors import CliError, ExitStatus
from kctl.dump.kafka_text.records import RecordStyle
from kctl.dump.reading.decoders import (
    METADATA_DECODER,
    OFFSETS_DECODER,
    SHARE_DECODER,
    TRANSACTIONS_DECODER,
    Decoder,
)
from kctl.dump.reading.filters import (
    EVERYTHING,
    Filters,
    parse_bytes,
    parse_header,
    parse_offsets,
    parse_times,
)


@dataclass(frozen=True)
class KafkaFlags:
    """The options of kafka-dump-log."""

    print_data_log: bool
    deep_iteration: bool
    skip_record_metadata: bool
    offsets_decoder: bool
    transaction_log_decoder: bool
    cluster_metadata_decoder: bool
    share_group_state_decoder: bool

    @property
    def decoder(self) -> Decoder | None:
        """The requested decoder, if any."""
        wanted = (
            (self.offsets_decoder, OFFSETS_DECODER),
            (self.transaction_log_decoder, TRANSACTIONS_DECODER),
            (self.cluster_metadata_decoder, METADATA_DECODER),
            (self.share_group_state_decoder, SHARE_DECODER),
        )
        return next((decoder for is_wanted, decoder in wanted if is_wanted), None)

    @property
    def style(self) -> RecordStyle | None:
        """How kafka-dump-log prints records; None for batches only."""
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
    """Parse the filters; CliError names an invalid one."""
    now_ms = time.time_ns() // 1_000_000
    return Filters(
        offsets=parse_offsets(offset) if offset else EVERYTHING,
        times=parse_times(time_range, now_ms) if time_range else EVERYTHING,
        keys=frozenset(map(parse_bytes, keys or ())),
        producer_ids=frozenset(producer_ids or ()),
        headers=tuple(map(parse_header, headers or ())),
    )


def check_decoder_classes(*names: str | None) -> None:
    """Reject Java decoder classes other than StringDecoder, which is Kafka's default and ours."""
    for name in filter(None, names):
        if name.rpartition(".")[2] != "StringDecoder":
            raise CliError(
                f"{name}: kctl cannot load Java classes", "omit the option", ExitStatus.USAGE
            )


def refuse_with_kafka_text(filters: Filters, *, stats: bool) -> None:
    """Reject filters and --stats, which kafka-dump-log does not have."""
    if stats or not filters.is_empty:
        raise CliError(
            "--format kafka prints whole files, as Kafka's tool does",
            "omit --format kafka, or the filters and --stats",
            ExitStatus.USAGE,
        )


def refuse_with_stats(filters: Filters) -> None:
    """Reject filters on records: statistics count whole batches."""
    if filters.needs_records:
        raise CliError(
            "--stats counts whole batches",
            "omit --key and --header; --offset, --time and --producer-id select batches",
            ExitStatus.USAGE,
        )
