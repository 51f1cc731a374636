"""`kctl context`: clusters by name."""

from dataclasses import asdict, replace
from typing import Annotated

import typer

from kctl.errors import CliError, ExitStatus
from kctl.groups import command, noun
from kctl.options import session_of
from kctl.settings import Context, Contexts, config_path, read_contexts, write_contexts
from kctl.tables import Column

app = noun("Clusters by name.")

COLUMNS = [
    Column("current"),
    Column("name"),
    Column("bootstrap_servers"),
    Column("read_only"),
    Column("protected"),
    Column("command_config", wide=True),
    Column("zookeeper", wide=True),
]

Name = Annotated[str, typer.Argument(help="The context's name.")]


@command(app, "list", examples=["kctl context list", "kctl context list -o yaml"])
def list_contexts(ctx: typer.Context) -> None:
    """List the contexts."""
    contexts = read_contexts(config_path())
    rows = [_row(name, contexts) for name in contexts.named]
    session_of(ctx).out.rows(rows, COLUMNS, name="name")


@command(app, "show", examples=["kctl context show", "kctl context show prod -o json"])
def show(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="The context's name; the one in use if left out.")
    ] = None,
) -> None:
    """Show one context."""
    session = session_of(ctx)
    contexts = read_contexts(config_path())
    wanted = name or session.context or contexts.current
    if not wanted:
        raise CliError("no context is in use", "kctl context use NAME chooses one")
    contexts.get(wanted)
    session.out.record(_row(wanted, contexts), COLUMNS, name="name")


@command(
    app,
    "set",
    examples=[
        "kctl context set dev -b localhost:9192",
        "kctl context set prod -b kafka1:9092,kafka2:9092 --protected",
        "kctl context set prod --read-only",
        "kctl context set prod --zookeeper zk1:2181/kafka",
    ],
)
def set_context(
    ctx: typer.Context,
    name: Name,
    zookeeper: Annotated[
        str | None,
        typer.Option(
            "-z", "--zookeeper", metavar="HOST:PORT,…/CHROOT", help="Its ZooKeeper, for kctl zk."
        ),
    ] = None,
    read_only: Annotated[
        bool | None,
        typer.Option(
            "--read-only/--no-read-only", help="Refuse to change anything.", show_default=False
        ),
    ] = None,
    protected: Annotated[
        bool | None,
        typer.Option(
            "--protected/--no-protected",
            help="Want the context's name typed before something is deleted or overwritten.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Make a context, or change what is said of it.

    Its brokers are those of -b, its client.properties that of --command-config. What is not said
    stays as it is. The first context is the one in use until another is chosen.
    """
    session = session_of(ctx)
    contexts = read_contexts(config_path())
    said = {
        "bootstrap_servers": session.bootstrap_server if _said(ctx, "bootstrap_server") else None,
        "command_config": session.command_config if _said(ctx, "command_config") else None,
        "zookeeper": zookeeper,
        "read_only": read_only,
        "protected": protected,
    }
    changes = {key: value for key, value in said.items() if value is not None}
    context = replace(contexts.named.get(name, Context()), **changes)  # type: ignore[arg-type]
    if not (context.bootstrap_servers or context.command_config):
        raise CliError(
            f"context {name!r} would have no brokers",
            f"kctl context set {name} -b HOST:PORT names them",
            ExitStatus.USAGE,
        )
    _write(Contexts(contexts.current or name, {**contexts.named, name: context}))
    session.out.note(f"context {name} is set")


@command(app, "use", examples=["kctl context use dev"])
def use(ctx: typer.Context, name: Name) -> None:
    """Choose the context that commands are about when nothing else is said."""
    contexts = read_contexts(config_path())
    contexts.get(name)
    _write(replace(contexts, current=name))
    session_of(ctx).out.note(f"using context {name}")


@command(app, "delete", examples=["kctl context delete prod"])
def delete(ctx: typer.Context, name: Name) -> None:
    """Forget a context; the cluster is not touched."""
    contexts = read_contexts(config_path())
    contexts.get(name)
    left = {other: context for other, context in contexts.named.items() if other != name}
    _write(Contexts(None if contexts.current == name else contexts.current, left))
    session_of(ctx).out.note(f"context {name} is forgotten")


def _said(ctx: typer.Context, option: str) -> bool:
    """Whether the command line itself names the option: the environment is not written down."""
    return option in session_of(ctx).said


def _write(contexts: Contexts) -> None:
    write_contexts(config_path(), contexts)


def _row(name: str, contexts: Contexts) -> dict[str, object]:
    context = asdict(contexts.get(name))
    return {"current": "*" if name == contexts.current else None, "name": name, **context}
