"""The options shared by all commands, at any position of the command line.

`kctl -b h:9092 topics list` and `kctl topics list -b h:9092` are equivalent: every group and every
command accepts the shared options and stores them in one `Session`. Precedence: the option nearest
to the end of the command line, other options, the environment, the current context; see
`CLUSTER_PRECEDENCE`.

An option or variable that selects the cluster and is empty is a usage error. It comes from an unset
variable in a script; ignoring it would run the command on another cluster.
"""

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer
from typer.main import get_command

from kctl.cli.contexts import Context, Contexts, config_path, read_contexts, refuse_empty_variable
from kctl.cli.errors import CliError, ExitStatus, usage_error
from kctl.cli.output import NoteHandler, Output, OutputFormat
from kctl.cli.row_options import RowOptions, parse_row_options
from kctl.cli.theme import ColorMode, set_color_mode

if TYPE_CHECKING:
    from kctl.cli.security.settings import SecuritySettings

SHARED_PANEL = "Shared options"
OUTPUT_PANEL = "Output options"
DEFAULT_TIMEOUT_S = 30.0
_SECURITY_VARIABLES = (
    *("KCTL_SECURITY_", "KCTL_SASL_", "KCTL_SSL_"),
    *("KCTL_SCHEMA_REGISTRY_", "KCTL_BASIC_AUTH_", "KCTL_BEARER_AUTH_"),
)


CLUSTER_PRECEDENCE = """The cluster of a command is the first of these that is given:

  1. -b on the command line
  2. --context on the command line
  3. bootstrap.servers in the file of --command-config on the command line
  4. KCTL_BOOTSTRAP_SERVERS
  5. KCTL_CONTEXT
  6. bootstrap.servers in the file of KCTL_COMMAND_CONFIG
  7. the current context

A context given at the same level as -b or KCTL_BOOTSTRAP_SERVERS must exist; its restrictions and
client.properties apply. The client.properties are those of --command-config, else of
KCTL_COMMAND_CONFIG, else of the context. Restrictions of any context (read-only, protected) apply
to its cluster however it is addressed: by its cluster id, or by one of its addresses while the id
is unknown."""


class Connection(Protocol):
    """A connection that the session closes at its end."""

    def close(self) -> None:
        """Close all connections."""


