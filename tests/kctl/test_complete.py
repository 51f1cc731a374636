"""Names for shell completion: fast, cached, and silent on failure."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from kctl.admin.live_names import KEPT_S
from kctl.cli.options import Session
from kctl.commands.complete import take_cluster_from
from tests.docs.test_completions import SHELLS, completions
from tests.support.broker import RunningBroker
from tests.support.kctl import Kctl
from tests.support.processes import free_port


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "kctl"


def test_names_come_from_the_cluster_the_line_is_about(
    kctl: Kctl, shared_broker: RunningBroker
) -> None:
    servers = shared_broker.bootstrap_servers
    kctl("topics", "create", "tab-a", "tab-b", "-b", servers)
    for words in (["-b", servers, "topics"], ["topics", f"--bootstrap-server={servers}"]):
        shown = kctl("complete", "topics", "--", *words).output.split()
        assert {"tab-a", "tab-b"} <= set(shown)
    brokers = kctl("complete", "brokers", "-b", servers).output
    assert brokers == kctl("brokers", "list", "-b", servers, "-o", "name").output
    assert kctl("complete", "groups", "-b", servers).exit_code == 0


def test_names_are_kept_for_a_while(kctl: Kctl, shared_broker: RunningBroker, cache: Path) -> None:
    servers = shared_broker.bootstrap_servers
    before = kctl("complete", "topics", "-b", servers).output
    kctl("topics", "create", "later", "-b", servers)
    assert kctl("complete", "topics", "-b", servers).output == before
    for file in cache.iterdir():
        old = file.stat().st_mtime - KEPT_S - 1
        os.utime(file, (old, old))
    assert "later" in kctl("complete", "topics", "-b", servers).output.split()


def test_cluster_that_does_not_answer_is_met_with_silence(kctl: Kctl) -> None:
    result = kctl("complete", "topics", "-b", f"127.0.0.1:{free_port()}")
    assert (result.exit_code, result.output, result.stderr) == (0, "", "")
    assert kctl("complete", "topics").exit_code == 0


def test_completion_never_prompts_for_a_password(
    kctl: Kctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(what: str) -> str:
        raise AssertionError(what)

    monkeypatch.setattr("kctl.cli.security.secrets.ask_secret", asked)
    login = {"KCTL_SECURITY_PROTOCOL": "SASL_SSL", "KCTL_SASL_MECHANISM": "PLAIN"}
    result = kctl("complete", "topics", "-b", "h:1", env=login | {"KCTL_SASL_USERNAME": "alice"})
    assert (result.exit_code, result.output, result.stderr) == (0, "", "")


def test_contexts_are_offered_without_any_cluster(kctl: Kctl, tmp_path: Path) -> None:
    env = {"KCTL_CONFIG": str(tmp_path / "contexts.yaml")}
    kctl("context", "set", "prod", "-b", "h:1", env=env)
    assert kctl("complete", "contexts", env=env).output == "prod\n"


def test_unwritable_cache_is_not_an_error(
    kctl: Kctl, shared_broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    servers = shared_broker.bootstrap_servers
    assert kctl("complete", "brokers", "-b", servers).output


def test_option_at_the_end_of_the_line_has_no_value() -> None:
    session = Session()
    take_cluster_from(["topics", "list", "-b"], session)
    assert session.bootstrap_server == ""


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("line", ["kctl topics describe sh", "kctl offsets --topic sh"])
def test_shells_offer_the_names_of_topics(
    kctl: Kctl,
    shared_broker: RunningBroker,
    monkeypatch: pytest.MonkeyPatch,
    shell: str,
    line: str,
) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed: make test-tools")
    kctl("topics", "create", "shell-topic", "-b", shared_broker.bootstrap_servers)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("KCTL_BOOTSTRAP_SERVERS", shared_broker.bootstrap_servers)
    assert completions(shell, line) == {"shell-topic"}


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
@pytest.mark.parametrize("option", ["reassign run --drain", "elect-leaders --broker"])
def test_ids_of_brokers_are_offered_where_they_belong(
    kctl: Kctl, shared_broker: RunningBroker, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("KCTL_BOOTSTRAP_SERVERS", shared_broker.bootstrap_servers)
    listed = kctl("brokers", "list", "-b", shared_broker.bootstrap_servers, "-o", "name").output
    assert completions("bash", f"kctl {option} ") == set(listed.split())
