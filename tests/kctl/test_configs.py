"""`kctl configs` on our broker: describe, alter, diff."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.broker import RunningBroker, running_broker
from tests.support.golden_tools import golden_tool
from tests.support.kctl import Kctl, KctlResult

Run = Callable[..., KctlResult]


@pytest.fixture(scope="module")
def broker_like_golden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker with the one setting that shows in the golden texts."""
    directory = tmp_path_factory.mktemp("broker")
    with running_broker(directory, unclean_leader_election_enable="false", broker_id=1) as running:
        yield running


@pytest.fixture
def run(kctl: Kctl, broker_like_golden: RunningBroker) -> Run:
    """kctl with the module's broker as its cluster."""
    env = {"KCTL_BOOTSTRAP_SERVERS": broker_like_golden.bootstrap_servers}
    return lambda *args: kctl(*args, env=env)


def value(run: Run, entity: str, name: str) -> str | None:
    rows = run("configs", "describe", entity, "--all", "-o", "json").json
    (found,) = [row["value"] for row in rows if row["config"] == name]
    text: str | None = found
    return text


def test_error_texts_equal_kafkas_tool(run: Run) -> None:
    run("topics", "create", "orders", "--config", "retention.ms=3600000")
    entity = ["--entity-type", "topics", "--entity-name", "orders", "--format", "kafka"]
    added = ["--add-config", "cleanup.policy=compact,segment.bytes=1048576", "--yes"]
    assert run("configs", "alter", *entity, *added).output == golden_tool("39-").text
    assert run("configs", "describe", *entity).output == golden_tool("40-").text
    assert run("configs", "describe", *entity, "--all").output == golden_tool("41-").text


def test_describe_shows_overrides_and_with_all_also_defaults(run: Run) -> None:
    run("topics", "create", "seen", "--config", "retention.ms=1000")
    short = run("configs", "describe", "topic:seen", "-o", "json").json
    sources = {row["config"]: row["source"] for row in short}
    assert sources == {
        "retention.ms": "DYNAMIC_TOPIC_CONFIG",
        "unclean.leader.election.enable": "STATIC_BROKER_CONFIG",
    }
    everything = run("configs", "describe", "topic:seen", "--all", "-o", "json").json
    assert len(everything) > 30
    assert "DEFAULT_CONFIG" in {row["source"] for row in everything}


def test_several_entities_have_their_own_column(run: Run) -> None:
    run("topics", "create", "two-a", "two-b")
    both = run("configs", "describe", "topic:two-a", "topic:two-b")
    assert both.output.splitlines()[0].split() == ["ENTITY", "CONFIG", "VALUE", "SOURCE"]
    one = run("configs", "describe", "topic:two-a")
    assert one.output.splitlines()[0].split() == ["CONFIG", "VALUE", "SOURCE"]
    assert "topic two-b" in both.output


def test_docs_come_from_the_broker(run: Run) -> None:
    run("topics", "create", "documented")
    rows = run("configs", "describe", "topic:documented", "--all", "--docs", "-o", "json").json
    (retention,) = [row for row in rows if row["config"] == "retention.ms"]
    assert "records are kept" in retention["documentation"]
    assert retention["type"] == "long"


def test_values_are_set_appended_subtracted_and_taken_back(run: Run) -> None:
    run("topics", "create", "policy")
    assert value(run, "topic:policy", "cleanup.policy") == "delete"
    run("configs", "append", "topic:policy", "cleanup.policy=compact", "--yes")
    assert value(run, "topic:policy", "cleanup.policy") == "delete,compact"
    run("configs", "subtract", "topic:policy", "cleanup.policy=delete", "--yes")
    assert value(run, "topic:policy", "cleanup.policy") == "compact"
    run("configs", "delete", "topic:policy", "cleanup.policy", "--yes")
    assert value(run, "topic:policy", "cleanup.policy") == "delete"
    run("configs", "set", "topic:policy", "retention.ms=5", "segment.ms=6", "--yes")
    assert value(run, "topic:policy", "segment.ms") == "6"


def test_change_is_shown_and_needs_a_yes(run: Run) -> None:
    run("topics", "create", "asked")
    words = ["configs", "set", "topic:asked", "retention.ms=5"]
    refused = run(*words)
    assert refused.exit_code == 1
    assert "604800000" in refused.stderr
    (row,) = run(*words, "--dry-run", "-o", "json").json
    assert (row["now"], row["then"]) == ("604800000", "5")
    assert value(run, "topic:asked", "retention.ms") == "604800000"