@dataclass
class Session:
    """The shared options of one run: cluster, output format, timeout."""

    bootstrap_server: str | None = None
    context: str | None = None
    command_config: str | None = None
    output: OutputFormat = OutputFormat.TABLE
    columns: str | None = None
    sort_by: str | None = None
    no_headers: bool = False
    color: ColorMode = ColorMode.AUTO
    timeout: float = DEFAULT_TIMEOUT_S
    verbose: int = 0
    given: set[str] = field(default_factory=set)
    """Names of the options above that were given on the command line, at any level."""
    may_ask: bool = True
    """Whether the user may be prompted for a password: not during shell completion."""
    printed: set[str] = field(default_factory=set)
    """Messages that were printed and are not repeated in this run."""
    unanswered: dict[int, str] = field(default_factory=dict)
    """Messages about brokers that did not answer; their part of the result is missing."""
    confirm: str | None = None
    """The value of `--confirm`: the name of the context that the user means to change."""
    find_cluster_id: "Callable[[Session], str | None] | None" = None
    """Queries the cluster for its id. Set by `app`: this layer knows no cluster."""
    connection: "Connection | None" = None
    """The connection of this run to its cluster, once there is one; see admin.connection."""

    def close(self) -> None:
        """Close the connection; the next query would open another."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def __getstate__(self) -> dict[str, object]:
        # Spark tasks open their own connections.
        return {**self.__dict__, "connection": None, "find_cluster_id": None}

    @property
    def out(self) -> Output:
        """Output of results and messages."""
        return Output(self.output, self.row_options, self.printed)

    @property
    def row_options(self) -> RowOptions:
        """Columns and order of rows."""
        return parse_row_options(self.columns, self.sort_by, headers=not self.no_headers)

    @cached_property
    def active_context(self) -> tuple[str | None, Context]:
        """The context of this run and its name; an empty context if no context is in use.

        See CLUSTER_PRECEDENCE.
        """
        name = self._context_name()
        return (name, self.contexts.get(name)) if name else (None, Context())

    @cached_property
    def contexts(self) -> Contexts:
        """All contexts."""
        return read_contexts(config_path())

    def _context_name(self) -> str | None:
        if "context" in self.given:
            return self.context
        if "bootstrap_server" in self.given or self._named_by_file():
            return None
        refuse_empty_variable("KCTL_BOOTSTRAP_SERVERS")
        refuse_empty_variable("KCTL_CONTEXT")
        if self.context:
            return self.context
        if self.bootstrap_server or self._servers_of_file():
            return None
        return self.contexts.current

    def _named_by_file(self) -> bool:
        """Whether --command-config is on the command line and its file names the servers."""
        return "command_config" in self.given and self._servers_of_file() is not None

    def _servers_of_file(self) -> str | None:
        """bootstrap.servers in the file of --command-config or KCTL_COMMAND_CONFIG."""
        if not self.command_config:
            return None
        return self.client_properties().get("bootstrap.servers")

    def client_properties(self) -> dict[str, str]:
        """The Java client.properties of this run, including security settings of the environment.

        Empty if no properties are set. Contains resolved secrets: never print it.
        """
        return self._client_properties

    @cached_property
    def _client_properties(self) -> dict[str, str]:
        if "command_config" not in self.given:
            refuse_empty_variable("KCTL_COMMAND_CONFIG")
        path = self.command_config or self.active_context[1].command_config
        if not path and not any(name.startswith(_SECURITY_VARIABLES) for name in os.environ):
            return {}
        # Imported here: few runs have any.
        from kctl.cli.client_properties import read_client_properties
        from kctl.cli.client_property_names import check_names
        from kctl.cli.security.secrets import from_environment, resolve

        written = read_client_properties(Path(path).expanduser()) if path else {}
        if path and (unknown := check_names(written, Path(path))):
            self.out.note(f"{path}: unknown keys are ignored: {', '.join(unknown)}")
        return resolve(written, os.environ) | from_environment(os.environ)

    @cached_property
    def security(self) -> "SecuritySettings | None":
        """TLS and SASL settings, prompting for a missing password; None for plaintext."""
        if "security.protocol" not in (properties := self.client_properties()):
            return None
        from kctl.cli.security.secrets import ask_secret
        from kctl.cli.security.settings import read_security

        return read_security(properties, lambda what: ask_secret(what) if self.may_ask else None)

    def names_cluster(self) -> bool:
        """Whether there are bootstrap servers."""
        return bool(self._servers())

    def bootstrap_servers(self) -> str:
        """The bootstrap servers; CliError if none are configured."""
        named = self._servers()
        if not named:
            raise CliError(
                "no cluster specified",
                "use -b HOST:PORT, set KCTL_BOOTSTRAP_SERVERS, or choose a context: kctl "
                "context use",
                ExitStatus.USAGE,
            )
        return named

    def _servers(self) -> str | None:
        return self._named_servers() or self.client_properties().get("bootstrap.servers")

    def _named_servers(self) -> str | None:
        """The servers other than those of client.properties."""
        from_context = self.active_context[1].bootstrap_servers
        if "bootstrap_server" in self.given:
            return self.bootstrap_server
        if "context" in self.given:
            return from_context
        if self._named_by_file():
            return None
        return self.bootstrap_server or from_context

    def cluster_id(self) -> str | None:
        """The id of the cluster; None if it cannot be queried in this run."""
        return self.find_cluster_id(self) if self.find_cluster_id else None


class TextFormat(StrEnum):
    """Values of `--format`, for commands with a counterpart among Kafka's tools."""

    KAFKA = "kafka"


KafkaText = Annotated[
    TextFormat | None,
    typer.Option("--format", metavar="kafka", help="Print the output of Kafka's own tool."),
]


def session_of(ctx: typer.Context) -> Session:
    """The session of the run that `ctx` belongs to."""
    session = ctx.find_object(Session)
    assert session is not None, "the root group starts every run with a Session"  # noqa: S101
    return session


