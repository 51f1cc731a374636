"""Every example in the help of produce, consume, groups and perf works."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from kctl.docs.tree import walk_commands
from tests.kctl.test_start import loaded_after
from tests.support.broker import RunningBroker
from tests.support.kctl import KctlResult, run_kctl
from tests.support.registry import running_registry
from tests.support.streaming import Run, kctl_on, quick_groups_broker

NOUNS = ("produce", "consume", "groups", "perf")
EVERY_EXAMPLE = [
    example
    for command in walk_commands()
    if len(command.path) > 1 and command.path[1] in NOUNS
    for example in command.examples
]
WITH_SCHEMAS = [example for example in EVERY_EXAMPLE if "--value-format" in example]
EXAMPLES = [example for example in EVERY_EXAMPLE if example not in WITH_SCHEMAS]
FILES = {
    "orders.txt": b"a:1\nb:2\nc:3\n",
    "orders.jsonl": b'{"key": "a", "value": {"amount": 5}}\n',
    "photo.png": b"\x89PNG\r\n",
}
SCHEMA = b'{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
SCHEMA_FILES = {
    "order.avsc": SCHEMA,
    "orders.jsonl": b'{"id": 1}\n{"id": 2}\n',
    "o.jsonl": b'{"id": 3}\n',
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


@pytest.fixture
def with_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """kctl on a broker and a registry, which have `orders` with two records in Avro."""
    for name, data in SCHEMA_FILES.items():
        (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    with quick_groups_broker(tmp_path) as broker, running_registry() as registry:
        env = {
            "KCTL_BOOTSTRAP_SERVERS": broker.bootstrap_servers,
            "KCTL_SCHEMA_REGISTRY_URL": registry.url,
        }

        def run(*args: str) -> KctlResult:
            return run_kctl(*args, env=env)

        assert run("topics", "create", "orders").exit_code == 0
        assert run("registry", "register", "orders-value", "order.avsc").exit_code == 0
        produce = ("produce", "orders", "orders.jsonl", "--value-format", "avro")
        assert run(*produce).exit_code == 0
        yield run


@pytest.mark.parametrize("example", WITH_SCHEMAS)
def test_example_with_a_schema_works(with_registry: Run, example: str) -> None:
    result = with_registry(*shlex.split(example)[1:])
    assert result.exit_code == 0, result.stderr
    assert "error" not in result.stderr
    if example.startswith("kctl consume"):
        assert [json.loads(line)["value"] for line in result.output.splitlines()] == [
            {"id": 1},
            {"id": 2},
        ]


@pytest.mark.parametrize("words", [["produce"], ["consume"], ["groups", "describe"], ["perf"]])
def test_help_does_not_import_librdkafka(words: list[str]) -> None:
    arguments = [*words, "--help"]
    run_help = f"import kctl.app\ntry: kctl.app.app({arguments!r})\nexcept SystemExit: pass"
    assert "confluent_kafka" not in loaded_after(run_help)
