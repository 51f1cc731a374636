"""`kctl context set`, `use` and `delete`: changes to the file of contexts."""

from dataclasses import replace
from typing import Annotated

import typer

from kctl.admin.cluster import find_cluster_id
from kctl.cli.arguments.zookeeper import not_empty
from kctl.cli.contexts import (
    EXPORT_ENGINES,
    Context,
    Contexts,
    config_path,
    read_contexts,
    write_contexts,
)
from kctl.cli.errors import CliError, ExitStatus, usage_error
from kctl.cli.options import Session, session_of

PROBE_S = 5.0
"""How long the cluster may take to tell its id."""

Name = Annotated[str, typer.Argument(help="Context name.")]


def known_engine(given: str | None) -> str | None:
    """A usage error if `--export-engine` is not an engine."""
    if given not in (None, *EXPORT_ENGINES):
        choices = f"choose from {', '.join(EXPORT_ENGINES)}"
        raise usage_error(f"--export-engine {given}: unknown", choices)
    return given


def set_context(
    ctx: typer.Context,
    name: Name,
    zookeeper: Annotated[
        str | None,
        typer.Option(
            "-z",
            "--zookeeper",
            metavar="HOST:PORT,…/CHROOT",
            help="ZooKeeper connect string, for kctl zk.",
            callback=not_empty,
        ),
    ] = None,
    read_only: Annotated[
        bool | None,
        typer.Option(
            "--read-only/--no-read-only",
            help="Refuse all changes, commits of offsets, and joining groups.",
            show_default=False,
        ),
    ] = None,
    protected: Annotated[
        bool | None,
        typer.Option(
            "--protected/--no-protected",
            help="Require typing the context's name to confirm deletions and overwrites.",
            show_default=False,
        ),
    ] = None,
    export_engine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Default engine of kctl spark-export: spark or local.",
            callback=known_engine,
        ),
    ] = None,
) -> None:
    """Create or change a context.

    Its brokers are those of -b, its client.properties that of --command-config. Options that are
    not given keep their values. The first context becomes the current one. If the cluster answers,
    its id is recorded: commands then refuse to run if the addresses lead to another cluster, and
    the restrictions apply to this cluster however it is addressed.
    """
    session = session_of(ctx)
    if not name.isprintable() or name != name.strip() or not name:
        raise CliError(
            f"{name!r} is not a valid context name", "use printable characters", ExitStatus.USAGE
        )
    contexts = read_contexts(config_path())
    given = {
        "bootstrap_servers": session.bootstrap_server if _said(ctx, "bootstrap_server") else None,
        "command_config": session.command_config if _said(ctx, "command_config") else None,
        "zookeeper": zookeeper,
        "read_only": read_only,
        "protected": protected,
        "export_engine": export_engine,
    }
    changes = {key: value for key, value in given.items() if value is not None}
    context = replace(contexts.named.get(name, Context()), **changes)  # type: ignore[arg-type]
    if not (context.bootstrap_servers or context.command_config):
        raise CliError(
            f"context {name!r} has no bootstrap servers",
            f"use kctl context set {name} -b HOST:PORT",
            ExitStatus.USAGE,
        )
    if "bootstrap_servers" in changes or "command_config" in changes:
        context = replace(context, cluster_id=None)  # it may be another cluster
    context = _with_cluster_id(session, context)
    _write(Contexts(contexts.current or name, {**contexts.named, name: context}))
    session.out.note(f"context {name} saved")


def _with_cluster_id(session: Session, context: Context) -> Context:
    """The context with the id of its cluster, if that answers."""
    if context.cluster_id:
        return context
    probe = Session(
        bootstrap_server=context.bootstrap_servers,
        command_config=context.command_config,
        timeout=min(session.timeout, PROBE_S),
        given={"bootstrap_server", "command_config"},
        may_ask=False,
    )
    try:
        return replace(context, cluster_id=find_cluster_id(probe))
    except CliError as error:
        session.out.note(f"the cluster id is unknown: {error.message}")
        return context
    finally:
        probe.close()


def use(ctx: typer.Context, name: Name) -> None:
    """Set the current context."""
    contexts = read_contexts(config_path())
    contexts.get(name)
    _write(replace(contexts, current=name))
    session_of(ctx).out.note(f"current context: {name}")


def delete(ctx: typer.Context, name: Name) -> None:
    """Delete a context; the cluster is not affected."""
    contexts = read_contexts(config_path())
    contexts.get(name)
    left = {other: context for other, context in contexts.named.items() if other != name}
    _write(Contexts(None if contexts.current == name else contexts.current, left))
    session_of(ctx).out.note(f"context {name} deleted")


def _said(ctx: typer.Context, option: str) -> bool:
    """Whether the option is on the command line; values of the environment are not stored."""
    return option in session_of(ctx).given


def _write(contexts: Contexts) -> None:
    write_contexts(config_path(), contexts)
