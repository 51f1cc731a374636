"""`kctl features upgrade`, `downgrade` and `disable`."""

from collections.abc import Sequence
from typing import Annotated

import typer

from kctl.admin.connection import ask
from kctl.admin.features import UpgradeType, describe_features, update_features
from kctl.admin.quorum import not_kraft
from kctl.cli.confirmation import DryRun, Plan, Yes, confirm_plan
from kctl.cli.errors import CliError, ExitStatus, usage
from kctl.cli.options import KafkaText, Session, session_of
from kctl.model.features import (
    METADATA_VERSION,
    Features,
    FeatureUpdate,
    duplicates,
    metadata_level,
    parse_update,
    release_updates,
)
from kctl.model.outcomes import Outcome
from kctl.views.features import UPDATE_COLUMNS, update_rows
from kctl.views.kafka_text.features import update_lines
from kctl.views.outcomes import outcome_columns, show_outcomes

Updates = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FEATURE=LEVEL…",
        help="New levels, e.g. group.version=1 or metadata.version=4.1.",
        show_default=False,
    ),
]
FeatureOption = Annotated[
    list[str] | None, typer.Option("--feature", metavar="FEATURE=LEVEL", hidden=True)
]
Release = Annotated[
    str | None,
    typer.Option(
        "--release-version",
        metavar="RELEASE",
        help="Set all features to the levels of a release, e.g. 4.1.",
    ),
]
Metadata = Annotated[
    str | None,
    typer.Option("--metadata", metavar="VERSION", help="Same as metadata.version=VERSION."),
]
Unsafe = Annotated[bool, typer.Option("--unsafe", help="Allow a downgrade that loses metadata.")]


def upgrade(
    ctx: typer.Context,
    updates: Updates = None,
    feature: FeatureOption = None,
    release: Release = None,
    metadata: Metadata = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    text_format: KafkaText = None,
) -> None:
    """Raise the levels of features; all of them or none.

    Brokers of older releases cannot join the cluster afterwards. With --dry-run the controller
    checks the change without making it.
    """
    session = session_of(ctx)
    wanted = [one for one in _release(release) if one.level > 0]
    wanted += _parsed([*(updates or ()), *(feature or ())], metadata)
    _change(session, "upgrade", wanted, UpgradeType.UPGRADE, yes, dry_run, bool(text_format))


def downgrade(
    ctx: typer.Context,
    updates: Updates = None,
    feature: FeatureOption = None,
    release: Release = None,
    metadata: Metadata = None,
    unsafe: Unsafe = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    text_format: KafkaText = None,
) -> None:
    """Lower the levels of features; all of them or none. Level 0 switches a feature off."""
    session = session_of(ctx)
    wanted = [*_release(release), *_parsed([*(updates or ()), *(feature or ())], metadata)]
    _change(session, "downgrade", wanted, _downgrade(unsafe), yes, dry_run, bool(text_format))


def disable(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="FEATURE…", help="Features.", show_default=False),
    ] = None,
    feature: Annotated[
        list[str] | None, typer.Option("--feature", metavar="FEATURE", hidden=True)
    ] = None,
    unsafe: Unsafe = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    text_format: KafkaText = None,
) -> None:
    """Switch features off: the same as downgrading them to level 0."""
    session = session_of(ctx)
    wanted = [FeatureUpdate(name, 0) for name in [*(names or ()), *(feature or ())]]
    _change(session, "disable", wanted, _downgrade(unsafe), yes, dry_run, bool(text_format))


def _downgrade(unsafe: bool) -> UpgradeType:
    return UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE


def _release(release: str | None) -> list[FeatureUpdate]:
    return usage(release_updates, release) if release else []


def _parsed(texts: Sequence[str], metadata: str | None) -> list[FeatureUpdate]:
    parsed = [usage(parse_update, text) for text in texts]
    if metadata:
        parsed.append(FeatureUpdate(METADATA_VERSION, usage(metadata_level, metadata)))
    return parsed


def _change(
    session: Session,
    verb: str,
    wanted: Sequence[FeatureUpdate],
    upgrade_type: UpgradeType,
    yes: bool,
    dry_run: bool,
    as_kafka: bool,
) -> None:
    _check_names(verb, wanted)
    now = ask(session, describe_features)
    _check_known(now, wanted)
    if dry_run:
        checked = ask(
            session,
            lambda client: update_features(client, wanted, upgrade_type, validate_only=True),
        )
        if as_kafka:
            _show_kafka(session, verb, wanted, checked, dry_run=True)
            return
        _refuse(checked)
    plan = Plan(
        f"{verb.capitalize()} features?",
        update_rows(now, wanted),
        UPDATE_COLUMNS,
        "feature",
        outcome_columns("feature"),
    )
    if not confirm_plan(session, plan, yes=yes, dry_run=dry_run):
        return
    outcomes = ask(
        session,
        lambda client: update_features(client, wanted, upgrade_type, validate_only=False),
        check="kctl features describe",
    )
    if as_kafka:
        _show_kafka(session, verb, wanted, outcomes, dry_run=False)
    else:
        show_outcomes(session.out, outcomes, "feature", f"{verb}d")


def _check_names(verb: str, wanted: Sequence[FeatureUpdate]) -> None:
    if not wanted:
        hint = "e.g. share.version" if verb == "disable" else "e.g. group.version=1"
        raise CliError(f"no feature to {verb} specified", hint, ExitStatus.USAGE)
    if repeated := duplicates(wanted):
        hint = "specify one level for each feature"
        raise CliError(f"specified twice: {', '.join(repeated)}", hint, ExitStatus.USAGE)


def _check_known(now: Features, wanted: Sequence[FeatureUpdate]) -> None:
    if not now.features:
        raise not_kraft("it has no features")
    unknown = [one.name for one in wanted if one.level and now.get(one.name) is None]
    if unknown:
        raise CliError(
            f"the brokers do not support {', '.join(unknown)}",
            f"they support {', '.join(one.name for one in now.features)}",
        )


def _refuse(checked: Sequence[Outcome]) -> None:
    for one in checked:
        if one.error:
            raise CliError(f"{one.name}: {one.reason}", "nothing was changed")


def _show_kafka(
    session: Session,
    verb: str,
    wanted: Sequence[FeatureUpdate],
    outcomes: Sequence[Outcome],
    *,
    dry_run: bool,
) -> None:
    levels = {one.name: one.level for one in wanted}
    session.out.lines(update_lines(verb, outcomes, levels, dry_run=dry_run))
    if failed := sum(bool(one.error) for one in outcomes):
        raise CliError(f"{failed} out of {len(outcomes)} operation(s) failed.")
