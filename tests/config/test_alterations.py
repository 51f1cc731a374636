import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.config import TopicConfig
from broker.config.alterations import Alteration, Operation, altered
from broker.config.loggers import check_levels, logger_levels, set_levels

WORDS = st.lists(st.sampled_from("abcdef"), min_size=1, unique=True)
KEY = "leader.replication.throttled.replicas"


def after(current: str | None, operation: Operation, words: list[str]) -> str:
    settings = {} if current is None else {KEY: current}
    alteration = Alteration(KEY, operation, ",".join(words))
    return altered(settings, [alteration], TopicConfig.settings)[KEY]


@given(WORDS, WORDS)
def test_append_adds_new_elements_once(old: list[str], new: list[str]) -> None:
    result = after(",".join(old), Operation.APPEND, new).split(",")
    assert result == old + [word for word in new if word not in old]


@given(WORDS, WORDS)
def test_subtract_keeps_the_order_of_the_rest(old: list[str], gone: list[str]) -> None:
    result = after(",".join(old), Operation.SUBTRACT, gone)
    assert result == ",".join(word for word in old if word not in gone)


def test_append_to_an_unset_list_starts_with_its_default() -> None:
    change = [Alteration("cleanup.policy", Operation.APPEND, "compact")]
    assert altered({}, change, TopicConfig.settings) == {"cleanup.policy": "delete,compact"}
    assert after(None, Operation.APPEND, ["a"]) == "a"


def test_original_settings_are_not_modified() -> None:
    before = {"flush.ms": "1"}
    altered(before, [Alteration("flush.ms", Operation.DELETE, "")], TopicConfig.settings)
    assert before == {"flush.ms": "1"}


@pytest.fixture
def own_logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("tests.config.own")
    yield logger
    logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize(
    ("word", "level"),
    [("TRACE", 5), ("DEBUG", 10), ("INFO", 20), ("WARN", 30), ("ERROR", 40), ("FATAL", 50)],
)
def test_level_of_a_logger_is_set_and_described(
    own_logger: logging.Logger, word: str, level: int
) -> None:
    change = [Alteration(own_logger.name, Operation.SET, word)]
    check_levels(change)
    set_levels(change)
    assert own_logger.level == level
    assert logger_levels()[own_logger.name] == word


def test_logger_without_a_level_has_the_inherited_one(own_logger: logging.Logger) -> None:
    own_logger.setLevel(logging.DEBUG)
    set_levels([Alteration(own_logger.name, Operation.DELETE, "")])
    assert own_logger.level == logging.NOTSET
    levels = logger_levels()
    assert levels[own_logger.name] == levels["root"]
