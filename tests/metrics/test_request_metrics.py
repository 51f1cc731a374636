"""Which requests are measured, and what is counted."""

from broker.metrics.request_metrics import RequestMetrics


def measure(metrics: RequestMetrics, count: int, seconds: float, now_s: float) -> float:
    """Report measured requests at a steady rate; returns the time of the last one."""
    for number in range(1, count + 1):
        metrics.measured(now_s + seconds * number / count)
    return now_s + seconds


def test_fewer_requests_are_measured_under_load_and_all_of_them_after_it() -> None:
    metrics = RequestMetrics()
    now_s = measure(metrics, 256, 100.0, metrics._measured_since_s)
    assert metrics.sampling_mask == 0  # few requests: each is measured
    for mask in (1, 3, 7, 15, 31, 63, 63):
        now_s = measure(metrics, 256, 0.1, now_s)
        assert metrics.sampling_mask == mask
    measure(metrics, 256, 10.0, now_s)
    assert metrics.sampling_mask == 31
    metrics.rotate()
    assert metrics.sampling_mask == 0


def test_requests_are_counted_by_api_and_version() -> None:
    metrics = RequestMetrics()
    metrics.counts |= {9: 3, 1 << 16 | 11: 4, 1 << 16 | 12: 5}
    assert metrics.requests() == {0: {9: 3}, 1: {11: 4, 12: 5}}
