"""Rows and columns of `kctl features`."""

from collections.abc import Sequence

from kctl.cli.tables import Column
from kctl.model.features import Feature, Features, FeatureUpdate, level_name

COLUMNS = [
    Column("feature", priority=0),
    Column("finalized", right=True, priority=0),
    Column("min", right=True, priority=2),
    Column("max", right=True, priority=1),
    Column("finalized_level", right=True, wide=True),
    Column("epoch", right=True, wide=True),
]

UPDATE_COLUMNS = [
    Column("feature", priority=0),
    Column("now", right=True, priority=0),
    Column("then", right=True, priority=0),
]


LEVEL_COLUMNS = [
    Column("feature", priority=0),
    Column("level", right=True, priority=0),
    Column("version", right=True),
]


def level_row(update: FeatureUpdate) -> dict[str, object]:
    """The level of a feature in a release."""
    name = level_name(update.name, update.level)
    return {"feature": update.name, "level": update.level, "version": name}


def feature_row(feature: Feature, features: Features) -> dict[str, object]:
    """A feature as a row of COLUMNS; metadata versions by name, `finalized_level` as a number."""
    return {
        "feature": feature.name,
        "finalized": level_name(feature.name, feature.finalized) if feature.finalized else "0",
        "min": level_name(feature.name, feature.min_version),
        "max": level_name(feature.name, feature.max_version),
        "finalized_level": feature.finalized,
        "epoch": features.epoch,
    }


def update_rows(features: Features, updates: Sequence[FeatureUpdate]) -> list[dict[str, object]]:
    """Levels before and after, sorted by name."""
    rows: list[dict[str, object]] = []
    for update in sorted(updates, key=lambda update: update.name):
        known = features.get(update.name)
        rows.append(
            {
                "feature": update.name,
                "now": level_name(update.name, known.finalized) if known else None,
                "then": level_name(update.name, update.level) if update.level else "0",
            }
        )
    return rows
