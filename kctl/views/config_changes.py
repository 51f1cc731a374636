"""Rows of changes to configs: the value now and the value afterwards."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from kctl.cli.tables import Column, Row
from kctl.cli.theme import Style
from kctl.model.configs import Change, Config, Entity, Operation


def _if_changed(style: Style) -> Callable[[Row], Style | None]:
    return lambda row: style if row.get("now") != row.get("then") else Style.FAINT


NOW = Column("now", priority=1, style=_if_changed(Style.BAD))
THEN = Column("then", priority=0, style=_if_changed(Style.GOOD))
COLUMNS = [Column("entity"), Column("config", priority=0), NOW, THEN]

SECRET = "(secret)"  # noqa: S105 - what is shown instead of one


def change_rows(
    entity: Entity,
    configs: Sequence[Config],
    changes: Sequence[Change],
    defaults: Mapping[str, str | None] = MappingProxyType({}),
) -> list[dict[str, object]]:
    """The current value, and the value after each change.

    `defaults` has values that apply after a deletion, for configs whose synonyms are not known.
    """
    by_name = {config.name: config for config in configs}
    return [_row(entity, by_name.get(change.name), change, defaults) for change in changes]


def _row(
    entity: Entity, config: Config | None, change: Change, defaults: Mapping[str, str | None]
) -> dict[str, object]:
    now = config.value if config else None
    then = change.value_after(config)
    if then is None and change.operation is Operation.DELETE:
        then = defaults.get(change.name)
    if config and config.sensitive:
        now, then = SECRET, SECRET if then else None
    return {"entity": str(entity), "config": change.name, "now": now, "then": then}
