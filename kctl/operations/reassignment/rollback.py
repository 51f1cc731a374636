"""Plan files: the rollback of a reassignment, and plans written with `--out`."""

from datetime import datetime
from pathlib import Path

from kctl.cli.arguments.plan_files import reassignment_json
from kctl.cli.errors import CliError
from kctl.cli.options import Session
from kctl.cli.state_home import state_home
from kctl.model.assignments import Assignment, ReassignmentFile


def write_rollback(session: Session, path: Path | None, current: ReassignmentFile) -> None:
    """Write the plan that undoes the reassignment about to start, and print how to run it.

    CliError if the file cannot be written or exists: it may be the rollback of another run.
    """
    target = path or _new_name()
    if target.exists():
        raise CliError(
            f"{target} already exists: nothing was changed", "use --rollback with another file"
        )
    _write(target, reassignment_json(current.replicas, current.log_dirs), "use --rollback FILE")
    # `run` waits for completion, which brokers do not report for moves between directories.
    verb = "execute" if current.log_dirs else "run --file"
    session.out.note(f"rollback: kctl reassign {verb} {target}")


def rollback_home() -> Path:
    """The directory of rollback files."""
    return state_home() / "rollbacks"


def _new_name() -> Path:
    stem = f"{datetime.now():%Y%m%d-%H%M%S}"
    directory = rollback_home()
    names = (directory / f"{stem}{end}.json" for end in ("", *(f"-{n}" for n in range(2, 1000))))
    return next(name for name in names if not name.exists())


def write_plan(path: Path, assignment: Assignment) -> None:
    """Write Kafka's JSON; CliError if the file cannot be written."""
    write_plan_file(path, reassignment_json(assignment))


def write_plan_file(path: Path, text: str) -> None:
    """Write the JSON of a plan; CliError if the file cannot be written."""
    _write(path, text, "choose another file")


def _write(path: Path, text: str, hint: str) -> None:
    try:
        if path.is_relative_to(rollback_home()):
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    except OSError as error:
        raise CliError(
            f"cannot write {path}: {error.strerror}: nothing was changed", hint
        ) from error
