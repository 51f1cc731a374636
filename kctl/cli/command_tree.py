"""Typer groups and commands of kctl, with lazy loading.

Typer keeps its copy of Click private, so the contexts passed to these methods are typed `Any`;
`typer.core` and `typer.main.get_command` are its public interface.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from kctl.cli.help import format_examples, help_lines, read_help
from kctl.cli.kafka_spellings import with_our_spellings
from kctl.cli.options import confirm_parameter, gather, shared_parameters, shared_with

SECONDS = "SECONDS"
"""The metavar of options in seconds."""
MAX_SECONDS = 1e9
"""Timers of Python and of the system overflow somewhat later; this is 31 years."""

Function = TypeVar("Function", bound=Callable[..., Any])


class KctlCommand(TyperCommand):
    """A command that accepts the shared options."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if any("--yes" in parameter.opts for parameter in self.params):
            self.params = [*self.params, confirm_parameter()]
        self.params = [*self.params, *shared_with(self.params)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, then move the shared options to the session."""
        own = with_our_spellings(" ".join(ctx.command_path.split()[1:]), args)
        rest = super().parse_args(ctx, own)
        _check_numbers(ctx, self.params)
        gather(ctx, self.params)
        return rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write kctl's own help layout."""
        formatter.write("\n".join(help_lines(read_help(self, ctx))))


def _check_numbers(ctx: Any, parameters: Sequence[Any]) -> None:
    """Usage error for NaN, which Click accepts in any range, and for times that overflow timers."""
    for parameter in parameters:
        value = ctx.params.get(parameter.name)
        if not isinstance(value, float):
            continue
        if math.isnan(value):
            raise typer.BadParameter(f"{value} is not a number.", ctx, parameter)
        if parameter.metavar == SECONDS and value > MAX_SECONDS:
            raise typer.BadParameter(f"{value:g} is more than {MAX_SECONDS:g}.", ctx, parameter)


class KctlGroup(TyperGroup):
    """A noun with verbs; accepts the shared options, and shows its help if no verb is given."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *shared_with(self.params)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, then move the shared options to the session."""
        if not args and not self.invoke_without_command:
            args = ["--help"]
        rest = super().parse_args(ctx, args)
        gather(ctx, self.params)
        return rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write kctl's own help layout."""
        formatter.write("\n".join(help_lines(read_help(self, ctx))))


class DefaultVerbGroup(KctlGroup):
    """A group with a default verb, used if the command line names none."""

    default_verb: ClassVar[str] = "show"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the default verb if none is given."""
        if args and args[0] not in ("-h", "--help") and not self._begins_with_verb(args):
            args = [self.default_verb, *args]
        return super().parse_args(ctx, args)

    def _begins_with_verb(self, args: list[str]) -> bool:
        """Whether the first word after shared options is a verb."""
        words = iter(args)
        takes_value = {
            name: not (option.count or option.is_flag)
            for option in shared_parameters()
            for name in option.opts
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
    """The module of a command's `app`, and its summary in `kctl --help`."""

    module: str
    summary: str
    section: str = ""
    """Its section in the help."""
    hidden: bool = False


class LazyGroup(KctlGroup):
    """A group whose commands are imported on first use.

    Until then a placeholder with the command's name and summary takes its place, which is enough
    for help, completion and suggestions. Typer calls `resolve_command` before it runs a command or
    completes its options, so the real command is loaded there.
    """

    lazy_commands: ClassVar[Mapping[str, LazyCommand]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, lazy in self.lazy_commands.items():
            self.add_command(
                TyperCommand(name, help=lazy.summary, hidden=lazy.hidden, callback=None)
            )

    def load(self, name: str) -> Any:
        """Import the command called `name`."""
        command = get_command(import_module(self.lazy_commands[name].module).app)
        command.name = name
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Import the command that `args` begin with."""
        name, command, rest = super().resolve_command(ctx, args)
        if name and name in self.lazy_commands:
            command = self.load(name)
        return name, command, rest


def noun(help_text: str) -> typer.Typer:
    """A new group of verbs, such as `kctl brokers`.

    A noun that can be used without a verb (`kctl cluster`) registers its own callback with
    `invoke_without_command=True`.
    """
    # The callback does nothing. Without one Typer would turn an app with a single verb into a
    # plain command.
    return typer.Typer(cls=KctlGroup, help=help_text, add_completion=False, callback=lambda: None)


def lone_command() -> typer.Typer:
    """A new app for a command without verbs, such as `kctl api-versions`."""
    return typer.Typer(add_completion=False)


def command(
    app: typer.Typer, name: str | None = None, *, examples: Sequence[str]
) -> Callable[[Function], Function]:
    """Register a command; its docstring is its help, and examples are required."""
    return app.command(name, cls=KctlCommand, epilog=format_examples(examples))
