"""Load client that runs Kafka's own perf tools (Java clients)."""

import re
import subprocess

from bench.loads import Load
from tests.support.real_kafka import java_command

_PRODUCED = re.compile(r"records sent, [\d.]+ records/sec \(([\d.]+) MB/sec\)")


class JavaClient:
    """ProducerPerformance and ConsumerPerformance."""

    def produce(self, servers: str, topic: str, load: Load) -> float:
        """Part of LoadClient."""
        output = run_tool(
            "org.apache.kafka.tools.ProducerPerformance",
            *("--topic", topic, "--num-records", str(load.records)),
            *("--record-size", str(load.record_bytes), "--throughput", "-1"),
            *("--producer-props", f"bootstrap.servers={servers}", f"acks={load.acks}"),
        )
        found = _PRODUCED.search(output.splitlines()[-1])
        assert found, output
        return float(found[1])

    def consume(self, servers: str, topic: str, load: Load) -> float:
        """Part of LoadClient: reads the first four fifths of the topic.

        A Java consumer that has reached the end of some partitions often fetches only those, and
        then waits half a second although other partitions have data, on any broker. How often this
        happens is random, and one such wait is half of a measurement.
        """
        output = run_tool(
            "org.apache.kafka.tools.ConsumerPerformance",
            *("--bootstrap-server", servers, "--topic", topic),
            *("--messages", str(load.records * 4 // 5), "--hide-header"),
        )
        return float(output.splitlines()[-1].split(", ")[-2])


def run_tool(main_class: str, *args: str) -> str:
    """Run one of Kafka's own tools and return its stdout; RuntimeError if it fails."""
    command = java_command(main_class, *args)
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{main_class}: {done.stderr or done.stdout}")
    return done.stdout
