"""Plan files: the rollback of a reassignment, and plans written with `--out`."""

from datetime import datetime
from pathlib import Path

from kctl.cli.arguments.plan_files import reassignment_json
from kctl.cli.errors import CliError
from kctl.cli.options import Session
from kctl.model.assignments import Assignment


def write_rollback(session: Session, path: Path | None, current: Assignment) -> None:
    """Write the plan that undoes the reassignment about to start.

    CliError if the file cannot be written or exists: it may be the rollback of another run.
    """
    target = path or _new_name()
    if target.exists():
        raise CliError(
            f"{target} already exists: nothing was changed", "use --rollback with another file"
        )
    write_plan(target, current)
    session.out.note(f"rollback: kctl reassign run --file {target}")


def _new_name() -> Path:
    stem = f"kctl-rollback-{datetime.now():%Y%m%d-%H%M%S}"
    names = (Path(f"{stem}{end}.json") for end in ("", *(f"-{n}" for n in range(2, 1000))))
    return next(name for name in names if not name.exists())


def write_plan(path: Path, assignment: Assignment) -> None:
    """Write Kafka's JSON; CliError if the file cannot be written."""
    try:
        path.write_text(reassignment_json(assignment) + "\n")
    except OSError as error:
        raise CliError(
            f"cannot write {path}: {error.strerror}: nothing was changed", "choose another file"
        ) from error