def _declare(
    bootstrap_server: Annotated[
        str | None,
        typer.Option(
            "-b",
            "--bootstrap-server",
            metavar="HOST:PORT,…",
            envvar="KCTL_BOOTSTRAP_SERVERS",
            help="Bootstrap servers; one is enough. [KCTL_BOOTSTRAP_SERVERS]",
            show_envvar=False,
            rich_help_panel=SHARED_PANEL,
        ),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            "--context",
            metavar="NAME",
            envvar="KCTL_CONTEXT",
            help="Context to use; see `kctl context`. [KCTL_CONTEXT]",
            show_envvar=False,
            rich_help_panel=SHARED_PANEL,
        ),
    ] = None,
    command_config: Annotated[
        str | None,
        typer.Option(
            "--command-config",
            metavar="FILE",
            envvar="KCTL_COMMAND_CONFIG",
            help="Java client.properties file. [KCTL_COMMAND_CONFIG]",
            show_envvar=False,
            rich_help_panel=SHARED_PANEL,
        ),
    ] = None,
    output: Annotated[
        OutputFormat | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FORMAT",
            envvar="KCTL_OUTPUT",
            help="Output format: table, wide, json, jsonl, yaml, csv, name or tree. [KCTL_OUTPUT]",
            show_envvar=False,
            rich_help_panel=OUTPUT_PANEL,
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns",
            metavar="NAME,…",
            help="Show only these columns, in this order.",
            rich_help_panel=OUTPUT_PANEL,
        ),
    ] = None,
    sort_by: Annotated[
        str | None,
        typer.Option(
            "--sort-by",
            metavar="NAME,…",
            help="Sort by these columns; -NAME sorts in descending order.",
            rich_help_panel=OUTPUT_PANEL,
        ),
    ] = None,
    no_headers: Annotated[
        bool,
        typer.Option(
            "--no-headers",
            help="Omit the headings of tables and CSV.",
            rich_help_panel=OUTPUT_PANEL,
        ),
    ] = False,
    color: Annotated[
        ColorMode | None,
        typer.Option(
            "--color",
            metavar="WHEN",
            envvar="KCTL_COLOR",
            help="Use colour: auto (on a terminal, unless NO_COLOR is set), always or never. "
            "[KCTL_COLOR]",
            show_envvar=False,
            rich_help_panel=OUTPUT_PANEL,
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            envvar="KCTL_TIMEOUT",
            help=f"Timeout of requests to the cluster (default {DEFAULT_TIMEOUT_S:g}). "
            "[KCTL_TIMEOUT]",
            show_envvar=False,
            rich_help_panel=SHARED_PANEL,
        ),
    ] = None,
    verbose: Annotated[
        int,
        typer.Option(
            "-v",
            "--verbose",
            count=True,
            show_default=False,
            help="Print more details, also about errors.",
            rich_help_panel=SHARED_PANEL,
        ),
    ] = 0,
) -> None:
    """Declarations only; `shared_parameters` turns them into Typer parameters."""


def _declare_confirm(
    confirm: Annotated[
        str | None,
        typer.Option(
            "--confirm",
            metavar="NAME",
            help="Confirm for the cluster of this context, even if it is protected; fails on any "
            "other cluster.",
        ),
    ] = None,
) -> None:
    """The option that commands with `--yes` have too."""


@cache
def confirm_parameter() -> Any:
    """`--confirm NAME` as a Typer parameter."""
    probe = typer.Typer(add_completion=False)
    probe.command()(_declare_confirm)
    return next(one for one in get_command(probe).params if one.name == "confirm")


@cache
def shared_parameters() -> tuple[Any, ...]:
    """The shared options as Typer parameters, to be added to any group or command."""
    probe = typer.Typer(add_completion=False)
    probe.command()(_declare)
    return tuple(get_command(probe).params)


def shared_with(own: Sequence[Any]) -> list[Any]:
    """The shared options of a command, without those whose name it uses itself."""
    taken = {name for parameter in own for name in (parameter.name, *parameter.opts)}
    return [one for one in shared_parameters() if not taken & {one.name, *one.opts}]


def refuse_empty_option(option: str, value: object) -> None:
    """A usage error if the value of `option` is an empty string."""
    if isinstance(value, str) and not value.strip(" ,"):
        raise usage_error(f"{option} is empty", "check the variable it is set from, or omit it")


_CHOICES: dict[str, Callable[[Any], Any]] = {"output": OutputFormat, "color": ColorMode}
"""Typer converts a choice to an enum only when it calls a function."""


def gather(ctx: Any, parameters: Sequence[Any]) -> None:
    """Move the shared ones of `parameters` from `ctx.params` to the session.

    A value of the environment appears at every level, so it applies only to options that are not on
    the command line; otherwise it would override a `-b` before the command's name.
    """
    session = session_of(ctx)
    shared = shared_parameters()
    for parameter in (one for one in parameters if one in shared):
        name, value = parameter.name, ctx.params.pop(parameter.name, None)
        if ctx.get_parameter_source(name).name == "COMMANDLINE":
            refuse_empty_option(parameter.opts[-1], value)
            session.given.add(name)
        elif value is None or name in session.given:
            continue
        setattr(session, name, _CHOICES.get(name, lambda same: same)(value))
    set_color_mode(session.color)
    _ = session.row_options  # a usage error if they are malformed
    if confirm := ctx.params.pop("confirm", None):
        session.confirm = confirm
    if not session.timeout > 0:  # also refuses nan
        raise usage_error(f"--timeout {session.timeout:g}: must be greater than 0", "e.g. 10")
    if session.verbose:
        level = logging.DEBUG if session.verbose > 1 else logging.INFO
        logging.basicConfig(level=level, handlers=[NoteHandler()])
