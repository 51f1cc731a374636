"""`kctl dev`: a broker that outlives the command."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kctl import Kctl


@pytest.fixture
def directory(tmp_path: Path, kctl: Kctl) -> Iterator[str]:
    """Where the brokers of a test live; whatever it leaves running is stopped."""
    state = str(tmp_path / "state")
    yield state
    kctl("dev", "down", "--dir", state)


def test_broker_is_started_killed_restarted_and_stopped(kctl: Kctl, directory: str) -> None:
    up = kctl("dev", "up", "--port", "0", "--dir", directory)
    assert up.exit_code == 0, up.stderr
    assert kctl("brokers", "list", "-b", up.output.strip(), "-o", "name").output == "1\n"
    assert kctl("dev", "kill", "1", "--dir", directory).exit_code == 0
    (killed,) = kctl("dev", "status", "--dir", directory, "-o", "json").json
    assert killed["status"] == "stopped"
    restarted = kctl("dev", "start", "1", "--dir", directory)
    assert kctl("brokers", "list", "-b", restarted.output.strip()).exit_code == 0
    assert "started broker.id=1" in kctl("dev", "logs", "--dir", directory).output
    assert kctl("dev", "stop", "1", "--dir", directory).exit_code == 0
    assert kctl("dev", "down", "--delete-data", "--dir", directory).exit_code == 0
    assert kctl("dev", "status", "--dir", directory, "-o", "json").json == []


def test_paused_broker_answers_after_resume_and_can_be_stopped(kctl: Kctl, directory: str) -> None:
    servers = kctl("dev", "up", "--port", "0", "--dir", directory).output.strip()
    assert kctl("dev", "pause", "1", "--dir", directory).exit_code == 0
    assert kctl("brokers", "list", "-b", servers, "--timeout", "0.5").exit_code == 4
    assert kctl("dev", "resume", "1", "--dir", directory).exit_code == 0
    assert kctl("brokers", "list", "-b", servers).exit_code == 0
    assert kctl("dev", "pause", "1", "--dir", directory).exit_code == 0
    assert kctl("dev", "stop", "1", "--dir", directory).exit_code == 0
    assert kctl("dev", "resume", "1", "--dir", directory).exit_code == 1


def test_regression_relative_path_finds_the_running_broker(
    kctl: Kctl, directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    up = kctl("dev", "up", "--port", "0", "--dir", directory)
    assert up.exit_code == 0, up.stderr
    monkeypatch.chdir(Path(directory).parent)
    (running,) = kctl("dev", "status", "--dir", "state", "-o", "json").json
    assert (running["status"], running["address"]) == ("running", up.output.strip())
    state = kctl("metrics", running["admin"], "*brokerstate", "-o", "json")
    assert [row["value"] for row in state.json] == [3]
    down = kctl("dev", "down", "--dir", "state", "--delete-data")
    assert down.exit_code == 0, down.stderr
    host, _, port = running["address"].partition(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), 5)


def test_regression_broker_started_with_a_relative_path_is_found_from_elsewhere(
    kctl: Kctl, directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(directory).parent)
    assert kctl("dev", "up", "--port", "0", "--dir", "state").exit_code == 0
    monkeypatch.chdir("/")
    (running,) = kctl("dev", "status", "--dir", directory, "-o", "json").json
    assert running["status"] == "running"
    assert kctl("dev", "stop", "1", "--dir", directory).exit_code == 0
    assert kctl("dev", "start", "1", "--dir", directory).exit_code == 0
    assert (Path(directory) / "broker-1" / "data" / "meta.properties").exists()


def test_regression_data_of_a_running_broker_is_never_deleted(kctl: Kctl, directory: str) -> None:
    up = kctl("dev", "up", "--port", "0", "--dir", directory)
    assert up.exit_code == 0, up.stderr
    pid_file = Path(directory) / "broker-1" / "broker.pid"
    pid = pid_file.read_text()
    pid_file.unlink()
    down = kctl("dev", "down", "--dir", directory, "--delete-data")
    assert down.exit_code == 1
    assert "broker 1 is running" in down.stderr
    assert (pid_file.parent / "data" / "meta.properties").exists()
    pid_file.write_text(pid)


def test_regression_start_keeps_the_log_of_earlier_runs(kctl: Kctl, directory: str) -> None:
    first = kctl("dev", "up", "--port", "0", "--dir", directory)
    kctl("dev", "stop", "1", "--dir", directory)
    second = kctl("dev", "start", "1", "--dir", directory)
    assert second.exit_code == 0, second.stderr
    log = kctl("dev", "logs", "--dir", directory).output
    assert log.count("started broker.id=1") == 2
    assert first.output.strip() in log
    (running,) = kctl("dev", "status", "--dir", directory, "-o", "json").json
    assert running["address"] == second.output.strip()


def test_second_up_is_refused_while_the_broker_is_running(kctl: Kctl, directory: str) -> None:
    assert kctl("dev", "up", "--port", "0", "--dir", directory).exit_code == 0
    again = kctl("dev", "up", "--port", "0", "--dir", directory)
    assert again.exit_code == 1
    assert "already running" in again.stderr


@pytest.mark.parametrize("verb", ["start", "kill", "pause", "stop", "logs"])
def test_unknown_broker_is_an_error(kctl: Kctl, directory: str, verb: str) -> None:
    result = kctl("dev", verb, "7", "--dir", directory)
    assert result.exit_code == 1
    assert "there is no broker 7" in result.stderr


def test_invalid_broker_config_shows_the_error_of_the_broker(kctl: Kctl, directory: str) -> None:
    result = kctl("dev", "up", "--port", "0", "--set", "num.partitions=none", "--dir", directory)
    assert result.exit_code == 1
    assert "num.partitions" in result.stderr
