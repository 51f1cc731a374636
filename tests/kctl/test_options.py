"""The shared options: the same meaning at every position."""

import ast
from collections.abc import Mapping
from typing import Any

import pytest
from typer.testing import CliRunner

from kctl.cli.output import OutputFormat
from kctl.cli.theme import ColorMode
from kctl.docs.tree import walk_commands
from tests.support.kctl import CLEAN_ENVIRONMENT, Kctl
from tests.support.probe import probe_app


def session(*args: str, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The session that `kctl probe show` with these words around it is given."""
    result = CliRunner(env=CLEAN_ENVIRONMENT).invoke(probe_app, args, env=env)
    assert result.exit_code == 0, result.stderr
    text = result.stdout
    for choice in (*OutputFormat, *ColorMode):
        text = text.replace(repr(choice), repr(choice.value))
    shown: dict[str, Any] = ast.literal_eval(text)
    return shown


@pytest.mark.parametrize(
    "args",
    [
        ["-b", "h:9092", "probe", "show"],
        ["probe", "-b", "h:9092", "show"],
        ["probe", "show", "-b", "h:9092"],
        ["probe", "show", "--bootstrap-server=h:9092"],
    ],
)
def test_bootstrap_server_means_the_same_before_and_after_the_command(args: list[str]) -> None:
    assert session(*args)["bootstrap_server"] == "h:9092"


def test_option_nearest_to_the_command_wins() -> None:
    given = session("-b", "far:1", "-o", "json", "probe", "show", "-b", "near:1")
    assert (given["bootstrap_server"], given["output"]) == ("near:1", "json")


def test_environment_is_used_when_the_command_line_is_silent() -> None:
    env = {"KCTL_BOOTSTRAP_SERVERS": "env:1", "KCTL_OUTPUT": "yaml", "KCTL_TIMEOUT": "2.5"}
    given = session("probe", "show", env=env)
    assert (given["bootstrap_server"], given["output"], given["timeout"]) == ("env:1", "yaml", 2.5)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_command_line_wins_over_the_environment_at_every_level(place: int) -> None:
    words = ["probe", "show"]
    words[place:place] = ["-b", "cli:1"]
    given = session(*words, env={"KCTL_BOOTSTRAP_SERVERS": "env:1"})
    assert given["bootstrap_server"] == "cli:1"


def test_default_value_on_the_command_line_overrides_the_environment() -> None:
    given = session("-o", "table", "probe", "show", env={"KCTL_OUTPUT": "yaml"})
    assert given["output"] == "table"


def test_one_run_leaves_nothing_for_the_next() -> None:
    session("probe", "show", "-b", "first:1", "-vv")
    again = session("probe", "show")
    assert (again["bootstrap_server"], again["verbose"]) == (None, 0)


def test_missing_cluster_hints_how_to_specify_one(kctl: Kctl) -> None:
    result = kctl("brokers", "list")
    assert result.exit_code == 2
    assert "KCTL_BOOTSTRAP_SERVERS" in result.stderr
    assert result.output == ""


def test_option_of_a_command_is_not_taken_by_a_shared_one_of_the_same_name() -> None:
    for command in walk_commands():
        options = [n for o in command.parameters if not o.is_argument for n in o.names]
        assert sorted(options) == sorted(set(options)), command.name


def test_columns_of_an_export_are_not_columns_of_the_output(kctl: Kctl) -> None:
    result = kctl("spark-export", "run", "orders", "--to", "/nowhere", "--columns", "nosuch")
    assert result.exit_code == 2
    assert "nosuch" in result.stderr


def test_row_options_mean_the_same_at_every_position() -> None:
    given = session("--columns", "a,b", "probe", "--no-headers", "show", "--sort-by", "-lag")
    assert (given["columns"], given["no_headers"], given["sort_by"]) == ("a,b", True, "-lag")


@pytest.mark.parametrize("option", ["--columns", "--sort-by"])
def test_empty_list_of_columns_is_a_usage_error(kctl: Kctl, option: str) -> None:
    assert kctl("brokers", "list", "-b", ":1", option, ",").exit_code == 2
