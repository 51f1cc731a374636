"""`kctl dev`: a broker that lives from one command to the next."""

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


def test_broker_goes_up_is_killed_comes_back_and_goes_down(kctl: Kctl, directory: str) -> None:
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


def test_second_up_says_that_the_broker_is_running(kctl: Kctl, directory: str) -> None:
    assert kctl("dev", "up", "--port", "0", "--dir", directory).exit_code == 0
    again = kctl("dev", "up", "--port", "0", "--dir", directory)
    assert again.exit_code == 1
    assert "running already" in again.stderr


@pytest.mark.parametrize("words", [("start", "7"), ("kill", "7"), ("stop", "7"), ("logs", "7")])
def test_broker_that_was_never_made_is_named(
    kctl: Kctl, directory: str, words: tuple[str, ...]
) -> None:
    result = kctl("dev", *words, "--dir", directory)
    assert result.exit_code == 1
    assert "there is no broker 7" in result.stderr


def test_setting_the_broker_refuses_is_shown_in_its_own_words(kctl: Kctl, directory: str) -> None:
    result = kctl("dev", "up", "--port", "0", "--set", "num.partitions=none", "--dir", directory)
    assert result.exit_code == 1
    assert "num.partitions" in result.stderr
