"""Contexts: named clusters, their rules, and precedence."""

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kctl.cli.contexts import Context, Contexts, config_path, read_contexts, write_contexts
from kctl.cli.errors import CliError
from kctl.cli.options import Session
from kctl.docs.tree import walk_commands
from kctl.views.contexts import COLUMNS
from tests.support.broker import RunningBroker
from tests.support.kctl import Kctl, KctlResult

Run = Callable[..., KctlResult]

EXAMPLES = [
    example
    for command in walk_commands()
    if command.path[:2] == ("kctl", "context")
    for example in command.examples
]


@pytest.fixture
def run(kctl: Kctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """kctl with a file of contexts of the test's own."""
    path = str(tmp_path / "config" / "kctl.yaml")
    monkeypatch.setenv("KCTL_CONFIG", path)
    return lambda *args, **env: kctl(*args, env={"KCTL_CONFIG": path, **env})


def test_context_is_set_used_shown_and_deleted(run: Run) -> None:
    assert run("context", "set", "dev", "-b", "localhost:1").exit_code == 0
    assert run("context", "set", "prod", "-b", "kafka:2", "--protected").exit_code == 0
    assert run("context", "show", "-o", "json").json["name"] == "dev"
    assert run("context", "use", "prod").exit_code == 0
    shown = run("context", "show", "-o", "json").json
    assert (shown["name"], shown["bootstrap_servers"], shown["protected"]) == (
        "prod",
        "kafka:2",
        True,
    )
    assert run("context", "delete", "prod").exit_code == 0
    assert run("context", "list", "-o", "name").output == "dev\n"
    assert run("context", "show").exit_code == 1


def test_setting_a_context_again_keeps_other_options(run: Run) -> None:
    run("context", "set", "prod", "-b", "kafka:2", "--protected")
    run("context", "set", "prod", "--read-only")
    shown = run("context", "show", "prod", "-o", "json").json
    assert (shown["bootstrap_servers"], shown["protected"], shown["read_only"]) == (
        "kafka:2",
        True,
        True,
    )


def test_environment_is_not_written_into_a_context(run: Run) -> None:
    result = run("context", "set", "dev", KCTL_BOOTSTRAP_SERVERS="env:1")
    assert result.exit_code == 2
    assert "no bootstrap servers" in result.stderr


def test_unknown_context_lists_the_known_ones(run: Run) -> None:
    run("context", "set", "dev", "-b", "localhost:1")
    result = run("context", "use", "prd")
    assert result.exit_code == 2
    assert "known: dev" in result.stderr


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_of_the_help_works(run: Run, example: str) -> None:
    run("context", "set", "dev", "-b", "localhost:1")
    run("context", "set", "prod", "-b", "localhost:2")
    assert run(*shlex.split(example)[1:]).exit_code == 0


@pytest.fixture
def contexts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with two contexts, `dev` in use."""
    monkeypatch.setenv("KCTL_CONFIG", str(tmp_path / "contexts.yaml"))
    named = {"dev": Context("dev:1"), "prod": Context("prod:1", read_only=True)}
    write_contexts(config_path(), Contexts("dev", named))
    return config_path()


@pytest.mark.parametrize(
    ("session", "servers", "context"),
    [
        (Session(), "dev:1", "dev"),
        (Session(context="prod"), "prod:1", "prod"),
        (Session(bootstrap_server="env:1"), "env:1", None),
        (Session(bootstrap_server="env:1", context="prod"), "env:1", "prod"),
        (Session(bootstrap_server="cli:1", given={"bootstrap_server"}), "cli:1", None),
        (Session(bootstrap_server="env:1", context="prod", given={"context"}), "prod:1", "prod"),
        (
            Session(
                bootstrap_server="cli:1", context="prod", given={"context", "bootstrap_server"}
            ),
            "cli:1",
            "prod",
        ),
    ],
)
@pytest.mark.usefixtures("contexts")
def test_command_line_wins_over_environment_and_that_over_the_context_in_use(
    session: Session, servers: str, context: str | None
) -> None:
    assert session.bootstrap_servers() == servers
    assert session.active_context[0] == context


def test_bootstrap_servers_come_from_client_properties_when_nothing_else_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KCTL_CONFIG", str(tmp_path / "none.yaml"))
    properties = tmp_path / "client.properties"
    properties.write_text("bootstrap.servers=file:1\n")
    assert Session(command_config=str(properties)).bootstrap_servers() == "file:1"


@pytest.mark.usefixtures("contexts")
def test_servers_of_client_properties_on_the_command_line_win_over_the_current_context(
    tmp_path: Path,
) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text("bootstrap.servers=file:1\n")
    session = Session(
        command_config=str(properties), given={"command_config"}, bootstrap_server="env:1"
    )
    assert (session.bootstrap_servers(), session.active_context[0]) == ("file:1", None)
    given = {"command_config", "context"}
    session = Session(command_config=str(properties), given=given, context="prod")
    assert (session.bootstrap_servers(), session.active_context[0]) == ("prod:1", "prod")
    of_environment = Session(command_config=str(properties))
    assert (of_environment.bootstrap_servers(), of_environment.active_context[0]) == (
        "file:1",
        None,
    )


def test_variable_with_an_unknown_context_is_refused(run: Run) -> None:
    env = {"KCTL_CONTEXT": "nosuch", "KCTL_BOOTSTRAP_SERVERS": "127.0.0.1:1"}
    result = run("topics", "list", **env)
    assert (result.exit_code, "no such context: 'nosuch'" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("contexts: [", "cannot use"),
        ("- a\n", "mapping"),
        ("servers: {}\n", "unknown keys: servers"),
        ("contexts: {dev: {servers: a}}\n", "may have only"),
        ("contexts: {dev: {read_only: 1}}\n", "must be a bool"),
        ("contexts: {dev: {bootstrap_servers: 9092}}\n", "must be a str"),
        ("current: 3\n", "must be a name"),
    ],
)
def test_invalid_file_is_named_with_the_reason(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "contexts.yaml"
    path.write_text(text)
    with pytest.raises(CliError, match=words) as caught:
        read_contexts(path)
    assert str(path) in caught.value.message


def test_configuration_directory_of_the_user_is_respected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KCTL_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert config_path() == tmp_path / "kctl" / "config.yaml"


def test_columns_of_the_list_are_the_keys_of_a_context() -> None:
    shown = {column.key for column in COLUMNS}
    assert shown == {"current", "name", *Context().__dataclass_fields__}


SELECTING = {
    "--bootstrap-server": "KCTL_BOOTSTRAP_SERVERS",
    "--context": "KCTL_CONTEXT",
    "--command-config": "KCTL_COMMAND_CONFIG",
}
CHANGE = ("topics", "delete", "orders", "--yes")


@pytest.fixture
def deletable(run: Run, shared_broker: RunningBroker) -> Run:
    """kctl whose current context is a running broker with the topic `orders`."""
    assert run("context", "set", "dev", "-b", shared_broker.bootstrap_servers).exit_code == 0
    run("topics", "delete", "orders", "--yes")
    assert run("topics", "create", "orders").exit_code == 0
    return run


class TestEmptySelectionOfTheCluster:
    """An unset variable in a script must not select another cluster."""

    @pytest.mark.parametrize("empty", ["", " ", ","])
    @pytest.mark.parametrize("option", SELECTING)
    def test_empty_option_is_a_usage_error(self, deletable: Run, option: str, empty: str) -> None:
        for words in ((option, empty, *CHANGE), (*CHANGE, f"{option}={empty}")):
            result = deletable(*words)
            assert (result.exit_code, f"{option} is empty" in result.stderr) == (2, True)
        assert "orders" in deletable("topics", "list", "-o", "name").output

    @pytest.mark.parametrize("variable", SELECTING.values())
    def test_empty_variable_is_a_usage_error(self, deletable: Run, variable: str) -> None:
        result = deletable(*CHANGE, **{variable: ""})
        assert (result.exit_code, f"{variable} is empty" in result.stderr) == (2, True)
        assert "orders" in deletable("topics", "list", "-o", "name").output

    def test_empty_path_of_the_contexts_is_a_usage_error(self, run: Run) -> None:
        result = run("context", "list", KCTL_CONFIG="")
        assert (result.exit_code, "KCTL_CONFIG is empty" in result.stderr) == (2, True)

    @pytest.mark.parametrize("variable", ["KCTL_BOOTSTRAP_SERVERS", "KCTL_CONTEXT"])
    def test_option_makes_the_variable_irrelevant(
        self, deletable: Run, shared_broker: RunningBroker, variable: str
    ) -> None:
        for option in (("-b", shared_broker.bootstrap_servers), ("--context", "dev")):
            assert deletable("topics", "list", *option, **{variable: ""}).exit_code == 0

    def test_commands_without_a_cluster_ignore_it(self, run: Run) -> None:
        assert run("context", "list", KCTL_BOOTSTRAP_SERVERS="").exit_code == 0

    def test_empty_address_in_the_file_is_refused(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "empty.yaml"
        path.write_text("current: a\ncontexts:\n  a:\n    bootstrap_servers: ''\n")
        result = run("topics", "list", KCTL_CONFIG=str(path))
        assert result.exit_code != 0
        assert "bootstrap_servers of context 'a' is empty" in result.stderr

    def test_empty_zookeeper_is_a_usage_error(self, run: Run) -> None:
        run("context", "set", "dev", "-b", "localhost:1", "--zookeeper", "localhost:2")
        for command in (("zk", "ls"), ("groups", "list"), ("context", "set", "dev")):
            result = run(*command, "--zookeeper=")
            assert (result.exit_code, "--zookeeper is empty" in result.stderr) == (2, True)
        result = run("zk", "ls", KCTL_ZOOKEEPER="")
        assert (result.exit_code, "KCTL_ZOOKEEPER is empty" in result.stderr) == (2, True)


class TestProtectionFollowsTheCluster:
    """Two clusters; a protected context names one of them by its cluster id."""

    @pytest.fixture
    def prod(self, run: Run, shared_broker: RunningBroker) -> Run:
        """The context prod is a running broker under one name; 127.0.0.1 is another."""
        port = shared_broker.bootstrap_servers.rpartition(":")[2]
        assert run("context", "set", "other", "-b", "localhost:1").exit_code == 0
        saved = run("context", "set", "prod", "-b", f"localhost:{port}", "--protected")
        assert saved.exit_code == 0, saved.stderr
        run("topics", "create", "orders", "--if-not-exists", "--context", "prod")
        return run

    def test_cluster_id_is_recorded(self, prod: Run, shared_broker: RunningBroker) -> None:
        servers = shared_broker.bootstrap_servers
        cluster_id = prod("cluster", "id", "-b", servers).output.strip()
        assert prod("context", "show", "prod", "-o", "json").json["cluster_id"] == cluster_id

    def test_unreachable_cluster_is_saved_without_an_id(self, run: Run) -> None:
        result = run("context", "set", "down", "-b", "127.0.0.1:1")
        assert (result.exit_code, "the cluster id is unknown" in result.stderr) == (0, True)
        assert run("context", "show", "down", "-o", "json").json["cluster_id"] is None

    def test_another_address_of_a_protected_cluster_is_protected(
        self, prod: Run, shared_broker: RunningBroker
    ) -> None:
        words = ("-b", shared_broker.bootstrap_servers, *CHANGE)
        result = prod(*words)
        assert (result.exit_code, "'prod' is protected" in result.stderr) == (1, True)
        assert "--confirm prod confirms it" in result.stderr
        prod("context", "set", "alias", "-b", shared_broker.bootstrap_servers)
        assert "'prod' is protected" in prod(*CHANGE, "--context", "alias").stderr
        assert "does not name" in prod(*words, "--confirm", "alias").stderr
        assert "orders" in prod("topics", "list", "-o", "name", "--context", "prod").output
        assert prod(*words, "--confirm", "prod").exit_code == 0

    def test_another_address_of_a_read_only_cluster_is_read_only(
        self, prod: Run, shared_broker: RunningBroker
    ) -> None:
        prod("context", "set", "prod", "--read-only")
        servers = ("-b", shared_broker.bootstrap_servers)
        for command in (CHANGE, ("topics", "create", "new"), ("produce", "orders")):
            result = prod(*command, *servers)
            assert (result.exit_code, "'prod' is read-only" in result.stderr) == (1, True)

    def test_address_that_leads_to_another_cluster_is_refused(
        self, prod: Run, tmp_path: Path, shared_broker: RunningBroker
    ) -> None:
        path = tmp_path / "config" / "kctl.yaml"
        contexts = read_contexts(path)
        stale = replace(contexts.named["prod"], cluster_id="another", protected=False)
        write_contexts(path, replace(contexts, named={**contexts.named, "prod": stale}))
        for command in (CHANGE, ("topics", "list")):
            result = prod(*command, "--context", "prod")
            assert (result.exit_code, "belongs to cluster another" in result.stderr) == (1, True)
        servers = shared_broker.bootstrap_servers
        assert "orders" in prod("topics", "list", "-o", "name", "-b", servers).output
        assert prod("context", "set", "prod", "-b", servers).exit_code == 0
        assert prod("topics", "list", "--context", "prod").exit_code == 0
