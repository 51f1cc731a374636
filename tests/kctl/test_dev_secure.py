"""`kctl dev up --secure`: logins, ACLs and restarts of a cluster; a single broker is tested by
the commands of docs/security.md (tests/docs/test_security_page.py)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kctl import KctlResult, run_kctl


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """Where the brokers of a test live; whatever it leaves running is stopped."""
    state = tmp_path / "state"
    yield state
    run_kctl("dev", "down", "--dir", str(state))


@pytest.mark.zk
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_secure_cluster_admits_whom_it_knows_and_survives_a_restart(
    directory: Path, tmp_path: Path, zookeeper: str
) -> None:
    env = {"KCTL_CONFIG": str(tmp_path / "contexts.yaml"), "PASSWORD": "canary-password"}

    def kctl(*words: str) -> KctlResult:
        return run_kctl(*words, env=env)

    up = ("dev", "up", "--brokers", "2", "--zookeeper", zookeeper, "--port", "0")
    started = kctl(*up, "--secure", "--dir", str(directory))
    assert started.exit_code == 0, started.stderr
    # The first context is the current one.
    created = kctl("topics", "create", "orders", "--replication-factor", "2")
    assert created.exit_code == 0, created.stderr
    assert kctl("users", "set", "alice", "--password-env", "PASSWORD").exit_code == 0
    config = (directory / "security" / "client.properties").read_text()
    own = tmp_path / "alice.properties"

    def as_alice(password: str, *words: str) -> KctlResult:
        """On each broker: ACLs and users reach all of them, a moment later on some."""
        login = f'username="alice" password="{password}"'
        lines = [
            f"{line.split(' required')[0]} required {login};" if "jaas" in line else line
            for line in config.splitlines()
        ]
        own.write_text("\n".join(lines))
        servers = started.output.strip().split(",")
        results = [
            kctl(*words, "-b", server, "--command-config", str(own), "-o", "json")
            for server in servers
        ]
        return next((one for one in results if one.exit_code), results[-1])

    assert "refused the login" in as_alice("wrong", "topics", "list").stderr
    for _ in range(100):
        listed = as_alice("canary-password", "topics", "list")
        if listed.exit_code == 0:
            break
    assert listed.exit_code == 0, listed.stderr
    assert listed.json == []
    assert kctl("acls", "add", "topic:orders", "--allow", "alice").exit_code == 0
    for _ in range(100):
        listed = as_alice("canary-password", "topics", "list")
        if listed.json:
            break
    assert [row["topic"] for row in listed.json] == ["orders"]

    assert kctl("dev", "down", "--dir", str(directory)).exit_code == 0
    insecure = kctl(*up, "--dir", str(directory))
    assert insecure.exit_code == 1 and "kctl dev up --secure starts it" in insecure.stderr
    again = kctl(*up, "--secure", "--dir", str(directory))
    assert again.exit_code == 0, again.stderr
    assert [row["principal"] for row in kctl("acls", "list", "-o", "json").json] == ["User:alice"]
    logs = "".join(path.read_text() for path in directory.glob("*/broker.log"))
    assert "canary-password" not in logs


def test_data_without_security_is_not_secured_silently(directory: Path) -> None:
    plain = ("dev", "up", "--port", "0", "--dir", str(directory))
    assert run_kctl(*plain).exit_code == 0
    assert run_kctl("dev", "down", "--dir", str(directory)).exit_code == 0
    refused = run_kctl(*plain, "--secure")
    assert refused.exit_code == 1
    assert "the data belongs to a cluster without security" in refused.stderr
    assert not (directory / "security").exists()
