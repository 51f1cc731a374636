"""What a command says about itself: read once from Typer's tree, shown as help, man and completion.

The help text is laid out here and not by rich: it comes up in half the time, fits eighty columns,
and is the same text on a terminal, in a pipe and in the tests.
"""

import inspect
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from typer.core import TyperArgument, TyperGroup, TyperOption

WIDTH = 80
EXAMPLES_TITLE = "Examples:"


@dataclass(frozen=True)
class ParameterHelp:
    """One option or argument."""

    names: tuple[str, ...]
    """`-o`, `--output`; an argument has one, its metavar."""
    value: str
    """What the option takes, as shown to people; empty for a flag."""
    text: str
    choices: tuple[str, ...]
    panel: str
    """The section it belongs to; empty for the command's own options."""
    is_argument: bool

    @property
    def usage(self) -> str:
        """`-o, --output FORMAT`."""
        return " ".join(filter(None, [", ".join(self.names), self.value]))


@dataclass(frozen=True)
class CommandHelp:
    """One command or group."""

    path: tuple[str, ...]
    usage: str
    summary: str
    description: str
    parameters: tuple[ParameterHelp, ...]
    subcommands: tuple[tuple[str, str], ...]
    examples: tuple[str, ...]
    headings: Mapping[str, str] = field(default_factory=dict)
    """Under which heading help lists a subcommand; those that have none are `Commands`."""

    @property
    def name(self) -> str:
        """`kctl brokers list`."""
        return " ".join(self.path)

    def panels(self) -> dict[str, list[ParameterHelp]]:
        """The options by section, the command's own first, the shared ones last."""
        sections: dict[str, list[ParameterHelp]] = {"": []}
        for parameter in self.parameters:
            if not parameter.is_argument:
                sections.setdefault(parameter.panel, []).append(parameter)
        return {title: options for title, options in sections.items() if options}

    def sections(self) -> dict[str, list[tuple[str, str]]]:
        """The subcommands under their headings."""
        found: dict[str, list[tuple[str, str]]] = {}
        for name, summary in self.subcommands:
            found.setdefault(self.headings.get(name, "Commands"), []).append((name, summary))
        return found

    def arguments(self) -> list[ParameterHelp]:
        """What stands on the command line without a name."""
        return [parameter for parameter in self.parameters if parameter.is_argument]


def read_help(command: Any, ctx: Any) -> CommandHelp:
    """Gather what `command` declares; hidden parameters and commands are left out."""
    summary, _, description = inspect.cleandoc(command.help or "").partition("\n\n")
    shown = [p for p in command.get_params(ctx) if not getattr(p, "hidden", False)]
    return CommandHelp(
        path=tuple(ctx.command_path.split()),
        usage=" ".join([ctx.command_path, *command.collect_usage_pieces(ctx)]),
        summary=" ".join(summary.split()),
        description=description,
        parameters=tuple(_read_parameter(parameter, ctx) for parameter in shown),
        subcommands=tuple(_read_subcommands(command, ctx)),
        examples=tuple(examples_of(command.epilog)),
        headings={name: lazy.section for name, lazy in _lazy(command) if lazy.section},
    )


def _lazy(command: Any) -> Iterable[tuple[str, Any]]:
    """The commands of a group that imports them when they are used."""
    return getattr(command, "lazy_commands", {}).items()


def _read_parameter(parameter: TyperOption | TyperArgument, ctx: Any) -> ParameterHelp:
    left, text = parameter.get_help_record(ctx) or ("", "")
    takes_value = not (getattr(parameter, "is_flag", False) or getattr(parameter, "count", False))
    words = [word for word in left.split() if word != "/" and not word.startswith("-")]
    is_argument = isinstance(parameter, TyperArgument)
    names = _short_first([*parameter.opts, *parameter.secondary_opts])
    return ParameterHelp(
        names=(left,) if is_argument else names,
        value=" ".join(words).strip("<>") if takes_value and not is_argument else "",
        text=" ".join(text.split()),
        choices=tuple(item.value for item in parameter.shell_complete(ctx, "")),
        panel=getattr(parameter, "rich_help_panel", None) or "",
        is_argument=is_argument,
    )


def _short_first(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=lambda name: name.startswith("--")))


def _read_subcommands(command: Any, ctx: Any) -> Iterator[tuple[str, str]]:
    if isinstance(command, TyperGroup):
        for name in command.list_commands(ctx):
            sub = command.get_command(ctx, name)
            if sub and not sub.hidden:
                yield name, " ".join(inspect.cleandoc(sub.help or "").partition("\n\n")[0].split())


def help_lines(command: CommandHelp) -> Iterator[str]:
    """The text of `--help`."""
    yield from textwrap.wrap(f"Usage: {command.usage}", WIDTH, subsequent_indent=" " * 7)
    yield from ("", *textwrap.wrap(command.summary, WIDTH))
    yield from _prose(command.description)
    widest = max((len(name) for name, _ in command.subcommands), default=0)
    for title, entries in command.sections().items():
        yield from _section(title, entries, widest)  # so that all commands stand in one column
    yield from _section("Arguments", [(a.usage, a.text) for a in command.arguments()])
    for title, options in command.panels().items():
        yield from _section(title or "Options", [(o.usage, o.text) for o in options])
    if command.examples:
        yield from ("", EXAMPLES_TITLE, *(f"  {example}" for example in command.examples))


def _prose(text: str) -> Iterator[str]:
    """Paragraphs wrapped to fit; one with indented lines stays as it was written."""
    for paragraph in filter(None, text.split("\n\n")):
        as_written = any(line.startswith(" ") for line in paragraph.splitlines())
        yield ""
        yield from paragraph.splitlines() if as_written else textwrap.wrap(paragraph, WIDTH)


def _section(title: str, entries: Sequence[tuple[str, str]], widest: int = 0) -> Iterator[str]:
    """A heading with terms on the left and their explanations, wrapped, on the right."""
    if not entries:
        return
    yield from ("", f"{title}:")
    column = min(max(widest, *(len(term) for term, _ in entries)), 30) + 4
    for term, text in entries:
        first, *more = textwrap.wrap(text, WIDTH - column) or [""]
        if len(term) > column - 4:  # too long to stand beside its explanation
            yield f"  {term}"
            yield f"{'':{column}}{first}".rstrip()
        else:
            yield f"  {term:<{column - 2}}{first}".rstrip()
        yield from (f"{'':{column}}{line}" for line in more)


def format_examples(examples: Sequence[str]) -> str:
    """Examples in the form in which a Typer command keeps them: its epilog."""
    return "\n".join([EXAMPLES_TITLE, *(f"  {example}" for example in examples)])


def examples_of(epilog: str | None) -> list[str]:
    """The examples that `format_examples` was given."""
    title, *lines = (epilog or "").splitlines() or [""]
    return [line.strip() for line in lines] if title == EXAMPLES_TITLE else []
