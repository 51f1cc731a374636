"""The options every command shares, wherever on the command line they stand.

`kctl -b h:9092 topics list` and `kctl topics list -b h:9092` are the same. For that every group
and every command accepts the shared options, and what was given is gathered in one `Session`.
The nearest to the command wins; the command line wins over the environment; the environment over
what a context says.
"""

import logging
import os
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.main import get_command

from kctl.errors import CliError, ExitStatus
from kctl.output import NoteHandler, Output, OutputFormat
from kctl.settings import Context, config_path, read_contexts

if TYPE_CHECKING:
    from kctl.security.settings import SecuritySettings

SHARED_PANEL = "Shared options"
DEFAULT_TIMEOUT_S = 30.0
_SECURITY_VARIABLES = ("KCTL_SECURITY_", "KCTL_SASL_", "KCTL_SSL_")


@dataclass
class Session:
    """What one run of kctl was told: which cluster, how to print, how long to wait."""

    bootstrap_server: str | None = None
    context: str | None = None
    command_config: str | None = None
    output: OutputFormat = OutputFormat.TABLE
    timeout: float = DEFAULT_TIMEOUT_S
    verbose: int = 0
    said: set[str] = field(default_factory=set)
    """Which of the above the command line has named, at whatever level."""
    may_ask: bool = True
    """Whether the user may be asked for a password: not when Tab was pressed."""

    @property
    def out(self) -> Output:
        """Where results and messages go."""
        return Output(self.output)

    @cached_property
    def context_in_force(self) -> tuple[str | None, Context]:
        """The context this run is about, with its name; an empty one if it is about none.

        A cluster named with -b or by the environment stands for itself, unless `--context` is
        said as well: then the context's rules hold, wherever the brokers are.
        """
        if self.bootstrap_server and "context" not in self.said:
            return None, Context()
        contexts = read_contexts(config_path())
        name = self.context or contexts.current
        return (name, contexts.get(name)) if name else (None, Context())

    def client_properties(self) -> dict[str, str]:
        """The Java client.properties of this run, what the environment says of security included.

        Empty if none were named. Secrets that they refer to are in it: never show it.
        """
        return self._client_properties

    @cached_property
    def _client_properties(self) -> dict[str, str]:
        path = self.command_config or self.context_in_force[1].command_config
        if not path and not any(name.startswith(_SECURITY_VARIABLES) for name in os.environ):
            return {}
        from kctl.client_properties import read_client_properties  # few runs have any
        from kctl.security.secrets import from_environment, resolve

        written = read_client_properties(Path(path).expanduser()) if path else {}
        return resolve(written, os.environ) | from_environment(os.environ)

    @cached_property
    def security(self) -> "SecuritySettings | None":
        """TLS and SASL of this run, a password asked for included; None for a plain connection."""
        if "security.protocol" not in (properties := self.client_properties()):
            return None
        from kctl.security.secrets import ask_secret
        from kctl.security.settings import read_security

        return read_security(properties, lambda what: ask_secret(what) if self.may_ask else None)

    def bootstrap_servers(self) -> str:
        """The `host:port` list of the cluster to talk to; CliError if none was named."""
        named = self._named_servers() or self.client_properties().get("bootstrap.servers")
        if not named:
            raise CliError(
                "no cluster named",
                "give -b HOST:PORT, set KCTL_BOOTSTRAP_SERVERS, or choose one: kctl context use",
                ExitStatus.USAGE,
            )
        return named

    def _named_servers(self) -> str | None:
        """From the command line, else a context named there, else the environment, else current."""
        from_context = self.context_in_force[1].bootstrap_servers
        if "context" in self.said and "bootstrap_server" not in self.said:
            return from_context or self.bootstrap_server
        return self.bootstrap_server or from_context


class TextFormat(StrEnum):
    """What `--format` takes, on commands that have a counterpart among Kafka's tools."""

    KAFKA = "kafka"


KafkaText = Annotated[
    TextFormat | None,
    typer.Option("--format", metavar="kafka", help="Print what Kafka's own tool prints."),
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
            help="Brokers to ask first; one is enough. [KCTL_BOOTSTRAP_SERVERS]",
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
            help="The cluster of this context; see `kctl context`. [KCTL_CONTEXT]",
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
            help="A Java client.properties file. [KCTL_COMMAND_CONFIG]",
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
            help="Print results as table, wide, json, jsonl, yaml, csv or name. [KCTL_OUTPUT]",
            show_envvar=False,
            rich_help_panel=SHARED_PANEL,
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            envvar="KCTL_TIMEOUT",
            help=f"How long the cluster may take ({DEFAULT_TIMEOUT_S:g}). [KCTL_TIMEOUT]",
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
            help="Say more, also about errors.",
            rich_help_panel=SHARED_PANEL,
        ),
    ] = 0,
) -> None:
    """The declarations alone; Typer makes parameters of them for `shared_parameters`."""


@cache
def shared_parameters() -> tuple[Any, ...]:
    """The shared options as Typer parameters, to be added to any group or command."""
    probe = typer.Typer(add_completion=False)
    probe.command()(_declare)
    return tuple(get_command(probe).params)


def gather(ctx: Any) -> None:
    """Move the shared options out of `ctx.params` into the run's session.

    A value from the environment shows up at every level, so it counts only for what was not said
    on the command line: otherwise it would win over `-b` given before the command's name.
    """
    session = session_of(ctx)
    for parameter in shared_parameters():
        name, value = parameter.name, ctx.params.pop(parameter.name, None)
        if ctx.get_parameter_source(name).name == "COMMANDLINE":
            session.said.add(name)
        elif value is None or name in session.said:
            continue
        # Typer makes an enum of a choice only when it calls a function with it.
        setattr(session, name, OutputFormat(value) if name == "output" else value)
    if session.verbose:
        level = logging.DEBUG if session.verbose > 1 else logging.INFO
        logging.basicConfig(level=level, handlers=[NoteHandler()])
