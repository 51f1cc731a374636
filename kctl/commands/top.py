"""`kctl top`."""

import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from kctl.admin.broker_counters import MetricsEndpoint, parse_endpoints
from kctl.cli.command_tree import command, lone_command
from kctl.cli.errors import CliError, usage_error
from kctl.cli.options import Session, session_of
from kctl.cli.output import OutputFormat
from kctl.cli.text_files import read_small_text
from kctl.dev.brokers import dev_brokers, state_directory
from kctl.model.top import TopSample
from kctl.plans.trend import DEFAULT_WINDOW_S
from kctl.top.pages import PAGES, View
from kctl.top.sampler import Collector, Source

app = lone_command()

_TIMEOUT_S = 4.0
"""How long a broker is waited for in a cycle, unless --timeout is given."""


@command(
    app,
    "top",
    examples=[
        "kctl top",
        "kctl top groups --context prod",
        "kctl top --admin broker1:9644,broker2:9644",
        "kctl top --admin 1=kafka1:7071,2=kafka2:7071",
        "kctl top --once -o json",
        "kctl top topics --once --sort-by -bytes_in",
    ],
)
def top(
    ctx: typer.Context,
    view: Annotated[
        View | None,
        typer.Argument(
            metavar="VIEW",
            help="First view: brokers, topics, partitions, groups or reassignments.",
            show_default=False,
        ),
    ] = None,
    interval: Annotated[
        float,
        typer.Option("-i", "--interval", metavar="SECONDS", min=0.2, help="Refresh interval."),
    ] = 2.0,
    window: Annotated[
        float,
        typer.Option(
            "-w",
            "--window",
            metavar="SECONDS",
            min=1,
            help="Window for the verdicts of groups.",
        ),
    ] = DEFAULT_WINDOW_S,
    once: Annotated[
        bool,
        typer.Option(
            "--once", help="Read twice, --interval apart, print VIEW or all of them, and exit."
        ),
    ] = False,
    admin: Annotated[
        str | None,
        typer.Option(
            "--admin",
            metavar="[ID=]HOST:PORT,…",
            envvar="KCTL_ADMIN",
            help="Admin ports of the brokers, or endpoints of the JMX exporter with the ids of "
            "their brokers. [KCTL_ADMIN]",
            show_envvar=False,
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", metavar="FILE", help="File with the bearer token of the admin ports."
        ),
    ] = None,
) -> None:
    """Watch a cluster on the terminal: brokers, topics, partitions, groups, reassignments.

    Works on any Kafka. Rates come from log end offsets and log directories; with --admin they come
    from the brokers' own metrics, which also count what consumers read, requests and their times.
    Admin ports of `kctl dev` clusters are found without it.

    Enter opens what is under the cursor, Esc goes back, / filters, the arrows sort, space freezes
    the screen, c copies the kctl command that shows the same, ? lists all keys.

    A broker that does not answer is named, and the others are shown. Needs a terminal and Textual:
    pip install 'kctl[top]'. --once needs neither.
    """
    session = session_of(ctx)
    if "timeout" not in session.given:
        session.timeout = _TIMEOUT_S
    name = session.active_context[0] or session.bootstrap_servers()
    endpoints = _dev_endpoints(session) if admin is None else parse_endpoints(admin)
    source = Source(session, name, interval, window, endpoints, _token(token_file))
    if once:
        _print_once(session, source, view)
    else:
        _run(session, source, view or View.BROKERS)


def _run(session: Session, source: Source, view: View) -> None:
    if find_spec("textual") is None:
        raise CliError(
            "kctl top needs Textual, which is not installed",
            "pip install 'kctl[top]'; kctl top --once works without it",
        )
    if not session.out.is_on_terminal:
        raise usage_error("kctl top needs a terminal", "--once prints one sample")
    from kctl.top.app import TopApp  # imported here: Textual is optional, and takes 0.3 s

    TopApp(source, view, _cluster_options(session)).run()


def _print_once(session: Session, source: Source, view: View | None) -> None:
    out = session.out
    is_whole = view is None and not out.format.is_for_people
    if is_whole and out.format not in (OutputFormat.JSON, OutputFormat.YAML):
        raise usage_error(
            f"-o {out.format} prints one view", f"name it: kctl top {View.TOPICS} --once"
        )
    collector = Collector(source)
    collector.sample()
    time.sleep(source.interval_s)
    sample = collector.sample()
    if view is not None:
        out.rows(PAGES[view].rows(sample), PAGES[view].columns, name=PAGES[view].identity[0])
    elif is_whole:
        out.record(_document(sample), [], name="cluster")
    else:
        for found, page in PAGES.items():
            # Partitions are many: they are printed if they are asked for.
            if found is not View.PARTITIONS and (rows := page.rows(sample)):
                out.heading(page.title)
                out.rows(rows, page.columns, name=page.identity[0])
                out.lines([""])
    for problem in sample.reading.problems:
        out.note(problem)
    if sample.reading.snapshot.unanswered:
        raise typer.Exit(4)


def _document(sample: TopSample) -> Mapping[str, object]:
    snapshot = sample.reading.snapshot
    views = {str(view): [dict(row) for row in page.rows(sample)] for view, page in PAGES.items()}
    return {
        "cluster": snapshot.name,
        "cluster_id": snapshot.cluster.cluster_id,
        "controller_id": snapshot.cluster.controller_id,
        **views,
        "problems": list(sample.reading.problems),
    }


def _dev_endpoints(session: Session) -> list[MetricsEndpoint]:
    """The admin ports of a `kctl dev` cluster, if this is one."""
    wanted = set(session.bootstrap_servers().split(","))
    running = [one for one in dev_brokers(state_directory()) if one.pid() is not None]
    if not wanted & {one.address() for one in running}:
        return []
    urls = {one.broker_id: one.admin_url() for one in running}
    return [MetricsEndpoint(f"{url}/metrics", number) for number, url in urls.items() if url]


def _cluster_options(session: Session) -> Sequence[str]:
    """The options that name the cluster, for commands that are copied."""
    given = []
    if session.active_context[0]:
        given += ["--context", session.active_context[0]]
    else:
        given += ["-b", session.bootstrap_servers()]
    if session.command_config:
        given += ["--command-config", session.command_config]
    return given


def _token(path: Path | None) -> str | None:
    try:
        return None if path is None else read_small_text(path).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(f"cannot read {path}: {error}", "check --token-file") from error
