"""Parsing of command-line arguments: topics, partitions, entities, configs, assignments."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model import TopicPartition
from kctl.cli.arguments.configs import (
    parse_assignment,
    parse_changes,
    parse_kafka_pairs,
    parse_pairs,
)
from kctl.cli.arguments.entities import KafkaEntity, entities_of, parse_entity
from kctl.cli.arguments.partitions import (
    PartitionChoice,
    PartitionRule,
    parse_partitions,
    parse_timestamp,
    parse_topic_and_partitions,
    parse_topic_partitions,
)
from kctl.cli.arguments.topics import include_list, require_some, select
from kctl.cli.errors import CliError, ExitStatus
from kctl.model.configs import Change, Config, Entity, EntityType, Operation, Synonym
from kctl.views.config_changes import change_rows

TOPICS = ["__consumer_offsets", "orders", "orders-eu", "payments"]


def test_names_are_literal_without_regex() -> None:
    assert select(["orders.*"]).pick(TOPICS) == []
    assert select(["orders.*"], regex=True).pick(TOPICS) == ["orders", "orders-eu"]


def test_regex_must_fit_the_whole_name() -> None:
    assert select(["order"], regex=True).pick(TOPICS) == []


def test_nothing_named_is_everything_and_internal_topics_can_be_left_out() -> None:
    assert select(None).pick(TOPICS) == TOPICS
    assert select(None, exclude_internal=True).pick(TOPICS) == TOPICS[1:]


def test_names_without_a_match_are_missing() -> None:
    assert select(["orders", "nope"]).missing(TOPICS) == ["nope"]
    assert select(["o.*", "x.*"], regex=True).missing(TOPICS) == ["x.*"]


@pytest.mark.parametrize(
    ("text", "regex"), [("a,b", "a|b"), (" 'a.*' ", "a.*"), ('"x", "y"', 'x"|"y'), ("a", "a")]
)
def test_kafkas_list_of_topics_becomes_a_regular_expression(text: str, regex: str) -> None:
    assert include_list(text) == regex


def test_selection_by_name_needs_no_list_of_all_topics() -> None:
    assert select(["a"]).exact_names == ["a"]
    assert select(["a"], kafka_topic="b").exact_names is None
    assert select(None).exact_names is None


@pytest.mark.parametrize("bad", ["[", "*"])
def test_invalid_pattern_is_a_usage_error(bad: str) -> None:
    with pytest.raises(CliError) as caught:
        select([bad], regex=True)
    assert caught.value.status is ExitStatus.USAGE


def test_dangerous_commands_do_not_default_to_all_topics() -> None:
    with pytest.raises(CliError, match="no topic specified"):
        require_some(select(None))


def test_pairs_keep_further_equals_signs_and_empty_values() -> None:
    assert parse_pairs(["a=b=c", "d="]) == {"a": "b=c", "d": ""}


@pytest.mark.parametrize("bad", ["a", "=b", ""])
def test_pair_without_key_or_sign_is_a_usage_error(bad: str) -> None:
    with pytest.raises(CliError, match="KEY=VALUE"):
        parse_pairs([bad])


def test_kafkas_pairs_keep_commas_in_brackets() -> None:
    assert parse_kafka_pairs("a=1,b=[x,y],c=") == {"a": "1", "b": "x,y", "c": ""}


@given(st.lists(st.lists(st.integers(0, 99), min_size=2, max_size=2, unique=True), min_size=1))
def test_assignment_comes_back_as_it_was_written(assignment: list[list[int]]) -> None:
    text = ",".join(":".join(map(str, replicas)) for replicas in assignment)
    assert parse_assignment(text) == assignment


@pytest.mark.parametrize(
    ("text", "words"),
    [("1:1", "twice"), ("1:2,3", "different number"), ("a:b", "broker ids"), ("", "ids")],
)
def test_invalid_assignment_states_the_reason(text: str, words: str) -> None:
    with pytest.raises(CliError, match=words):
        parse_assignment(text)


PARTITIONS = [TopicPartition(t, p) for t in ("orders", "orders-eu", "payments") for p in range(4)]


def picked(*rules: PartitionRule) -> list[str]:
    return [str(p) for p in PartitionChoice(rules).pick(PARTITIONS)]


def test_partitions_are_named_after_a_colon() -> None:
    assert picked(*parse_partitions(["orders:1,3", "payments:0"])) == [
        "orders-1",
        "orders-3",
        "payments-0",
    ]
    assert len(picked(*parse_partitions(["orders"]))) == 4


@pytest.mark.parametrize(
    ("rules", "partitions"),
    [
        ("orders:1", ["orders-1"]),
        ("orders:1-3", ["orders-1", "orders-2"]),
        ("orders:3-", ["orders-3"]),
        ("payments:-1,orders:0", ["orders-0", "payments-0"]),
        (":3", ["orders-3", "orders-eu-3", "payments-3"]),
        ("orders.*:0", ["orders-0", "orders-eu-0"]),
    ],
)
def test_kafkas_ranges_leave_out_their_end(rules: str, partitions: list[str]) -> None:
    assert picked(*parse_topic_partitions(rules)) == partitions


def test_kafkas_topic_and_partitions_hold_together() -> None:
    assert picked(parse_topic_and_partitions("orders,payments", "0,1")) == [
        "orders-0",
        "orders-1",
        "payments-0",
        "payments-1",
    ]
    assert len(picked(parse_topic_and_partitions(None, None))) == len(PARTITIONS)


@pytest.mark.parametrize("bad", ["orders:x", "orders:"])
def test_invalid_partition_number_is_a_usage_error(bad: str) -> None:
    with pytest.raises(CliError, match="partition numbers"):
        parse_partitions([bad])


@pytest.mark.parametrize(("bad", "hint"), [("orders:0-2", ": 0,1,2"), ("orders:2-0", "e.g.")])
def test_range_of_partitions_is_refused_with_what_to_write(bad: str, hint: str) -> None:
    with pytest.raises(CliError) as refused:
        parse_partitions([bad])
    assert hint in refused.value.hint


@pytest.mark.parametrize(
    ("text", "timestamp"),
    [("latest", -1), ("earliest", -2), ("max-timestamp", -3), ("-2", -2), ("1700000000000",) * 2],
)
def test_places_have_kafkas_numbers(text: str, timestamp: int | str) -> None:
    assert parse_timestamp(text) == int(timestamp)


def test_time_before_now_is_later_than_a_longer_one() -> None:
    assert parse_timestamp("-1h") < parse_timestamp("-15m")


def test_invalid_time_is_a_usage_error() -> None:
    with pytest.raises(CliError, match="yesterday") as caught:
        parse_timestamp("yesterday")
    assert "earliest" in caught.value.hint


ORDERS = Entity(EntityType.TOPICS, "orders")


@pytest.mark.parametrize(
    ("text", "entity"),
    [
        ("topic:orders", ORDERS),
        ("broker:1", Entity(EntityType.BROKERS, "1")),
        ("broker-logger:1", Entity(EntityType.BROKER_LOGGERS, "1")),
        ("brokers", Entity(EntityType.BROKERS, "")),
    ],
)
def test_entities_have_one_word_each(text: str, entity: Entity) -> None:
    assert parse_entity(text) == entity


@pytest.mark.parametrize("bad", ["orders", "topic:", "broker:one", "user:alice"])
def test_invalid_entity_is_a_usage_error(bad: str) -> None:
    with pytest.raises(CliError) as caught:
        parse_entity(bad)
    assert caught.value.status is ExitStatus.USAGE


@pytest.mark.parametrize(
    ("kafka", "entity"),
    [
        (KafkaEntity(entity_type="topics", entity_name="orders"), "topic:orders"),
        (KafkaEntity(topic="orders"), "topic:orders"),
        (KafkaEntity(entity_type="brokers", entity_name="1"), "broker:1"),
        (KafkaEntity(broker="1"), "broker:1"),
        (KafkaEntity(entity_type="brokers", entity_default=True), "brokers"),
        (KafkaEntity(broker_defaults=True), "brokers"),
        (KafkaEntity(broker_logger="1"), "broker-logger:1"),
    ],
)
def test_kafkas_options_name_the_same_entities(kafka: KafkaEntity, entity: str) -> None:
    assert entities_of(None, kafka) == entities_of([entity], KafkaEntity())


@pytest.mark.parametrize(
    "kafka",
    [
        KafkaEntity(),
        KafkaEntity(entity_type="topics"),
        KafkaEntity(entity_type="users", entity_name="alice"),
        KafkaEntity(broker="one"),
    ],
)
def test_kafkas_options_that_name_nothing_are_usage_errors(kafka: KafkaEntity) -> None:
    with pytest.raises(CliError) as caught:
        entities_of(None, kafka)
    assert caught.value.status is ExitStatus.USAGE


def test_plan_shows_the_value_before_and_after_each_change() -> None:
    policy = Config(
        "cleanup.policy",
        "compact",
        "DYNAMIC_TOPIC_CONFIG",
        False,
        False,
        "list",
        (
            Synonym("cleanup.policy", "compact", "DYNAMIC_TOPIC_CONFIG"),
            Synonym("log.cleanup.policy", "delete", "DEFAULT_CONFIG"),
        ),
        None,
    )
    changes = [
        Change("cleanup.policy", Operation.SET, "delete"),
        Change("cleanup.policy", Operation.DELETE),
        Change("cleanup.policy", Operation.APPEND, "delete"),
        Change("cleanup.policy", Operation.SUBTRACT, "compact"),
    ]
    rows = change_rows(ORDERS, [policy], changes)
    assert [(row["now"], row["then"]) for row in rows] == [
        ("compact", "delete"),
        ("compact", "delete"),
        ("compact", "compact,delete"),
        ("compact", ""),
    ]


def test_secrets_stay_out_of_the_plan() -> None:
    secret = Config("ssl.key.password", None, "x", False, True, "password", (), None)
    (row,) = change_rows(ORDERS, [secret], [Change("ssl.key.password", Operation.SET, "hush")])
    assert not re.search("hush", str(row))


def test_two_changes_to_one_setting_are_a_usage_error() -> None:
    with pytest.raises(CliError, match=r"retention\.ms"):
        parse_changes(set_pairs={"retention.ms": "1"}, deleted=["retention.ms"])
