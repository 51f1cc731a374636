"""Changes to settings: what was said, what it makes of the present values, how it is shown."""

from collections.abc import Iterable, Mapping, Sequence

from kctl.admin.configs import Change, Config, Entity, Operation
from kctl.errors import CliError, ExitStatus
from kctl.tables import Column
from kctl.words.configs import parse_pairs

COLUMNS = [Column("entity"), Column("config"), Column("now"), Column("then")]
SECRET = "(secret)"  # noqa: S105 - what is shown instead of one


def parse_changes(
    *,
    set_pairs: Mapping[str, str] | None = None,
    deleted: Iterable[str] = (),
    appended: Iterable[str] = (),
    subtracted: Iterable[str] = (),
) -> list[Change]:
    """The changes that options name; CliError if two of them are about the same setting."""
    changes = [Change(name, Operation.SET, value) for name, value in (set_pairs or {}).items()]
    changes += [Change(name.strip(), Operation.DELETE) for name in deleted]
    for option, operation, texts in (
        ("--append", Operation.APPEND, appended),
        ("--subtract", Operation.SUBTRACT, subtracted),
    ):
        pairs = parse_pairs(texts, option)
        changes += [Change(name, operation, value) for name, value in pairs.items()]
    names = [change.name for change in changes]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise CliError(
            f"{', '.join(twice)}: more than one change to the same setting",
            "say each setting once",
            ExitStatus.USAGE,
        )
    return changes


def change_rows(
    entity: Entity, configs: Sequence[Config], changes: Sequence[Change]
) -> list[dict[str, object]]:
    """What each change makes of the value there is now."""
    by_name = {config.name: config for config in configs}
    return [_row(entity, by_name.get(change.name), change) for change in changes]


def _row(entity: Entity, config: Config | None, change: Change) -> dict[str, object]:
    now = config.value if config else None
    then = _then(now, config, change)
    if config and config.sensitive:
        now, then = SECRET, SECRET if then else None
    return {"entity": str(entity), "config": change.name, "now": now, "then": then}


def _then(now: str | None, config: Config | None, change: Change) -> str | None:
    """The value afterwards; of a deleted one, what counts next: the synonym after the own value."""
    if change.operation is Operation.SET:
        return change.value
    if change.operation is Operation.DELETE:
        rest = config.synonyms[1:] if config else ()
        return rest[0].value if rest else None
    present = [item for item in (now or "").split(",") if item]
    named = [item.strip() for item in (change.value or "").split(",")]
    if change.operation is Operation.APPEND:
        return ",".join([*present, *(item for item in named if item not in present)])
    return ",".join(item for item in present if item not in named)
