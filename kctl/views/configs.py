"""Rows and columns of `kctl configs`."""

from collections.abc import Sequence

from kctl.cli.tables import Column, Row
from kctl.cli.theme import Style
from kctl.model.configs import Config, Entity
from kctl.views.config_changes import SECRET
from kctl.views.styles import always

_SOURCES = {"default": Style.FAINT, "static": None}


def _source_style(row: Row) -> Style | None:
    """Values that were set at run time stand out."""
    return _SOURCES.get(str(row.get("source")).partition("-")[0].lower(), Style.NAME)


COLUMNS = [
    Column("entity", priority=1),
    Column("config", priority=0),
    Column("value", priority=0),
    Column("source", priority=4, style=_source_style),
    Column("type", wide=True),
    Column("read_only", wide=True),
    Column("sensitive", wide=True),
    Column("synonyms", wide=True),
]

DOCUMENTED_COLUMNS = [*COLUMNS, Column("documentation")]

DIFF_COLUMNS = [
    Column("config"),
    Column("left", priority=0, style=always(Style.BAD)),
    Column("right", priority=0, style=always(Style.GOOD)),
    Column("sources", wide=True),
]


def config_row(entity: Entity, config: Config, *, docs: bool) -> dict[str, object]:
    """A config as a row of COLUMNS."""
    row: dict[str, object] = {
        "entity": str(entity),
        "config": config.name,
        "value": SECRET if config.sensitive and config.value is None else config.value,
        "source": config.source,
        "type": config.type,
        "read_only": config.read_only,
        "sensitive": config.sensitive,
        "synonyms": [f"{s.source}:{s.name}={s.value}" for s in config.synonyms],
    }
    return row | ({"documentation": config.documentation} if docs else {})


def diff_rows(left: Sequence[Config], right: Sequence[Config]) -> list[dict[str, object]]:
    """A row per config whose values differ; a missing config counts as unset."""
    sides = {config.name: config for config in left}, {config.name: config for config in right}
    rows: list[dict[str, object]] = []
    for name in sorted(sides[0].keys() | sides[1].keys()):
        one, other = sides[0].get(name), sides[1].get(name)
        values = [config.value if config else None for config in (one, other)]
        if values[0] != values[1]:
            sources = [config.source if config else None for config in (one, other)]
            rows.append({"config": name, "left": values[0], "right": values[1], "sources": sources})
    return rows
