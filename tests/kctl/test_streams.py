"""Closed and full streams, homes that cannot be written, names that are not UTF-8, huge numbers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.broker import RunningBroker
from tests.support.kctl import Kctl, run_kctl

KCTL = [sys.executable, "-m", "kctl"]
NAME = b"\xff\xfe"
"""Not UTF-8."""


def shell(line: str, *args: str | bytes, **env: str) -> subprocess.CompletedProcess[bytes]:
    """Run `line`, in which "$@" is kctl with `args`."""
    return subprocess.run(
        ["/bin/sh", "-c", line, "sh", *KCTL, *args],
        capture_output=True,
        timeout=60,
        env=os.environ | {"KCTL_CONFIG": os.devnull} | env,
    )


@pytest.fixture(scope="module")
def servers(shared_broker: RunningBroker) -> str:
    """A broker with a topic of a few records."""
    servers = shared_broker.bootstrap_servers
    assert run_kctl("topics", "create", "orders", "-p", "1", "-b", servers).exit_code == 0
    assert run_kctl("produce", "orders", "-b", servers, stdin="a\nb\n").exit_code == 0
    return servers


@pytest.mark.parametrize(
    "args", [("topics", "list"), ("topics", "list", "-o", "json"), ("consume", "orders", "-e")]
)
def test_full_disk_is_named(servers: str, args: tuple[str, ...]) -> None:
    result = shell('"$@" > /dev/full', *args, "-b", servers)
    assert result.returncode == 1
    assert b"cannot write the output: No space left on device" in result.stderr
    assert result.stderr.count(b"\n") <= 2  # and nothing from Python's own flush at exit


def test_closed_stdout_is_refused_before_anything_is_changed(servers: str) -> None:
    result = shell('"$@" >&-', "topics", "create", "unseen", "-b", servers)
    assert (result.returncode, result.stderr.splitlines()[0]) == (
        1,
        b"error: stdout is closed: nothing was done",
    )
    assert "unseen" not in run_kctl("topics", "list", "-b", servers).output


def test_closed_stderr_and_stdin_do_not_matter(servers: str) -> None:
    result = shell('"$@" 2>&- <&-', "topics", "list", "-o", "name", "-b", servers)
    assert (result.returncode, b"orders\n" in result.stdout) == (0, True)


def test_home_that_cannot_be_written_is_named() -> None:
    line = 'unset KCTL_CONFIG; "$@"'
    result = shell(line, "context", "set", "x", "-b", "127.0.0.1:1", XDG_CONFIG_HOME="/proc")
    assert result.returncode == 1
    assert b"cannot use /proc/kctl" in result.stderr


@pytest.mark.parametrize(
    "args",
    [
        ("topics", "describe", NAME),
        ("topics", "create", NAME),
        ("groups", "describe", NAME),
        ("configs", "describe", b"topic:" + NAME),
        ("produce", NAME),
        ("consume", NAME, "-e"),
        ("perf", "produce", NAME, "-n", "1"),
    ],
)
def test_name_that_is_not_utf8_is_a_usage_error(
    servers: str, args: tuple[str | bytes, ...]
) -> None:
    result = shell('echo x | "$@"', *args, "-b", servers)
    assert result.returncode in (1, 2)
    assert b"internal error" not in result.stderr
    assert b"UTF-8" in result.stderr or b"no such" in result.stderr


def test_file_whose_name_is_not_utf8_is_shown(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/\xff-0"
    Path(os.fsdecode(name)).mkdir()
    result = shell('"$@"', "dump-log", "check", name)
    assert b"internal error" not in result.stderr + result.stdout


@pytest.mark.parametrize(
    "args",
    [
        ("topics", "create", "wide", "-p", "99999999999"),
        ("topics", "alter", "orders", "-p", "99999999999", "--yes"),
        ("groups", "reset-offsets", "g", "--topic", "orders", "--by-duration", "9" * 30 + "d"),
        ("groups", "reset-offsets", "g", "--topic", "orders", "--to-datetime", "9" * 30),
        ("offsets", "orders", "--time", "9" * 30),
        ("consume", "orders", "-e", "--from", "@" + "9" * 30),
        ("consume", "orders", "-e", "--from", "9" * 30),
        ("produce", "orders", "--timestamp", "9" * 30),
        ("produce", "orders", "-p", "99999999999"),
        ("delete-records", "orders:0", "--offset", "9" * 30, "--yes"),
        ("transactions", "list", "--producer-id", "9" * 30),
        ("perf", "produce", "orders", "-n", "1", "-s", "99999999999"),
    ],
    ids=" ".join,
)
def test_number_out_of_range_is_a_usage_error(
    kctl: Kctl, servers: str, args: tuple[str, ...]
) -> None:
    result = kctl(*args, "-b", servers, stdin="x\n")
    assert result.exit_code == 2, result.stderr
    assert "internal error" not in result.stderr


def test_timestamp_of_a_record_out_of_range_names_its_line(kctl: Kctl, servers: str) -> None:
    line = '{"value": "x", "timestamp": 99999999999999999999999}\n'
    result = kctl("produce", "orders", "--input", "json", "-b", servers, stdin=line)
    assert (result.exit_code, "internal error" in result.stderr) == (1, False), result.stderr


def test_record_larger_than_the_clients_limit_says_which_setting(kctl: Kctl, servers: str) -> None:
    result = kctl("perf", "produce", "orders", "-n", "1", "-s", "2000000", "-b", servers)
    assert result.exit_code == 1
    assert "MSG_SIZE_TOO_LARGE" in result.stderr
    assert "-X message.max.bytes=N" in result.stderr


@pytest.mark.parametrize(
    "args",
    [
        ("brokers", "list", "--command-config", "/dev/zero"),
        ("reassign", "verify", "/dev/zero"),
        ("delete-records", "--file", "/dev/zero", "--yes"),
        ("groups", "reset-offsets", "g", "--from-file", "/dev/zero"),
    ],
    ids=" ".join,
)
def test_file_without_an_end_is_refused(kctl: Kctl, servers: str, args: tuple[str, ...]) -> None:
    result = kctl(*args, "-b", servers)
    assert result.exit_code in (1, 2)
    assert "cannot read /dev/zero: File too large" in result.stderr
