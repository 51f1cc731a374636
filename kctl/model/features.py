"""Features of a cluster (KIP-584): supported and finalized levels, and the levels of a release."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

METADATA_VERSION: Final = "metadata.version"

METADATA_VERSIONS: Final = (
    *("3.0-IV1", "3.1-IV0", "3.2-IV0", "3.3-IV0", "3.3-IV1", "3.3-IV2", "3.3-IV3"),
    *("3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2"),
    *("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0"),
    *("4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1"),
    *("4.2-IV0", "4.2-IV1"),
)
"""Names of the levels of metadata.version, from level 1 on, up to Kafka 4.2."""

RELEASE_LEVELS: Final = {
    "kraft.version": (("3.9-IV0", 1),),
    "transaction.version": (("4.0-IV2", 2),),
    "group.version": (("4.0-IV0", 1),),
    "eligible.leader.replicas.version": (("4.1-IV0", 1),),
    "share.version": (("4.2-IV0", 1),),
    "streams.version": (("4.2-IV1", 1),),
}
"""By feature: the metadata version from which a release has a level by default."""


@dataclass(frozen=True)
class Feature:
    """A feature that the brokers support, and its level in this cluster (0: off)."""

    name: str
    min_version: int
    max_version: int
    finalized: int


@dataclass(frozen=True)
class Features:
    """The features of a cluster, sorted by name; `epoch` is None if none was ever finalized."""

    features: tuple[Feature, ...]
    epoch: int | None

    def get(self, name: str) -> Feature | None:
        """The feature of this name, if the brokers support it."""
        return next((one for one in self.features if one.name == name), None)


@dataclass(frozen=True)
class FeatureUpdate:
    """A new level of a feature; 0 switches it off."""

    name: str
    level: int


def level_name(feature: str, level: int) -> str:
    """A level as kafka-features prints it: metadata versions by name."""
    if feature != METADATA_VERSION:
        return str(level)
    if 1 <= level <= len(METADATA_VERSIONS):
        return METADATA_VERSIONS[level - 1]
    return f"UNKNOWN [{level}]"


def metadata_level(text: str) -> int:
    """The level of `4.1-IV1`, or of the last version of release `4.1`; ValueError if unknown."""
    names = [
        name for name in METADATA_VERSIONS if name == text or re.sub(r"-IV\d+$", "", name) == text
    ]
    if not names:
        raise ValueError(f"{text!r} is not a metadata version")
    return METADATA_VERSIONS.index(names[-1]) + 1


def parse_update(text: str) -> FeatureUpdate:
    """Parse `group.version=1` or `metadata.version=4.1`; ValueError if it is malformed."""
    name, equals, level = text.partition("=")
    name, level = name.strip(), level.strip()
    if not (name and equals and level):
        raise ValueError(f"{text!r} is not FEATURE=LEVEL")
    if level.isdecimal() and int(level) <= 0x7FFF:
        return FeatureUpdate(name, int(level))
    if name == METADATA_VERSION:
        return FeatureUpdate(name, metadata_level(level))
    raise ValueError(f"{text!r}: the level must be a number from 0 to 32767")


def release_updates(release: str) -> list[FeatureUpdate]:
    """The levels of a release by default; ValueError if it is unknown."""
    version = metadata_level(release)
    updates = [FeatureUpdate(METADATA_VERSION, version)]
    for name, levels in RELEASE_LEVELS.items():
        reached = [level for since, level in levels if metadata_level(since) <= version]
        updates.append(FeatureUpdate(name, max(reached, default=0)))
    return updates


def duplicates(updates: Iterable[FeatureUpdate]) -> list[str]:
    """Features that are named more than once."""
    names = [update.name for update in updates]
    return sorted({name for name in names if names.count(name) > 1})
