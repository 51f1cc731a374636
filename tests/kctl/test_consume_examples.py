"""Every example in the help of produce, consume, groups and perf works."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from kctl.docs.tree import walk_commands
from tests.kctl.test_start import loaded_after
from tests.support.broker import RunningBroker
from tests.support.streaming import kctl_on, quick_groups_broker

NOUNS = ("produce", "consume", "groups", "perf")
EXAMPLES = [
    example
    for command in walk_commands()
    if len(command.path) > 1 and command.path[1] in NOUNS
    for example in command.examples
]
FILES = {
    "orders.txt": b"a:1\nb:2\nc:3\n",
    "orders.jsonl": b'{"key": "a", "value": {"amount": 5}}\n',
    "photo.png": b"\x89PNG\r\n",
}


@pytest.fixture(scope="module")
def example_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker with the topics and the group that the examples speak of."""
    with quick_groups_broker(tmp_path_factory.mktemp("broker")) as running:
        run = kctl_on(running)
        run("topics", "create", "orders", "load", "-p", "2")
        lines = "".join(f"key-{number}:{number}\n" for number in range(20))
        assert run("produce", "orders", "-K", ":", stdin=lines).exit_code == 0
        assert run("perf", "produce", "load", "-n", "10000").exit_code == 0
        yield running


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_of_the_help_works(
    example_broker: RunningBroker,
    example: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    run = kctl_on(example_broker)
    run("groups", "reset-offsets", "billing", "-t", "orders", "--to-latest", "--execute")
    result = run(*shlex.split(example)[1:])
    assert result.exit_code == 0, result.stderr
    assert "error" not in result.stderr


@pytest.mark.parametrize("words", [["produce"], ["consume"], ["groups", "describe"], ["perf"]])
def test_help_does_not_import_librdkafka(words: list[str]) -> None:
    arguments = [*words, "--help"]
    run_help = f"import kctl.app\ntry: kctl.app.app({arguments!r})\nexcept SystemExit: pass"
    assert "confluent_kafka" not in loaded_after(run_help)
