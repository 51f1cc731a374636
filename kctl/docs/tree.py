"""The whole command tree as help records, with every lazy command loaded."""

from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from kctl.app import app
from kctl.cli.command_tree import LazyGroup
from kctl.cli.help import CommandHelp, read_help
from kctl.cli.options import Session


def walk_commands() -> Iterator[CommandHelp]:
    """`kctl`, then every command and group below it, parents before children."""
    root = get_command(app)
    return _walk(root, _context(root, "kctl", None))


def _walk(command: Any, ctx: typer.Context) -> Iterator[CommandHelp]:
    yield read_help(command, ctx)
    if not isinstance(command, TyperGroup):
        return
    for name, child in command.commands.items():
        if not child.hidden:
            real = command.load(name) if isinstance(command, LazyGroup) else child
            yield from _walk(real, _context(real, name, ctx))


def _context(command: Any, name: str, parent: typer.Context | None) -> typer.Context:
    settings = {} if parent else command.context_settings
    return typer.Context(command, info_name=name, parent=parent, obj=Session(), **settings)
