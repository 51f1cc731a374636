"""Before something is changed: the plan, the question, and who need not be asked."""

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
import typer

from kctl.confirm import Plan, agreed
from kctl.docs.tree import walk_commands
from kctl.errors import CliError
from kctl.help import CommandHelp
from kctl.options import Session
from kctl.settings import Context, Contexts, config_path, write_contexts
from kctl.tables import Column

PLAN = Plan("Delete topic orders?", [{"topic": "orders"}], [Column("topic")], "topic")


@pytest.fixture(autouse=True)
def contexts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster each that is free, read-only, and protected."""
    monkeypatch.setenv("KCTL_CONFIG", str(tmp_path / "contexts.yaml"))
    named = {
        "free": Context("h:1"),
        "looking": Context("h:1", read_only=True),
        "prod": Context("h:1", protected=True),
    }
    write_contexts(config_path(), Contexts("free", named))


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody is there to be asked."""
    monkeypatch.setattr("kctl.confirm.can_ask", lambda: True)


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("typer.confirm", _confirm(text))
    monkeypatch.setattr("typer.prompt", lambda *_, **__: text)


def _confirm(text: str) -> object:
    def confirm(*_: object, abort: bool, err: bool) -> bool:
        assert err, "questions go to stderr"
        if text != "y" and abort:
            raise typer.Abort
        return text == "y"

    return confirm


def test_yes_goes_on_without_a_question() -> None:
    assert agreed(Session(), PLAN, yes=True, dry_run=False)


def test_no_terminal_and_no_yes_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CliError, match="nothing was changed") as caught:
        agreed(Session(), PLAN, yes=False, dry_run=False)
    assert caught.value.status == 1
    assert "--yes" in caught.value.hint
    assert capsys.readouterr() == ("", "TOPIC\norders\n")


def test_dry_run_prints_the_plan_as_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    assert not agreed(Session(context="looking"), PLAN, yes=True, dry_run=True)
    assert capsys.readouterr() == ("TOPIC\norders\n", "dry run: nothing was changed\n")


@pytest.mark.usefixtures("terminal")
def test_answer_on_a_terminal_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "y")
    assert agreed(Session(), PLAN, yes=False, dry_run=False)
    answer(monkeypatch, "n")
    with pytest.raises(typer.Abort):
        agreed(Session(), PLAN, yes=False, dry_run=False)


def test_read_only_context_refuses_even_with_yes() -> None:
    with pytest.raises(CliError, match="read-only"):
        agreed(Session(context="looking"), PLAN, yes=True, dry_run=False)


def test_protected_context_is_not_satisfied_with_yes() -> None:
    with pytest.raises(CliError, match="protected"):
        agreed(Session(context="prod"), PLAN, yes=True, dry_run=False)


@pytest.mark.usefixtures("terminal")
def test_protected_context_wants_its_name_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "prod")
    assert agreed(Session(context="prod"), PLAN, yes=True, dry_run=False)
    answer(monkeypatch, "y")
    with pytest.raises(typer.Abort):
        agreed(Session(context="prod"), PLAN, yes=True, dry_run=False)


def test_cluster_named_with_b_is_under_no_context_unless_it_is_named_too() -> None:
    plain = Session(bootstrap_server="h:1", said={"bootstrap_server"}, context="looking")
    assert agreed(plain, PLAN, yes=True, dry_run=False)
    named = Session(bootstrap_server="h:1", said={"bootstrap_server", "context"}, context="looking")
    with pytest.raises(CliError, match="read-only"):
        agreed(named, PLAN, yes=True, dry_run=False)


ASKING = """
from kctl.confirm import agreed, Plan
from kctl.options import Session
from kctl.tables import Column
import typer
plan = Plan("Delete topic orders?", [{"topic": "orders"}], [Column("topic")], "topic")
try:
    typer.echo(agreed(Session(bootstrap_server="h:1"), plan, yes=False, dry_run=False))
except typer.Abort:
    typer.echo("aborted")
"""


def on_a_terminal(keys: bytes, env: Mapping[str, str]) -> tuple[str, str]:
    """What the user sees and what goes to stdout when these keys are pressed."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", ASKING]
    process = subprocess.Popen(
        command, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, env={**os.environ, **env}
    )
    os.close(theirs)
    seen = b""
    deadline = time.monotonic() + 30
    while b"[y/N]" not in seen and time.monotonic() < deadline:
        if select.select([ours], [], [], 1)[0]:
            seen += os.read(ours, 1024)
    os.write(ours, keys)
    output, _ = process.communicate(timeout=30)
    os.close(ours)
    return seen.decode(), output.decode()


@pytest.mark.parametrize(("keys", "outcome"), [(b"y\n", "True"), (b"\n", "aborted")])
def test_real_terminal_shows_plan_and_question_and_takes_the_answer(
    keys: bytes, outcome: str
) -> None:
    seen, output = on_a_terminal(keys, {"TERM": "dumb"})
    assert seen.splitlines()[:2] == ["TOPIC", "orders"]
    assert "Delete topic orders? [y/N]" in seen
    assert output.strip() == outcome


def _option(command: CommandHelp, name: str) -> bool:
    return any(name in parameter.names for parameter in command.parameters)


@pytest.mark.parametrize(
    "command",
    [command for command in walk_commands() if _option(command, "--yes")],
    ids=lambda command: command.name,
)
def test_every_command_that_asks_can_be_tried_without_changing_anything(
    command: CommandHelp,
) -> None:
    assert _option(command, "--dry-run")
