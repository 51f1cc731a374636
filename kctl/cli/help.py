"""Help of commands: read from Typer's tree, shown as help, man pages and completions.

The help text is laid out here and not by rich: this is twice as fast, fits 80 columns, and gives
the same text on a terminal, in a pipe and in tests.
"""

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from typer.core import TyperArgument, TyperGroup, TyperOption

WIDTH = 80
EXAMPLES_TITLE = "Examples:"
_LARGEST_SHOWN = 32767
"""Upper bounds from here on are those of int16, int32 and int64."""


@dataclass(frozen=True)
class ParameterHelp:
    """One option or argument."""

    names: tuple[str, ...]
    """`-o`, `--output`; an argument has one name, its metavar."""
    value: str
    """The metavar of the option's value; empty for a flag."""
    text: str
    choices: tuple[str, ...]
    panel: str
    """Its section; empty for the command's own options."""
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
    """Sections of subcommands; the default is `Commands`."""

    @property
    def name(self) -> str:
        """`kctl brokers list`."""
        return " ".join(self.path)

    def panels(self) -> dict[str, list[ParameterHelp]]:
        """The options by section: first the command's own, last the shared ones."""
        sections: dict[str, list[ParameterHelp]] = {"": []}
        for parameter in self.parameters:
            if not parameter.is_argument:
                sections.setdefault(parameter.panel, []).append(parameter)
        return {title: options for title, options in sections.items() if options}

    def sections(self) -> dict[str, list[tuple[str, str]]]:
        """The subcommands by section."""
        found: dict[str, list[tuple[str, str]]] = {}
        for name, summary in self.subcommands:
            found.setdefault(self.headings.get(name, "Commands"), []).append((name, summary))
        return found

    def arguments(self) -> list[ParameterHelp]:
        """The positional arguments."""
        return [parameter for parameter in self.parameters if parameter.is_argument]


def read_help(command: Any, ctx: Any) -> CommandHelp:
    """The help of `command`, without hidden parameters and commands."""
    summary, _, description = inspect.cleandoc(command.help or "").partition("\n\n")
    shown = [p for p in command.get_params(ctx) if not getattr(p, "hidden", False)]
    return CommandHelp(
        path=tuple(ctx.command_path.split()),
        usage=_usage(command, ctx),
        summary=" ".join(summary.split()),
        description=description,
        parameters=tuple(_read_parameter(parameter, ctx) for parameter in shown),
        subcommands=tuple(_read_subcommands(command, ctx)),
        examples=tuple(examples_of(command.epilog)),
        headings={name: lazy.section for name, lazy in _lazy(command) if lazy.section},
    )


def _usage(command: Any, ctx: Any) -> str:
    """Click's usage line, with upper-case metavars and without braces around required ones."""
    pieces = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    pieces = pieces.replace("[OPTIONS] COMMAND [ARGS]...", "COMMAND [OPTIONS]")
    pieces = re.sub(r"\{([^{}]*)\}", lambda match: _upper(match[1]), pieces)
    return re.sub(r"\[([a-z_]+)\]", lambda match: f"[{_upper(match[1])}]", pieces)


def _upper(metavar: str) -> str:
    """Click's default metavar of an argument in upper case; a declared one as it is."""
    return metavar.upper() if metavar.islower() else metavar


def _lazy(command: Any) -> Iterable[tuple[str, Any]]:
    """The commands of a lazy group."""
    return getattr(command, "lazy_commands", {}).items()


def _read_parameter(parameter: TyperOption | TyperArgument, ctx: Any) -> ParameterHelp:
    left, text = parameter.get_help_record(ctx) or ("", "")
    takes_value = not (getattr(parameter, "is_flag", False) or getattr(parameter, "count", False))
    words = [word for word in left.split() if word != "/" and not word.startswith("-")]
    is_argument = isinstance(parameter, TyperArgument)
    names = _short_first([*parameter.opts, *parameter.secondary_opts])
    return ParameterHelp(
        names=(_upper(left),) if is_argument else names,
        value=_metavar(" ".join(words), names) if takes_value and not is_argument else "",
        text=_bounds(" ".join(text.split())),
        choices=tuple(item.value for item in parameter.shell_complete(ctx, "")),
        panel=getattr(parameter, "rich_help_panel", None) or "",
        is_argument=is_argument,
    )


def _metavar(declared: str, names: Sequence[str]) -> str:
    """The declared metavar; instead of Click's type names, `N` or the name of the option."""
    plain = declared.strip("<>")
    if plain.removesuffix(" range") in ("int", "integer", "float"):
        return "N"
    if plain in ("str", "text", "path", "file"):
        return names[-1].lstrip("-").upper()
    return plain


def _bounds(text: str) -> str:
    """Click's `[x>=1]` as `[minimum 1]`, and `[1<=x<=9]` as `[1 to 9]`."""
    text = re.sub(r"\b([\d.]+)<=x<=([\d.]+)", _range, text)
    text = re.sub(r"\bx>=(-?[\d.]+)", r"minimum \1", text)
    # The limits of a type, and that a number is not negative, go without saying.
    text = re.sub(r"(; )?\bminimum 0(?=[\];])", "", text).removesuffix(" []")
    return re.sub(r"(default: \d+)\.0\b(?!\.)", r"\1", text)


def _range(match: re.Match[str]) -> str:
    is_limit = float(match[2]) >= _LARGEST_SHOWN
    return f"minimum {match[1]}" if is_limit else f"{match[1]} to {match[2]}"


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
        yield from _section(title, entries, widest)  # one column for all sections
    yield from _section("Arguments", [(a.usage, a.text) for a in command.arguments()])
    for title, options in command.panels().items():
        yield from _section(title or "Options", [(o.usage, o.text) for o in options])
    if command.examples:
        yield from ("", EXAMPLES_TITLE, *(f"  {example}" for example in command.examples))


def _prose(text: str) -> Iterator[str]:
    """Wrapped paragraphs; paragraphs with indented lines are kept as written."""
    for paragraph in filter(None, text.split("\n\n")):
        as_written = any(line.startswith(" ") for line in paragraph.splitlines())
        yield ""
        yield from paragraph.splitlines() if as_written else textwrap.wrap(paragraph, WIDTH)


def _section(title: str, entries: Sequence[tuple[str, str]], widest: int = 0) -> Iterator[str]:
    """A heading, with terms on the left and wrapped explanations on the right."""
    if not entries:
        return
    yield from ("", f"{title}:")
    column = min(max(widest, *(len(term) for term, _ in entries)), 30) + 4
    for term, text in entries:
        first, *more = textwrap.wrap(text, WIDTH - column) or [""]
        if len(term) > column - 4:  # too long for the left column
            yield f"  {term}"
            yield f"{'':{column}}{first}".rstrip()
        else:
            yield f"  {term:<{column - 2}}{first}".rstrip()
        yield from (f"{'':{column}}{line}" for line in more)


def format_examples(examples: Sequence[str]) -> str:
    """Examples as the epilog of a Typer command."""
    return "\n".join([EXAMPLES_TITLE, *(f"  {example}" for example in examples)])


def examples_of(epilog: str | None) -> list[str]:
    """The examples in an epilog made by `format_examples`."""
    title, *lines = (epilog or "").splitlines() or [""]
    return [line.strip() for line in lines] if title == EXAMPLES_TITLE else []
