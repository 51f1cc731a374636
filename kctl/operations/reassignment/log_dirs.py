"""Moves of replicas between the log directories of a broker."""

from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.log_dirs import describe_log_dirs
from kctl.admin.replica_log_dirs import move_replicas
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.options import Session
from kctl.model.assignments import ReassignmentFile, ReplicaPlace


def move_log_dirs(session: Session, wanted: ReassignmentFile) -> dict[ReplicaPlace, str]:
    """Start the moves; CliError for replicas that do not exist within the timeout."""
    if not wanted.log_dirs:
        return {}

    async def move(client: Client) -> dict[ReplicaPlace, str]:
        # Less than the timeout of the query, so that the started moves are still reported.
        return await move_replicas(client, wanted.log_dirs, timeout_s=session.timeout * 0.8)

    started = ask(session, move, check="kctl log-dirs")
    if late := [place for place in wanted.log_dirs if place not in started]:
        names = ",".join(f"{partition}-{broker}" for partition, broker in sorted(late))
        raise CliError(
            f"Timed out before log directory move{'s' * (len(late) != 1)} could be started"
            f" for: {names}",
            "run it again with --additional when the replicas have arrived",
            ExitStatus.TIMED_OUT,
        )
    return started


def current_log_dirs(session: Session, wanted: ReassignmentFile) -> dict[ReplicaPlace, str]:
    """The directories that hold the replicas which the plan moves between directories."""
    brokers = {broker for _, broker in wanted.log_dirs}
    if not brokers:
        return {}
    dirs = ask(session, lambda client: describe_log_dirs(client, brokers))
    found = {
        (replica.partition, log_dir.broker_id): log_dir.path
        for log_dir in dirs
        for replica in log_dir.replicas
        if not replica.is_future
    }
    return {place: found[place] for place in wanted.log_dirs if place in found}
