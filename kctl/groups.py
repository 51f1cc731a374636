"""Kinds of Typer groups and commands that kctl is built from.

Typer carries its own copy of Click and keeps it private, so the contexts that these methods are
handed are typed `Any`; `typer.core` and `typer.main.get_command` are the public doors.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from kctl.help import format_examples, help_lines, read_help
from kctl.options import gather, shared_parameters

Function = TypeVar("Function", bound=Callable[..., Any])


class KctlCommand(TyperCommand):
    """A command that accepts the shared options."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *shared_parameters()]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, then hand the shared options to the session."""
        rest = super().parse_args(ctx, args)
        gather(ctx)
        return rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write kctl's own help layout."""
        formatter.write("\n".join(help_lines(read_help(self, ctx))))


class KctlGroup(TyperGroup):
    """A noun with verbs; accepts the shared options, and without a verb shows its help."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *shared_parameters()]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, then hand the shared options to the session."""
        if not args and not self.invoke_without_command:
            args = ["--help"]
        rest = super().parse_args(ctx, args)
        gather(ctx)
        return rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write kctl's own help layout."""
        formatter.write("\n".join(help_lines(read_help(self, ctx))))


class DefaultVerbGroup(KctlGroup):
    """A group in which a command line that begins with no verb is for the default one."""

    default_verb: ClassVar[str] = "show"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the verb in where it was left out."""
        if args and args[0] not in ("-h", "--help") and not self._begins_with_verb(args):
            args = [self.default_verb, *args]
        return super().parse_args(ctx, args)

    def _begins_with_verb(self, args: list[str]) -> bool:
        """Whether a verb is the first word after options that may stand anywhere."""
        words = iter(args)
        takes_value = {
            name: not option.count for option in shared_parameters() for name in option.opts
        }
        for word in words:
            name = word.partition("=")[0]
            if name not in takes_value:
                return word in self.commands
            if takes_value[name] and "=" not in word:
                next(words, None)
        return False


@dataclass(frozen=True)
class LazyCommand:
    """Where a command's `app` lives, and what `kctl --help` says about it without importing it."""

    module: str
    summary: str
    section: str = ""
    """The heading under which help lists it."""
    hidden: bool = False


class LazyGroup(KctlGroup):
    """A group whose commands are imported when they are used.

    Until then a stand-in with the command's name and summary takes its place: enough for help,
    for completion and for "did you mean". `resolve_command` is the one way Typer goes when it is
    about to run a command or to complete its options, so that is where the real one is loaded.
    """

    lazy_commands: ClassVar[Mapping[str, LazyCommand]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, lazy in self.lazy_commands.items():
            self.add_command(
                TyperCommand(name, help=lazy.summary, hidden=lazy.hidden, callback=None)
            )

    def load(self, name: str) -> Any:
        """The real command called `name`."""
        command = get_command(import_module(self.lazy_commands[name].module).app)
        command.name = name
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Find the command that `args` begin with, importing it."""
        name, command, rest = super().resolve_command(ctx, args)
        if name and name in self.lazy_commands:
            command = self.load(name)
        return name, command, rest


def noun(help_text: str) -> typer.Typer:
    """A new group of verbs, such as `kctl brokers`.

    A noun that does something without a verb (`kctl cluster`) registers a callback of its own
    with `invoke_without_command=True`.
    """
    # The callback does nothing; without one Typer would make an app with a single verb a
    # plain command.
    return typer.Typer(cls=KctlGroup, help=help_text, add_completion=False, callback=lambda: None)


def lone_command() -> typer.Typer:
    """A new app for a command without verbs, such as `kctl api-versions`."""
    return typer.Typer(add_completion=False)


def command(
    app: typer.Typer, name: str | None = None, *, examples: Sequence[str]
) -> Callable[[Function], Function]:
    """Register a command; its docstring is its help, and it must come with examples."""
    return app.command(name, cls=KctlCommand, epilog=format_examples(examples))
