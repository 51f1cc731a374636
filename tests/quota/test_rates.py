"""Rates and token buckets, compared with what Kafka's own classes measured (RecordRates.java)."""

import json
from pathlib import Path
from typing import Any

import pytest

from broker.quota.rates import MAX_THROTTLE_MS, SampledRate, TokenBucket, Windows, throttle_ms

FILE = Path(__file__).parents[1] / "golden" / "quotas" / "rates.jsonl"
SEQUENCES = [json.loads(line) for line in FILE.read_text().splitlines()]


@pytest.mark.parametrize("recorded", SEQUENCES)
def test_rate_and_throttle_time_are_kafkas(recorded: dict[str, Any]) -> None:
    limit = recorded["limit"]
    rate = SampledRate(Windows(recorded["samples"], recorded["window_ms"]))
    for now_ms, value, measured, elapsed_ms, delay_ms, _, _ in recorded["events"]:
        rate.record(value, now_ms)
        found, window_ms = rate.measure(now_ms)
        assert found == pytest.approx(measured)
        assert window_ms == elapsed_ms
        assert throttle_ms(found, limit, window_ms) == delay_ms


@pytest.mark.parametrize("recorded", SEQUENCES)
def test_tokens_and_throttle_time_are_kafkas(recorded: dict[str, Any]) -> None:
    limit = recorded["limit"]
    windows = Windows(recorded["samples"], recorded["window_ms"])
    bucket = TokenBucket(windows, limit, recorded["events"][0][0])
    for now_ms, value, _, _, _, tokens, delay_ms in recorded["events"]:
        bucket.take(abs(value), limit, now_ms)
        assert bucket.tokens(limit, now_ms) == pytest.approx(tokens)
        assert bucket.throttle_ms(limit, now_ms) == delay_ms


def test_quota_of_zero_throttles_for_as_long_as_possible() -> None:
    assert throttle_ms(1.0, 0.0, 1000) == MAX_THROTTLE_MS
