"""`kctl cluster unregister`."""

from typing import Annotated

import typer

from kctl.admin.cluster import describe_cluster, unregister_broker
from kctl.admin.connection import ask
from kctl.admin.quorum import not_kraft
from kctl.cli.confirmation import DryRun, Plan, Yes, confirm_plan
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.options import KafkaText, session_of
from kctl.model.cluster import Cluster
from kctl.views.cluster import UNREGISTER_COLUMNS
from kctl.views.outcomes import outcome_columns, show_outcomes


def unregister(
    ctx: typer.Context,
    broker: Annotated[
        int | None,
        typer.Argument(metavar="BROKER", min=0, help="The broker id.", show_default=False),
    ] = None,
    broker_option: Annotated[
        int | None, typer.Option("--id", min=0, metavar="BROKER", hidden=True)
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    text_format: KafkaText = None,
) -> None:
    """Remove a broker that will not return from the metadata of a KRaft cluster.

    The broker must be stopped and hold no replicas: kctl reassign run --drain moves
    them away. In clusters that use ZooKeeper a broker that stops is unregistered automatically.
    """
    session = session_of(ctx)
    broker_id = broker if broker is not None else broker_option
    if broker_id is None:
        raise CliError("no broker specified", "e.g. kctl cluster unregister 4", ExitStatus.USAGE)
    _check(ask(session, describe_cluster), broker_id)
    row = {"broker": broker_id, "change": "unregister"}
    results = outcome_columns("broker")
    plan = Plan(f"Unregister broker {broker_id}?", [row], UNREGISTER_COLUMNS, "broker", results)
    if not confirm_plan(session, plan, yes=yes, dry_run=dry_run):
        return

    result = ask(
        session, lambda client: unregister_broker(client, broker_id), check="kctl brokers list"
    )
    if text_format and not result.error:
        session.out.lines([f"Broker {broker_id} is no longer registered."])
        return
    show_outcomes(session.out, [result], "broker", "unregistered")


def _check(cluster: Cluster, broker_id: int) -> None:
    if not cluster.is_kraft:
        raise not_kraft("its brokers are unregistered when they stop")
    if any(broker.id == broker_id for broker in cluster.brokers):
        raise CliError(
            f"broker {broker_id} is running: nothing was changed",
            "stop it first; a broker that runs registers itself again",
        )
