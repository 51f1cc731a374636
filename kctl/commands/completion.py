"""`kctl completion`: print the completion script of a shell."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kctl.cli.command_tree import command, lone_command
from kctl.cli.errors import CliError
from kctl.cli.options import session_of

app = lone_command()


class Shell(StrEnum):
    """Shells with a completion script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_FILES = {Shell.BASH: "kctl.bash", Shell.ZSH: "_kctl", Shell.FISH: "kctl.fish"}


@command(
    app,
    "completion",
    examples=[
        "kctl completion bash > ~/.local/share/bash-completion/completions/kctl",
        "kctl completion fish > ~/.config/fish/completions/kctl.fish",
    ],
)
def completion(
    ctx: typer.Context,
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print the completion script of a shell.

    Topics, groups and other names are completed from the cluster.
    """
    session_of(ctx).out.text(_script(shell).read_text(encoding="utf-8"))


def _script(shell: Shell) -> Path:
    """The script of the installation, or of the source tree; CliError if there is neither."""
    source_tree = Path(__file__).parents[2]
    places = [source_tree / "completions", Path(sys.prefix) / "share" / "kctl" / "completions"]
    for place in places:
        if (path := place / _FILES[shell]).is_file():
            return path
    raise CliError(f"there is no completion script in {places[1]}", "install kctl again")
