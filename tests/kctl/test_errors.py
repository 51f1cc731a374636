"""Errors: one message, a hint, a documented exit status, no traceback."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner, Result

from tests.support.kctl import CLEAN_ENVIRONMENT, Kctl
from tests.support.probe import probe_app


def probe(*args: str) -> Result:
    return CliRunner(env=CLEAN_ENVIRONMENT).invoke(probe_app, ["probe", "fail", *args])


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ("known", 1),
        ("slow", 4),
        ("bug", 1),
        ("interrupt", 130),
        ("stumble", 130),
        ("abort", 1),
        ("found", 3),
    ],
)
def test_each_kind_of_failure_has_its_exit_status(how: str, status: int) -> None:
    assert probe(how).exit_code == status


def test_expected_failure_is_one_line_and_a_hint() -> None:
    assert probe("known").stderr.splitlines() == [
        "error: the topic is gone",
        " hint: create it with kctl topics create",
    ]


def test_failure_goes_to_stderr_and_leaves_stdout_to_data() -> None:
    assert probe("known").stdout == ""


def test_error_is_an_object_with_json_output() -> None:
    assert json.loads(probe("known", "-o", "json").stderr) == {
        "error": "the topic is gone",
        "hint": "create it with kctl topics create",
        "status": 1,
    }


def test_mistake_of_ours_is_named_without_a_traceback() -> None:
    stderr = probe("bug").stderr
    assert "KeyError: 'surprise'" in stderr
    assert "Traceback" not in stderr


def test_verbose_shows_where_the_failure_came_from() -> None:
    assert "Traceback" in probe("bug", "-v").stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["brkers"], "Did you mean 'brokers'?"),
        (["brokers", "list", "--nonsense"], "--nonsense"),
        (["brokers", "list", "-o", "xml"], "'xml' is not one of"),
        (["brokers", "list", "surplus"], "surplus"),
    ],
)
def test_wrong_command_line_is_status_2_and_points_to_help(
    kctl: Kctl, args: list[str], words: str
) -> None:
    result = kctl(*args)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "--help" in result.stderr
    assert len(result.stderr.splitlines()) == 2


def test_closed_pipe_prints_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "kctl", "--help"]
    answer = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (answer.returncode, answer.stderr) == (1, "")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["topics", "create", "t", "-p", "abc"], "'abc' is not a number."),
        (["topics", "create", "t", "-p", "0"], "0 is less than 1."),
        (["topics", "create", "t", "--replication-factor", "99999"], "in the range 1 to 32767."),
        (["brokers", "list", "--timeout", "-1"], "--timeout -1: must be greater than 0"),
        (["brokers", "list", "--timeout", "nan"], "nan is not a number"),
    ],
)
def test_usage_errors_name_no_types_of_python(kctl: Kctl, args: list[str], words: str) -> None:
    result = kctl(*args, "-b", "localhost:1")
    assert (result.exit_code, words in result.stderr) == (2, True), result.stderr
