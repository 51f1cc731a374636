"""A wrong name in --columns or --sort-by is refused before anything is changed."""

from collections.abc import Iterator

import pytest

from tests.support.broker import RunningBroker, running_broker
from tests.support.kctl import KctlResult, run_kctl

pytestmark = pytest.mark.timeout(120)

STATE = [
    ("topics", "describe", "-o", "json"),
    ("groups", "describe", "--all", "-o", "csv", "--columns", "group,topic,partition,current"),
    ("configs", "describe", "topic:orders", "broker:0", "-o", "json"),
    ("quotas", "list", "-o", "json"),
    ("users", "list", "-o", "json"),
    ("offsets", "orders", "-o", "json"),
    ("offsets", "orders", "--time", "earliest", "-o", "json"),
]
"""Queries that show all that CHANGES would change."""

CHANGES = [
    ("topics", "create", "new"),
    ("topics", "alter", "orders", "-p", "3", "--yes"),
    ("topics", "delete", "orders", "--yes"),
    ("configs", "set", "topic:orders", "retention.ms=1", "--yes"),
    ("groups", "delete", "billing", "--yes"),
    ("groups", "delete-offsets", "billing", "--topic", "orders", "--yes"),
    ("groups", "reset-offsets", "billing", "--all-topics", "--to-earliest", "--execute"),
    ("delete-records", "orders", "--all", "--yes"),
    ("produce", "orders", "-o", "csv"),
    ("quotas", "set", "producer_byte_rate=1MB", "--user", "alice", "--yes"),
    ("throttle", "set", "1MB", "orders", "--yes"),
    ("users", "set", "alice", "--password-env", "PASSWORD"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with running_broker(tmp_path_factory.mktemp("broker"), num_partitions=2) as running:
        assert on(running, "topics", "create", "orders").exit_code == 0
        assert on(running, "produce", "orders", stdin="a\nb\nc\n").exit_code == 0
        assert on(running, "consume", "orders", "--exit", "--group", "billing").exit_code == 0
        yield running


def on(server: RunningBroker, *args: str, stdin: str | None = None) -> KctlResult:
    return run_kctl(*args, "-b", server.bootstrap_servers, stdin=stdin, env={"PASSWORD": "secret"})


def state(server: RunningBroker) -> list[str]:
    return [on(server, *query).output for query in STATE]


@pytest.mark.parametrize("option", ["--columns", "--sort-by"])
@pytest.mark.parametrize("args", CHANGES, ids=" ".join)
def test_change_with_a_wrong_column_is_not_made(
    server: RunningBroker, args: tuple[str, ...], option: str
) -> None:
    before = state(server)
    result = on(server, *args, option, "nonsense", stdin="d\n")
    assert result.exit_code == 2, result.stderr
    assert f"{option}: no column 'nonsense'\n hint: the columns are " in result.stderr
    assert state(server) == before


def test_right_columns_are_printed_after_the_change(server: RunningBroker) -> None:
    created = on(server, "topics", "create", "fine", "--columns", "status,message", "-o", "csv")
    assert (created.exit_code, created.output) == (0, "status,message\ncreated,\n"), created.stderr
    options = ("--columns", "topic,error", "--sort-by", "-topic", "-o", "csv", "--yes")
    deleted = on(server, "delete-records", "fine:0", "--all", *options)
    assert (deleted.exit_code, deleted.output) == (0, "topic,error\nfine,\n"), deleted.stderr
