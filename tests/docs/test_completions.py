"""Shell completion: the same in bash, zsh and fish."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "completions"

BASH = """
    source {scripts}/kctl.bash
    COMP_WORDS=({words})
    COMP_CWORD={last}
    _kctl
    printf '%s\\n' "${{COMPREPLY[@]}}"
"""
# zsh's completion system needs a terminal; these functions replace it and print their arguments.
ZSH = """
    _describe() {{ print -rl -- ${{${{(P)argv[-1]}}%%:*}} }}
    _files() {{ }}
    compadd() {{ shift; print -rl -- "$@" }}
    words=({words})
    CURRENT=$#words
    PREFIX=$words[-1]
    source {scripts}/_kctl
"""
FISH = """
    source {scripts}/kctl.fish
    complete -C {line} | string replace -r '\\t.*' ''
"""
SHELLS = {"bash": [BASH], "zsh": [ZSH, "-f"], "fish": [FISH, "--no-config"]}


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if not shutil.which(name):
        pytest.skip(f"{name} is not installed: make test-tools")
    return name


def completions(shell: str, line: str, scripts: dict[str, list[str]] = SHELLS) -> set[str]:
    """What `shell` offers when Tab is pressed at the end of `line`."""
    words = line.split(" ")
    template, *flags = scripts[shell]
    script = template.format(
        scripts=SCRIPTS,
        words=" ".join(map(shlex.quote, words)),
        last=len(words) - 1,
        line=shlex.quote(line),
    )
    answer = subprocess.run([shell, *flags, "-c", script], capture_output=True, text=True)
    assert answer.stderr == ""
    # zsh is handed everything and picks what fits by itself.
    return {word for word in answer.stdout.split() if word.startswith(words[-1])}


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("kctl ", {"api-versions", "brokers", "cluster"}),
        ("kctl bro", {"brokers"}),
        ("kctl brokers ", {"list"}),
        ("kctl -b brokers:9092 brokers l", {"list"}),
        ("kctl brokers list -o ", {"json", "table", "name"}),
        ("kctl -o js", {"json", "jsonl"}),
        ("kctl cluster id --for", {"--format"}),
        ("kctl cluster id --format ", {"kafka"}),
    ],
)
def test_commands_options_and_choices_are_offered(shell: str, line: str, offered: set[str]) -> None:
    assert offered <= completions(shell, line)


def test_no_command_is_completed_in_place_of_a_value(shell: str) -> None:
    assert "list" not in completions(shell, "kctl brokers -b ")


def test_options_of_another_command_are_not_offered(shell: str) -> None:
    assert completions(shell, "kctl brokers list --for") == set()


BROKER_BASH = """
    source {scripts}/kctl-broker.bash
    COMP_WORDS=({words})
    COMP_CWORD={last}
    _kctl_broker
    printf '%s\\n' "${{COMPREPLY[@]}}"
"""
BROKER_ZSH = ZSH.replace("_kctl", "_kctl-broker").replace(
    "compadd() {{ shift;", "compadd() {{ while [[ $1 != -- ]]; do shift; done; shift;"
)
BROKER_FISH = FISH.replace("kctl.fish", "kctl-broker.fish")
BROKER_SHELLS = {
    "bash": [BROKER_BASH],
    "zsh": [BROKER_ZSH, "-f"],
    "fish": [BROKER_FISH, "--no-config"],
}


@pytest.mark.parametrize(
    ("line", "offered"),
    [("kctl-broker --ov", "--override"), ("kctl-broker --override log.dir", "log.dirs")],
)
def test_options_and_settings_of_the_broker_are_offered(
    shell: str, line: str, offered: str
) -> None:
    found = completions(shell, line, BROKER_SHELLS)
    assert offered in {word.rstrip("=") for word in found}