def test_dry_run_is_checked_by_the_broker(run: Run) -> None:
    run("topics", "create", "checked")
    result = run("configs", "set", "topic:checked", "retention.ms=soon", "--dry-run")
    assert result.exit_code == 1
    assert "INVALID_CONFIG" in result.stderr


def test_config_that_is_not_set_cannot_be_deleted(run: Run) -> None:
    run("topics", "create", "unset")
    result = run("configs", "delete", "topic:unset", "retention.ms", "--yes")
    assert result.exit_code == 1
    assert "does not set retention.ms" in result.stderr


def test_deletion_shows_the_value_that_applies_afterwards(run: Run) -> None:
    run("topics", "create", "other")
    run("topics", "create", "kept", "--config", "retention.ms=1000", "--config", "segment.ms=5000")
    words = ("configs", "delete", "topic:kept", "retention.ms", "segment.ms")
    rows = run(*words, "--dry-run", "-o", "json").json
    expected = {name: value(run, "topic:other", name) for name in ("retention.ms", "segment.ms")}
    assert {row["config"]: row["then"] for row in rows} == expected
    assert expected["retention.ms"] == "604800000"


def test_defaults_of_all_brokers_are_set_and_seen_by_each(run: Run) -> None:
    run("configs", "set", "brokers", "log.retention.ms=7200000", "--yes")
    (row,) = run("configs", "describe", "brokers", "-o", "json").json
    assert (row["config"], row["source"]) == ("log.retention.ms", "DYNAMIC_DEFAULT_BROKER_CONFIG")
    assert value(run, "broker:1", "log.retention.ms") == "7200000"
    kafka = run("configs", "delete", "brokers", "log.retention.ms", "--yes")
    assert kafka.exit_code == 0


def test_settings_come_from_a_properties_file(run: Run, tmp_path: Path) -> None:
    run("topics", "create", "from-file")
    path = tmp_path / "topic.properties"
    path.write_text("retention.ms = 77\n# comment\nsegment.ms=88\n")
    run("configs", "alter", "--topic", "from-file", "--add-config-file", str(path), "--yes")
    assert value(run, "topic:from-file", "retention.ms") == "77"
    assert value(run, "topic:from-file", "segment.ms") == "88"


def test_diff_shows_differences_with_status_3(run: Run) -> None:
    run("topics", "create", "left", "--config", "retention.ms=1")
    run("topics", "create", "right")
    result = run("configs", "diff", "topic:left", "topic:right", "-o", "json")
    assert result.exit_code == 3
    assert [(row["config"], row["left"], row["right"]) for row in result.json] == [
        ("retention.ms", "1", "604800000")
    ]
    same = run("configs", "diff", "topic:left", "topic:left")
    assert same.exit_code == 0


def test_unknown_topic_is_named(run: Run) -> None:
    result = run("configs", "describe", "topic:nowhere")
    assert result.exit_code == 1
    assert "no such topic: 'nowhere'" in result.stderr
    assert "kctl topics list" in result.stderr


def test_type_alone_describes_every_entity_of_it(run: Run) -> None:
    run("topics", "create", "every-a", "every-b", "--config", "retention.ms=1")
    topics = run("configs", "describe", "--entity-type", "topics", "-o", "json").json
    assert {"topic every-a", "topic every-b"} <= {row["entity"] for row in topics}
    brokers = run("configs", "describe", "--entity-type", "brokers", "--format", "kafka").output
    assert brokers.splitlines() == [
        "Dynamic configs for broker 1 are:",
        "Default configs for brokers in the cluster are:",
    ]


def test_missing_change_and_missing_entity_are_usage_errors(run: Run) -> None:
    assert run("configs", "alter", "topic:orders").exit_code == 2
    assert run("configs", "describe").exit_code == 2


def test_topics_configs_is_a_short_way_to_the_same(run: Run) -> None:
    run("topics", "create", "short-way", "--config", "retention.ms=9")
    short = run("topics", "configs", "short-way")
    assert short.output == run("configs", "describe", "topic:short-way").output
    assert "retention.ms" in short.output
