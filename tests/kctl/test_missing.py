"""Errors about missing names suggest similar ones."""

import pytest

from kctl.cli.missing import no_such
from tests.support.broker import RunningBroker
from tests.support.streaming import Run, kctl_on

LISTED = "kctl topics list shows the topics"


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("oders", ["orders", "payments"], f"did you mean orders? {LISTED}"),
        ("order-1", ["order-2", "order-3", "x"], f"did you mean order-3 or order-2? {LISTED}"),
        ("zebra", ["orders", "payments"], LISTED),
        ("zebra", [], LISTED),
    ],
)
def test_similar_names_are_suggested(name: str, known: list[str], hint: str) -> None:
    error = no_such("topic", [name], known)
    assert (error.message, error.hint) == (f"no such topic: {name!r}", hint)


@pytest.fixture(scope="module")
def run(shared_broker: RunningBroker) -> Run:
    run = kctl_on(shared_broker)
    assert run("topics", "create", "orders").exit_code == 0
    assert run("produce", "orders", stdin="a\n").exit_code == 0
    assert run("consume", "orders", "--group", "billing", "--exit").exit_code == 0
    return run


@pytest.mark.parametrize(
    "words",
    [
        ["topics", "describe", "oders"],
        ["topics", "delete", "oders", "--yes"],
        ["consume", "oders"],
        ["perf", "consume", "oders"],
        ["log-dirs", "oders"],
        ["offsets", "oders"],
        ["configs", "describe", "topic:oders"],
    ],
)
def test_commands_suggest_similar_topics(run: Run, words: list[str]) -> None:
    result = run(*words)
    assert result.exit_code == 1
    assert "no such topic: 'oders'" in result.stderr
    assert "did you mean orders?" in result.stderr


def test_describing_a_misspelled_group_suggests_similar_ones(run: Run) -> None:
    assert "did you mean billing?" in run("groups", "describe", "biling").stderr


def test_words_help_and_version_are_the_options(run: Run) -> None:
    assert run("help").output == run("--help").output
    assert run("help", "topics", "create").output == run("topics", "create", "--help").output
    assert run("version").output == run("--version").output


def test_absurd_number_of_partitions_is_not_sent(run: Run) -> None:
    result = run("topics", "create", "huge", "-p", "2000000000")
    assert (result.exit_code, "1000000" in result.stderr) == (2, True), result.stderr
