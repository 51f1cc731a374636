"""Clients that use all that their quota allows get their rate: on virtual time, over minutes."""

import pytest

from broker.api.request_usage import RequestUsage
from broker.config import parse_config
from broker.quota.client_quota_manager import Client
from broker.quota.quota_managers import QuotaManagers

RATE = 50_000
REQUEST_MS = 5
"""How long a request takes that is not throttled."""
DURATION_MS = 600_000
CLIENT = Client("ANONYMOUS", "busy")


class Usage:
    """A broker's quotas for one client, on virtual time."""

    def __init__(self, num_windows: int) -> None:
        self.now_ms = 1_000_000
        self.quotas = QuotaManagers(parse_config({"quota.window.num": str(num_windows)}))
        keys = ("producer_byte_rate", "consumer_byte_rate")
        self.quotas.update_client(None, "busy", dict.fromkeys(keys, RATE))

    def fetch(self, num_bytes: int) -> int:
        """Fetch as a client with a backlog does; the bytes that it gets."""
        usage = RequestUsage(self.quotas, CLIENT, 100, lambda: self.now_ms)
        delay_ms = usage.record_fetch(num_bytes)
        self.now_ms += delay_ms or REQUEST_MS
        return 0 if delay_ms else num_bytes

    def produce(self, num_bytes: int) -> int:
        """Produce as fast as possible."""
        self.now_ms += self.quotas.produce.record(CLIENT, num_bytes, self.now_ms) or REQUEST_MS
        return num_bytes


@pytest.mark.parametrize("action", ["fetch", "produce"])
@pytest.mark.parametrize("num_bytes", [1_000, 9_300, 60_000])
def test_rate_over_minutes_is_within_10_percent_of_the_quota(action: str, num_bytes: int) -> None:
    client = Usage(num_windows=11)
    start_ms, total = client.now_ms, 0
    while client.now_ms < start_ms + DURATION_MS:
        total += getattr(client, action)(num_bytes)
    assert total * 1000 / (client.now_ms - start_ms) == pytest.approx(RATE, rel=0.1)


def test_consumer_gets_all_windows_at_once_and_then_waits_for_them_to_expire() -> None:
    """As with Apache Kafka: an average over less than all windows says nothing about the quota."""
    client = Usage(num_windows=11)
    start_ms, bytes_by_second = client.now_ms, [0] * 11
    while (second := (client.now_ms - start_ms) // 1000) < len(bytes_by_second):
        bytes_by_second[second] += client.fetch(9_300)
    assert bytes_by_second[0] >= 10 * RATE
    assert sum(bytes_by_second[1:]) < RATE
