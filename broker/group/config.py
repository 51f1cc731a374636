"""Settings of the group coordinator, with Kafka's defaults."""

from dataclasses import dataclass

from broker.records.layout import Codec


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """The broker settings that the coordinator obeys; fields are named after Kafka's keys."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = 2**31 - 1
    group_initial_rebalance_delay_ms: int = 3_000
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    offsets_topic_compression_codec: Codec = Codec.NONE

    @property
    def offsets_retention_ms(self) -> int:
        """How long offsets are kept after their group became empty, or after their last commit."""
        return self.offsets_retention_minutes * 60_000
