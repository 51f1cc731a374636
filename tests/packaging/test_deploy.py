"""The files of docs/deploy: the Dockerfile follows the usual rules, the unit is hardened.

An image cannot be built in the tests; this is what can be checked without a daemon.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "docs" / "deploy"
UNIT = DEPLOY / "kctl-broker.service"

INSTRUCTIONS = frozenset(
    [
        "ARG",
        "CMD",
        "COPY",
        "ENTRYPOINT",
        "ENV",
        "EXPOSE",
        "FROM",
        "HEALTHCHECK",
        "LABEL",
        "RUN",
        "STOPSIGNAL",
        "USER",
        "VOLUME",
        "WORKDIR",
    ]
)


def instructions() -> list[tuple[str, str]]:
    """(instruction, arguments) in order, continued lines joined."""
    text = (DEPLOY / "Dockerfile").read_text()
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    found = [line.split(" ", 1) for line in lines if line.strip()]
    return [(name, arguments) for name, arguments in found]


def test_dockerfile_has_only_known_instructions_and_existing_sources() -> None:
    found = instructions()
    assert {name for name, _ in found} <= INSTRUCTIONS
    sources = [
        word
        for name, arguments in found
        if name == "COPY" and "--from=" not in arguments
        for word in arguments.split()[:-1]
    ]
    assert sources
    for source in sources:
        assert (ROOT / source).exists(), source


def test_dockerfile_copies_everything_that_the_package_is_built_from() -> None:
    copied = " ".join(arguments for name, arguments in instructions() if name == "COPY")
    for needed in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "broker", "kctl", "man"):
        assert needed in copied.split(), needed
    assert "completions" in copied.split()


def test_image_runs_unprivileged_with_pinned_bases_and_exec_forms() -> None:
    found = instructions()
    assert [arguments for name, arguments in found if name == "USER"] == ["kctl"]
    for name, arguments in found:
        if name == "FROM":
            assert re.match(r"[\w/.-]+:[\w.-]+", arguments) and ":latest" not in arguments
        if name in ("CMD", "ENTRYPOINT"):
            assert arguments.startswith("["), "a shell would not pass on SIGTERM"
        if name == "RUN" and "apt-get install" in arguments:
            assert "--no-install-recommends" in arguments
            assert "rm -rf /var/lib/apt/lists/*" in arguments


def test_unit_is_hardened_and_starts_the_installed_program() -> None:
    lines = [line for line in UNIT.read_text().splitlines() if line and not line.startswith("#")]
    settings = {line.partition("=")[0]: line.partition("=")[2] for line in lines if "=" in line}
    assert settings["ExecStart"].split()[0].endswith("/bin/kctl-broker")
    assert settings["User"] == "kctl"
    for name in ("NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectHome"):
        assert settings[name] == "yes", name
    assert settings["ProtectSystem"] == "strict"
    assert settings["CapabilityBoundingSet"] == ""


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_systemd_accepts_the_unit() -> None:
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(UNIT)], capture_output=True, text=True
    )
    problems = [
        line for line in done.stderr.splitlines() if UNIT.name in line and "Command" not in line
    ]
    assert not problems
