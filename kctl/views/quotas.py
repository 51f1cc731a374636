"""Rows and columns of `kctl quotas`."""

from collections.abc import Iterator, Mapping

from kctl.cli.tables import Column
from kctl.model.quotas import QuotaEntity, QuotaEntry, ResolvedQuota
from kctl.views.config_changes import NOW, THEN

COLUMNS = [Column("entity"), Column("quota"), Column("value", right=True)]
CHANGE_COLUMNS = [Column("entity"), Column("quota", priority=0), NOW, THEN]
RESOLVED_COLUMNS = [
    Column("quota"),
    Column("value", right=True),
    Column("unit"),
    Column("entity", "FROM", priority=1),
    Column("shared_by"),
    Column("overridden", "OVERRIDES"),
]


def number(value: float | None) -> float | int | None:
    """Whole numbers without a fraction."""
    return int(value) if value is not None and value == int(value) else value


def quota_rows(entry: QuotaEntry) -> Iterator[dict[str, object]]:
    """The quotas of an entity as rows of COLUMNS."""
    parts = {f"{part.type.word}": part.name for part in entry.entity.parts}
    for quota, value in sorted(entry.values.items()):
        yield {"entity": str(entry.entity), "quota": quota, "value": number(value), "parts": parts}


def change_rows(
    entity: QuotaEntity, now: Mapping[str, float], changes: Mapping[str, float | None]
) -> list[dict[str, object]]:
    """The quotas of an entity before and after a change."""
    return [
        {
            "entity": str(entity),
            "quota": quota,
            "now": number(now.get(quota)),
            "then": number(value),
        }
        for quota, value in changes.items()
    ]


def resolved_row(one: ResolvedQuota) -> dict[str, object]:
    """A resolved quota as a row of RESOLVED_COLUMNS."""
    return {
        "quota": one.quota,
        "value": number(one.value),
        "unit": one.unit,
        "entity": str(one.entity) if one.entity else None,
        "shared_by": one.shared_by or None,
        "overridden": [f"{entity} {number(value)}" for entity, value in one.overridden],
    }
