"""Rows of changes to configs: the value now and the value afterwards."""

from collections.abc import Sequence

from kctl.cli.tables import Column
from kctl.model.configs import Change, Config, Entity

COLUMNS = [Column("entity"), Column("config"), Column("now"), Column("then")]

SECRET = "(secret)"  # noqa: S105 - what is shown instead of one


def change_rows(
    entity: Entity, configs: Sequence[Config], changes: Sequence[Change]
) -> list[dict[str, object]]:
    """The current value, and the value after each change."""
    by_name = {config.name: config for config in configs}
    return [_row(entity, by_name.get(change.name), change) for change in changes]


def _row(entity: Entity, config: Config | None, change: Change) -> dict[str, object]:
    now = config.value if config else None
    then = change.value_after(config)
    if config and config.sensitive:
        now, then = SECRET, SECRET if then else None
    return {"entity": str(entity), "config": change.name, "now": now, "then": then}
