"""`kctl monitor`: its numbers against other clients, dead clusters, the history."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from cryptography.x509 import load_pem_x509_certificate
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from broker.model import TopicPartition as Place
from kctl.model.monitoring import ProbeResult
from kctl.operations.monitoring.probing import ProbeHistory
from kctl.plans.offset_times import OffsetTimes
from tests.support.broker import RunningBroker, running_broker
from tests.support.certificates import Authority
from tests.support.cluster import wait_until
from tests.support.kctl import run_kctl
from tests.support.processes import free_port

Samples = dict[str, list[tuple[dict[str, str], float]]]


def parsed(text: str) -> Samples:
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def only(samples: Samples, name: str, **labels: str) -> float:
    """The one value whose labels include these."""
    (found,) = (v for have, v in samples[name] if labels.items() <= have.items())
    return found


@pytest.fixture(scope="module")
def filled(shared_broker: RunningBroker) -> RunningBroker:
    """A topic with 30 records, of which the group `billing` has committed 10."""
    server = {"bootstrap.servers": shared_broker.bootstrap_servers}
    admin = AdminClient({**server})
    for future in admin.create_topics([NewTopic("orders", 2, 1)]).values():
        future.result(30)
    producer = Producer(server)
    for number in range(30):
        producer.produce("orders", str(number), partition=number % 2)
    assert producer.flush(30) == 0
    consumer = Consumer({**server, "group.id": "billing"})
    offsets = [TopicPartition("orders", 0, 4), TopicPartition("orders", 1, 6)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()
    return shared_broker


def test_one_cycle_serves_the_names_of_three_exporters(filled: RunningBroker) -> None:
    result = run_kctl("monitor", "run", "--once", "-b", filled.bootstrap_servers)
    assert result.exit_code == 0, result.stderr
    samples = parsed(result.output)
    group = {"consumergroup": "billing", "topic": "orders"}
    assert only(samples, "kafka_consumergroup_lag", **group, partition="0") == 11
    assert only(samples, "kafka_consumergroup_lag_sum", **group) == 20
    assert only(samples, "kafka_consumergroup_current_offset_sum", **group) == 10
    assert (
        only(samples, "kafka_topic_partition_current_offset", topic="orders", partition="1") == 15
    )
    assert only(samples, "kafka_consumergroup_group_sum_lag", group="billing") == 20
    assert only(samples, "kafka_partition_latest_offset", topic="orders", partition="0") == 15
    kminion = {"group_id": "billing", "topic_name": "orders"}
    assert only(samples, "kminion_kafka_consumer_group_topic_lag", **kminion) == 20
    size = sum(path.stat().st_size for path in filled.log_dir.glob("orders-*/*.log"))
    assert (
        only(samples, "kminion_kafka_topic_log_dir_size_total_bytes", topic_name="orders") == size
    )
    assert only(samples, "kafka_brokers") == 1
    assert only(samples, "kctl_monitor_up") == 1


def test_only_the_chosen_names_are_served(filled: RunningBroker) -> None:
    result = run_kctl(
        *("monitor", "run", "--once", "--names", "kminion", "-b", filled.bootstrap_servers)
    )
    names = set(parsed(result.output))
    assert all(name.startswith(("kminion_", "kctl_")) for name in names)


def test_probe_writes_a_record_and_reads_it_back(filled: RunningBroker) -> None:
    server = ("-b", filled.bootstrap_servers)
    words = ("monitor", "run", "--once", "--probe", "--probe-topic", "probed")
    for count in (1, 2):
        result = run_kctl(*words, *server)
        assert result.exit_code == 0, result.stderr
        samples = parsed(result.output)
        for name in ("messages_produced", "messages_received"):
            assert only(samples, f"kminion_end_to_end_{name}_total", partition_id="0") == 1
        for name in ("messages_lost", "messages_produced_failed"):
            assert only(samples, f"kminion_end_to_end_{name}_total", partition_id="0") == 0
        times = "kminion_end_to_end_roundtrip_latency_seconds"
        assert only(samples, f"{times}_bucket", le="+Inf") == only(samples, f"{times}_count") == 1
        assert only(samples, f"{times}_sum") > 0
        consumer = Consumer({"bootstrap.servers": filled.bootstrap_servers, "group.id": "x"})
        assert consumer.get_watermark_offsets(TopicPartition("probed", 0), 30) == (0, count)
        consumer.close()


def test_probe_that_may_not_run_is_one_note_and_the_cycle_goes_on(filled: RunningBroker) -> None:
    words = ("monitor", "run", "--once", "--probe", "--probe-topic", "not a name")
    result = run_kctl(*words, "-b", filled.bootstrap_servers)
    assert result.exit_code == 0, result.stderr
    assert result.stderr.count("cannot probe") == 1
    assert only(parsed(result.output), "kctl_monitor_up") == 1


def test_failed_and_lost_probes_are_counted_separately() -> None:
    history = ProbeHistory()
    for result in (ProbeResult(0, None, None), ProbeResult(0, 0.1, None), ProbeResult(0, 0.1, 3)):
        history.add([result])
    found = history.partitions[0]
    assert (found.produced, found.failed, found.lost, found.received) == (3, 1, 1, 1)
    assert found.produce_times.count == 2
    assert (found.roundtrip_times.count, found.roundtrip_times.counts[-1]) == (1, 1)


def test_expiry_of_certificates_is_served(tmp_path: Path) -> None:
    authority = Authority()
    (tmp_path / "authority.pem").write_text(authority.certificate)
    issued = authority.certificate_for("localhost")
    (tmp_path / "broker.pem").write_text(issued.pem)
    config = tmp_path / "client.properties"
    trusted = tmp_path / "authority.pem"
    config.write_text(f"security.protocol=SSL\nssl.truststore.location={trusted}\n")
    port = free_port()
    with running_broker(
        tmp_path,
        **{
            "listeners": f"PLAINTEXT://127.0.0.1:0,SSL://localhost:{port}",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": tmp_path / "broker.pem",
        },
    ):
        words = ("monitor", "run", "--once", "--command-config", str(config))
        result = run_kctl(*words, "-b", f"localhost:{port}")
    assert result.exit_code == 0, result.stderr
    certificate = load_pem_x509_certificate(issued.certificate.encode())
    expiry_s = only(parsed(result.output), "kctl_broker_certificate_expiry_seconds")
    assert expiry_s == certificate.not_valid_after_utc.timestamp()


@contextmanager
def monitoring(*words: str, env: dict[str, str] | None = None) -> Iterator[tuple[str, list[str]]]:
    """A running monitor: its URL, and the lines of its messages up to it."""
    command = [sys.executable, "-m", "kctl", "monitor", "run", "--listen", "127.0.0.1:0", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env) as process:
        assert process.stderr is not None
        seen = []
        try:
            for line in process.stderr:
                seen.append(line)
                if found := re.search(r"serving (http://\S+)", line):
                    yield found[1], seen
                    break
            else:
                raise AssertionError("".join(seen))
            process.terminate()
            assert process.wait(30) == 0
        finally:
            process.kill()


def scrape(url: str) -> Samples:
    with urlopen(url, timeout=30) as response:  # noqa: S310
        return parsed(response.read().decode())


def test_running_monitor_follows_the_lag_and_keeps_a_history(
    filled: RunningBroker, tmp_path: Path
) -> None:
    history = tmp_path / "state" / "lag.db"
    server = {"bootstrap.servers": filled.bootstrap_servers}
    with monitoring(
        *("-b", filled.bootstrap_servers, "--interval", "0.5", "--history", str(history))
    ) as (url, _):
        name = "kafka_consumergroup_lag_sum"
        wait_until(lambda: name in scrape(url), "the first cycle is over")
        before = only(scrape(url), name, consumergroup="billing", topic="orders")
        producer = Producer(server)
        producer.produce("orders", "one more", partition=0)
        assert producer.flush(30) == 0
        wait_until(
            lambda: only(scrape(url), name, consumergroup="billing", topic="orders") == before + 1,
            "the lag has grown",
        )
        # The lag in time is known once the log has been seen to grow past the committed offset.
        wait_until(
            lambda: "kafka_consumergroup_group_max_lag_seconds" in scrape(url), "time is known"
        )
    shown = run_kctl(
        *("monitor", "history", "billing", "--since", "10m", "--history", str(history)),
        *("-o", "json"),
    )
    assert shown.exit_code == 0, shown.stderr
    (row,) = shown.json
    assert (row["topic"], row["lag"], row["max_lag"]) == ("orders", before + 1, before + 1)
    every = run_kctl(
        *("monitor", "history", "billing", "--samples", "--history", str(history), "-o", "json")
    )
    assert every.json[0]["lag"] == before
    wrong = run_kctl("monitor", "history", "biling", "--history", str(history))
    assert wrong.exit_code == 1
    assert "billing" in wrong.stderr  # did you mean


def test_dead_cluster_does_not_stop_the_monitoring_of_another(
    filled: RunningBroker, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    environment = {"KCTL_CONFIG": str(config), "PATH": "/usr/bin:/bin"}
    for name, address in (("live", filled.bootstrap_servers), ("dead", "127.0.0.1:1")):
        made = run_kctl("context", "set", name, "-b", address, env=environment)
        assert made.exit_code == 0, made.stderr
    with monitoring(
        *("--contexts", "live,dead", "--interval", "0.5", "--no-history", "--timeout", "2"),
        env=environment,
    ) as (url, _):
        wait_until(
            lambda: len(scrape(url).get("kctl_monitor_up", [])) == 2, "both have had a cycle"
        )
        samples = scrape(url)
        assert only(samples, "kctl_monitor_up", cluster="live") == 1
        assert only(samples, "kctl_monitor_up", cluster="dead") == 0
        assert {labels["cluster"] for labels, _ in samples["kafka_brokers"]} == {"live"}


def test_group_that_vanishes_leaves_the_metrics_and_the_loop_goes_on(
    filled: RunningBroker,
) -> None:
    server = ("-b", filled.bootstrap_servers)
    made = run_kctl("consume", "orders", "--group", "brief", "--exit", *server)
    assert made.exit_code == 0, made.stderr
    with monitoring("--interval", "0.2", "--no-history", *server) as (url, _):

        def groups() -> set[str]:
            found = scrape(url).get("kafka_consumergroup_members", [])
            return {labels["consumergroup"] for labels, _ in found}

        wait_until(lambda: {"brief", "billing"} <= groups(), "both groups are served")
        assert run_kctl("groups", "delete", "brief", "-y", *server).exit_code == 0
        wait_until(lambda: "brief" not in groups(), "the deleted group is gone")
        assert "billing" in groups()
        assert [value for _, value in scrape(url)["kctl_monitor_up"]] == [1]


def test_port_in_use_is_one_error(filled: RunningBroker) -> None:
    taken = filled.bootstrap_servers
    result = run_kctl("monitor", "run", "--listen", taken, "-b", filled.bootstrap_servers)
    assert result.exit_code == 1
    assert f"cannot listen on {taken}: Address already in use" in result.stderr


def test_wrong_arguments_are_one_error(filled: RunningBroker, tmp_path: Path) -> None:
    server = ("-b", filled.bootstrap_servers)
    assert run_kctl("monitor", "run", "--listen", "nowhere", *server).exit_code == 2
    assert run_kctl("monitor", "run", "--keep", "soon", *server).exit_code == 2
    assert run_kctl("monitor", "run", "--contexts", "missing").exit_code == 2
    none = run_kctl("monitor", "history", "x", "--history", str(tmp_path / "none.db"))
    assert none.exit_code == 1
    assert "there is no history" in none.stderr
    broken = tmp_path / "broken.db"
    broken.write_text("not a database, and long enough to be looked at by SQLite")
    unreadable = run_kctl("monitor", "history", "x", "--history", str(broken))
    assert unreadable.exit_code == 1
    assert "cannot use the history" in unreadable.stderr
    dead = run_kctl("monitor", "run", "--once", "--timeout", "1", "-b", "127.0.0.1:1")
    assert dead.exit_code == 4


PLACE = Place("orders", 0)


def test_lag_in_time_is_interpolated_between_cycles() -> None:
    times = OffsetTimes()
    for second in range(11):
        times.add(PLACE, second * 100, float(second))
    assert times.lag_seconds(PLACE, 1000, 10.0) == 0
    assert times.lag_seconds(PLACE, 750, 10.0) == pytest.approx(2.5)
    assert times.lag_seconds(PLACE, 300, 10.0) == pytest.approx(7)


def test_lag_in_time_before_the_first_cycle_is_extrapolated() -> None:
    times = OffsetTimes()
    times.add(PLACE, 1000, 0.0)
    assert times.lag_seconds(PLACE, 500, 0.0) is None
    times.add(PLACE, 1100, 10.0)
    assert times.lag_seconds(PLACE, 900, 10.0) == pytest.approx(20)


def test_recreated_topic_starts_again() -> None:
    times = OffsetTimes()
    times.add(PLACE, 1000, 0.0)
    times.add(PLACE, 1100, 10.0)
    times.add(PLACE, 5, 20.0)
    assert times.lag_seconds(PLACE, 3, 20.0) is None


@given(
    st.lists(st.tuples(st.integers(0, 50), st.floats(0.1, 100)), min_size=2, max_size=200),
    st.floats(0, 1),
)
def test_lag_in_time_is_never_negative_and_falls_with_the_offset(
    steps: list[tuple[int, float]], share: float
) -> None:
    times = OffsetTimes()
    end, now = 0, 0.0
    for records, seconds in steps:
        end, now = end + records, now + seconds
        times.add(PLACE, end, now)
    offset = int(end * share)
    lag, later = (times.lag_seconds(PLACE, at, now) for at in (offset, offset + 1))
    assert lag is not None and later is not None
    assert lag >= later - 1e-6 >= -1e-6
