"""Confirmation of changes: plan, prompt, --yes and --dry-run."""

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest
import typer

from kctl.cli.confirmation import Plan, confirm_plan
from kctl.cli.contexts import Context, Contexts, config_path, write_contexts
from kctl.cli.errors import CliError
from kctl.cli.help import CommandHelp
from kctl.cli.options import Session
from kctl.cli.output import OutputFormat
from kctl.cli.tables import Column
from kctl.docs.tree import walk_commands

PLAN = Plan("Delete topic orders?", [{"topic": "orders"}], [Column("topic")], "topic", [])


@pytest.fixture(autouse=True)
def contexts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster each that is free, read-only, and protected."""
    monkeypatch.setenv("KCTL_CONFIG", str(tmp_path / "contexts.yaml"))
    named = {
        "free": Context("h:1"),
        "looking": Context("h:2", read_only=True),
        "prod": Context("h:3,h:4", protected=True),
    }
    write_contexts(config_path(), Contexts("free", named))


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody is there to be asked."""
    monkeypatch.setattr("kctl.cli.confirmation.can_ask", lambda: True)


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    def prompt(*_: object, err: bool, **__: object) -> str:
        assert err, "questions go to stderr"
        return text

    monkeypatch.setattr("typer.prompt", prompt)


def test_yes_goes_on_without_a_question() -> None:
    assert confirm_plan(Session(), PLAN, yes=True, dry_run=False)


def test_without_terminal_and_yes_nothing_changes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CliError, match="nothing was changed") as caught:
        confirm_plan(Session(), PLAN, yes=False, dry_run=False)
    assert caught.value.status == 1
    assert "--yes" in caught.value.hint
    assert capsys.readouterr() == ("", "TOPIC\norders\n")


def test_dry_run_prints_the_plan_as_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    assert not confirm_plan(Session(context="looking"), PLAN, yes=True, dry_run=True)
    assert capsys.readouterr() == ("TOPIC\norders\n", "dry run: nothing was changed\n")


@pytest.mark.usefixtures("terminal")
def test_answer_on_a_terminal_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "y")
    assert confirm_plan(Session(), PLAN, yes=False, dry_run=False)
    for text in ("n", "", "maybe"):
        answer(monkeypatch, text)
        with pytest.raises(typer.Abort):
            confirm_plan(Session(), PLAN, yes=False, dry_run=False)


def test_read_only_context_refuses_even_with_yes() -> None:
    with pytest.raises(CliError, match="read-only"):
        confirm_plan(Session(context="looking"), PLAN, yes=True, dry_run=False)


def test_protected_context_is_not_satisfied_with_yes() -> None:
    with pytest.raises(CliError, match="protected"):
        confirm_plan(Session(context="prod"), PLAN, yes=True, dry_run=False)


@pytest.mark.usefixtures("terminal")
def test_protected_context_requires_typing_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "prod")
    assert confirm_plan(Session(context="prod"), PLAN, yes=True, dry_run=False)
    answer(monkeypatch, "y")
    with pytest.raises(typer.Abort):
        confirm_plan(Session(context="prod"), PLAN, yes=True, dry_run=False)


@pytest.mark.parametrize(("address", "words"), [("h:2", "read-only"), ("x:1,H:4", "protected")])
def test_address_of_a_restricted_context_is_restricted_too(address: str, words: str) -> None:
    session = Session(bootstrap_server=address, given={"bootstrap_server"})
    with pytest.raises(CliError, match=words):
        confirm_plan(session, PLAN, yes=True, dry_run=False)


def test_script_confirms_with_the_name_of_the_context() -> None:
    for name in ("prod", "free"):
        session = Session(context=name, given={"context"}, confirm=name)
        assert confirm_plan(session, PLAN, yes=False, dry_run=False)
    session = Session(bootstrap_server="h:3", given={"bootstrap_server"}, confirm="prod")
    assert confirm_plan(session, PLAN, yes=False, dry_run=False)


@pytest.mark.parametrize(
    "session",
    [
        Session(context="free", given={"context"}, confirm="prod"),
        Session(context="prod", given={"context"}, confirm="free"),
        Session(bootstrap_server="h:9", given={"bootstrap_server"}, confirm="prod"),
    ],
)
def test_confirmation_of_another_context_is_refused(session: Session) -> None:
    with pytest.raises(CliError, match="does not name the context of this cluster"):
        confirm_plan(session, PLAN, yes=True, dry_run=False)


def test_bootstrap_option_disables_the_context_unless_it_is_given_too() -> None:
    plain = Session(bootstrap_server="h:1", given={"bootstrap_server"}, context="looking")
    assert confirm_plan(plain, PLAN, yes=True, dry_run=False)
    named = Session(
        bootstrap_server="h:1", given={"bootstrap_server", "context"}, context="looking"
    )
    with pytest.raises(CliError, match="read-only"):
        confirm_plan(named, PLAN, yes=True, dry_run=False)


ASKING = """
from kctl.cli.confirmation import confirm_plan, Plan
from kctl.cli.options import Session
from kctl.cli.output import OutputFormat
from kctl.cli.tables import Column
import typer
plan = Plan("Delete topic orders?", [{"topic": "orders"}], [Column("topic")], "topic", [])
try:
    typer.echo(confirm_plan(Session(bootstrap_server="h:1"), plan, yes=False, dry_run=False))
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
    with suppress(OSError):  # nothing more was written
        seen += os.read(ours, 1024)
    os.close(ours)
    return seen.decode(), output.decode()


@pytest.mark.parametrize(
    ("keys", "outcome"), [(b"y\n", "True"), (b"\n", "aborted"), (b"maybe\n", "aborted")]
)
def test_real_terminal_shows_plan_and_question_and_takes_the_answer(
    keys: bytes, outcome: str
) -> None:
    seen, output = on_a_terminal(keys, {"TERM": "dumb"})
    assert seen.splitlines()[:2] == ["TOPIC", "orders"]
    assert "Delete topic orders? [y/N]" in seen
    assert output.strip() == outcome


def test_interrupted_question_ends_its_line() -> None:
    seen, output = on_a_terminal(b"\x04", {"TERM": "dumb"})  # as after Ctrl-C, nothing was entered
    assert output.strip() == "aborted"
    assert seen.endswith("\n")


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


@pytest.mark.parametrize(
    ("output", "is_shown"), [("table", False), ("json", False), ("wide", True)]
)
def test_regression_preview_has_wide_columns_with_wide_output_only(
    output: str, is_shown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    session = Session(context="free", output=OutputFormat(output))
    columns = [Column("topic"), Column("id", wide=True)]
    plan = Plan("Delete?", [{"topic": "orders", "id": "x1"}], columns, "topic", [])
    with pytest.raises(CliError):
        confirm_plan(session, plan, yes=False, dry_run=False)
    assert ("ID" in capsys.readouterr().err) == is_shown
