"""Every command has help with examples, a man page and completions, all up to date."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from kctl.app import COMMANDS
from kctl.cli.help import CommandHelp, help_lines
from kctl.cli.security.secrets import SETTINGS
from kctl.docs.__main__ import stale_files, wanted_files, write_files
from kctl.docs.man import ENVIRONMENT, escape, page_name
from kctl.docs.tree import walk_commands
from tests.support.kctl import Kctl

ROOT = Path(__file__).parents[2]
TREE = list(walk_commands())
LEAVES = [command for command in TREE if not command.subcommands]


def name_of(command: CommandHelp) -> str:
    return command.name


def test_committed_man_pages_and_completions_are_current() -> None:
    assert stale_files(ROOT, wanted_files()) == [], "run `make docs` and commit the result"


def test_man_pages_describe_every_environment_variable() -> None:
    variables = {f"KCTL_{setting.upper().replace('.', '_')}" for setting in SETTINGS}
    for source in (ROOT / "kctl").rglob("*.py"):
        variables |= set(
            re.findall(r'(?:envvar|environ\.get\(|environ\[)=?"(KCTL_\w+)', source.read_text())
        )
    assert variables <= ENVIRONMENT.keys()


def test_stale_files_are_those_missing_changed_or_left_over(tmp_path: Path) -> None:
    wanted = {Path("man/a.1"): "a", Path("man/b.1"): "b", Path("completions/c"): "c"}
    write_files(tmp_path, wanted)
    assert stale_files(tmp_path, wanted) == []
    (tmp_path / "man/a.1").unlink()
    (tmp_path / "man/b.1").write_text("old")
    (tmp_path / "man/gone.1").touch()
    assert stale_files(tmp_path, wanted) == [Path("man/a.1"), Path("man/b.1"), Path("man/gone.1")]
    write_files(tmp_path, wanted)
    assert stale_files(tmp_path, wanted) == []


@pytest.mark.parametrize("name", [name for name in COMMANDS if not COMMANDS[name].hidden])
def test_summary_in_the_command_table_is_that_of_the_command(name: str) -> None:
    (command,) = [command for command in TREE if command.path == ("kctl", name)]
    assert command.summary == COMMANDS[name].summary


@pytest.mark.parametrize("command", LEAVES, ids=name_of)
def test_every_command_has_examples_of_itself(command: CommandHelp) -> None:
    assert command.examples
    for example in command.examples:
        assert shlex.split(example)[0] == "kctl"
    assert command.examples[0].startswith(command.name)


@pytest.mark.parametrize("command", TREE, ids=name_of)
def test_every_command_and_option_has_help(command: CommandHelp) -> None:
    assert command.summary.endswith(".")
    for parameter in command.parameters:
        assert parameter.text, f"{command.name}: {parameter.usage} has no help"


@pytest.mark.parametrize("command", TREE, ids=name_of)
def test_metavars_are_names_and_not_types(command: CommandHelp) -> None:
    assert not set("{}<>") & set(command.usage)
    for parameter in command.parameters:
        shown = parameter.names[0] if parameter.is_argument else parameter.value
        assert not re.search(r"\b(int|integer|str|text|float|range)\b", shown), parameter.usage
        assert "x>=" not in parameter.text


@pytest.mark.parametrize("command", TREE, ids=name_of)
def test_help_matches_the_command_tree_and_fits_80_columns(
    kctl: Kctl, command: CommandHelp
) -> None:
    shown = kctl(*command.path[1:], "--help").output
    assert shown.splitlines() == "\n".join(help_lines(command)).splitlines()
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("command", TREE, ids=name_of)
def test_man_page_names_every_option_and_example(command: CommandHelp) -> None:
    page = (ROOT / "man" / page_name(command)).read_text()
    for parameter in command.parameters:
        for name in parameter.names:
            assert escape(name) in page
    for example in command.examples:
        assert escape(example) in page


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
@pytest.mark.parametrize("command", TREE, ids=name_of)
def test_groff_formats_the_man_page_without_warnings(command: CommandHelp) -> None:
    page = ROOT / "man" / page_name(command)
    answer = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-K", "utf8", str(page)], capture_output=True, text=True
    )
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "interrupted" in answer.stdout


def test_hidden_commands_stay_out_of_sight(kctl: Kctl) -> None:
    hidden = [name for name, command in COMMANDS.items() if command.hidden]
    assert hidden
    assert not [name for name in hidden if name in kctl("--help").output]
