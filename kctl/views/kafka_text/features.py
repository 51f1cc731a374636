"""The output of kafka-features."""

from collections.abc import Iterator, Mapping, Sequence

from kctl.model.features import METADATA_VERSION, Features, FeatureUpdate, level_name
from kctl.model.outcomes import Outcome


def description_lines(features: Features) -> Iterator[str]:
    """`describe`."""
    epoch = "-" if features.epoch is None else features.epoch
    for one in features.features:
        yield "\t".join(
            (
                f"Feature: {one.name}",
                f"SupportedMinVersion: {level_name(one.name, one.min_version)}",
                f"SupportedMaxVersion: {level_name(one.name, one.max_version)}",
                f"FinalizedVersionLevel: {level_name(one.name, one.finalized)}",
                f"Epoch: {epoch}",
            )
        )


def update_lines(
    verb: str, outcomes: Sequence[Outcome], levels: Mapping[str, int], *, dry_run: bool
) -> Iterator[str]:
    """`upgrade`, `downgrade` and `disable`: one line per feature."""
    for one in outcomes:
        to = "" if verb == "disable" else f" to {levels[one.name]}"
        if one.error:
            yield f"{'Can' if dry_run else 'Could'} not {verb} {one.name}{to}. {one.message}"
        else:
            yield f"{one.name} {'can be' if dry_run else 'was'} {verb}d{to}."


def mapping_lines(release: str, updates: Sequence[FeatureUpdate]) -> Iterator[str]:
    """`version-mapping`."""
    for one in updates:
        suffix = f" ({release})" if one.name == METADATA_VERSION else ""
        yield f"{one.name}={one.level}{suffix}"
