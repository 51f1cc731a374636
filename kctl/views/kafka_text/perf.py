"""The output of kafka-producer-perf-test, kafka-consumer-perf-test and kafka-e2e-latency."""

from collections.abc import Mapping, Sequence
from datetime import datetime

CONSUMER_HEADER = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)


def producer_line(result: Mapping[str, float]) -> str:
    """The last line of the producer's test."""
    percentiles = ", ".join(
        f"{int(result[f'p{name}_ms'])} ms {name}th" for name in ("50", "95", "99", "99.9")
    )
    return (
        f"{int(result['records'])} records sent, {result['records_per_s']:.6f} records/sec "
        f"({result['mb_per_s']:.2f} MB/sec), {result['avg_ms']:.2f} ms avg latency, "
        f"{result['max_ms']:.2f} ms max latency, {percentiles}."
    )


def consumer_lines(
    result: Mapping[str, float], started: datetime, ended: datetime
) -> Sequence[str]:
    """Header and line of the consumer's test."""
    megabytes = result["bytes"] / 1024 / 1024
    fetching_ms = max(1, round(1000 * (result["seconds"] - result["joining_s"])))
    times = ", ".join(
        f"{moment:%Y-%m-%d %H:%M:%S}:{moment.microsecond // 1000:03d}"
        for moment in (started, ended)
    )
    line = (
        f"{times}, {megabytes:.4f}, {result['mb_per_s']:.4f}, {int(result['records'])}, "
        f"{result['records_per_s']:.4f}, {round(1000 * result['joining_s'])}, {fetching_ms}, "
        f"{1000 * megabytes / fetching_ms:.4f}, {1000 * result['records'] / fetching_ms:.4f}"
    )
    return [CONSUMER_HEADER, line]


def detailed_lines(intervals: Sequence[Mapping[str, object]]) -> Sequence[str]:
    """Header and lines of the consumer's test with --show-detailed-stats.

    The tool's last four columns are about rebalancing and are 0: partitions are assigned here.
    """
    header = (
        "time, threadId, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
        "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
    )
    lines = []
    for one in intervals:
        moment = str(one["time"]).replace("T", " ").replace(".", ":").removesuffix("Z")
        megabytes = float(str(one["bytes"])) / 1024 / 1024
        rates = float(str(one["mb_per_s"])), float(str(one["records_per_s"]))
        lines.append(
            f"{moment}, 0, {megabytes:.4f}, {rates[0]:.4f}, {one['records']}, {rates[1]:.4f}, "
            f"0, 0, {rates[0]:.4f}, {rates[1]:.4f}"
        )
    return [header, *lines]


def latency_lines(result: Mapping[str, float]) -> Sequence[str]:
    """The lines of the end-to-end test."""
    return [
        f"Avg latency: {result['avg_ms']:.4f} ms",
        "",
        f"Percentiles: 50th = {int(result['p50_ms'])}, 99th = {int(result['p99_ms'])}, "
        f"99.9th = {int(result['p99.9_ms'])}",
    ]
