"""The text of metrics, read by prometheus-client's own parsers."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families as read_text

from broker.admin.dialects import Dialect, counter, gauge
from broker.admin.exposition import Family, Labels, exposition
from tests.admin.conftest import read_openmetrics

LABEL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=8)


@given(st.dictionaries(LABEL, st.integers(-(2**53), 2**53), min_size=1))
def test_any_label_and_value_is_read_back(values: dict[str, int]) -> None:
    metric = gauge("log_log_size", 'a "quoted" \\ text\nof two lines', "topic")
    for topic, value in values.items():
        metric.add(value, topic)
    families = metric.families(Dialect.JMX)
    for text, read in (
        (exposition(families).decode(), read_text),
        (exposition(families, openmetrics=True).decode(), read_openmetrics),
    ):
        (family,) = read(text)
        assert {s.labels["topic"]: s.value for s in family.samples} == values


@given(st.lists(st.dictionaries(LABEL, st.integers(0, 9)), min_size=1, max_size=4))
def test_labels_kept_from_scrape_to_scrape_change_nothing(scrapes: list[dict[str, int]]) -> None:
    labels = Labels()
    for values in scrapes:
        metrics = [gauge("log_log_size", "S.", "topic"), gauge("server_x", "X.", "topic", "x")]
        for topic, value in values.items():
            metrics[0].add(value, topic)
            metrics[1].add(value, topic, topic)
        families = [family for each in metrics for family in each.families(Dialect.JMX)]
        assert exposition(families, labels=labels) == exposition(families)
        kept = labels.begin()
        assert len(kept["topic",].before) <= len(values) + 1  # of the last scrape only


def test_counter_has_its_name_in_each_dialect() -> None:
    metric = counter("server_brokertopicmetrics_bytesin", "Bytes.", "topic").add(7, "a")
    names = [family.name for family in metric.families(Dialect.BOTH)]
    assert names == [
        "kafka_server_brokertopicmetrics_bytesin_total",
        "kafka_server_brokertopicmetrics_bytesinpersec",
    ]
    text = exposition(metric.families(Dialect.BOTH), openmetrics=True).decode()
    samples = [s.name for family in read_openmetrics(text) for s in family.samples]
    assert samples == names


def test_labels_of_confluent_are_in_lower_case() -> None:
    metric = gauge("server_x", "X.", "clientId", "networkProcessor").add(1, "a", "0")
    (family,) = metric.families(Dialect.CONFLUENT)
    assert family.labels == ("clientid", "network_processor")


def test_gauge_with_the_same_name_and_labels_in_both_dialects_is_exposed_once() -> None:
    assert len(gauge("server_x", "X.", "topic").families(Dialect.BOTH)) == 1


def test_family_without_series_is_left_out() -> None:
    assert exposition([Family("x", "X.")]) == b""
