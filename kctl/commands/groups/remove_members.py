"""`kctl groups remove-members`."""

from typing import Annotated

import typer

from kctl.admin.connection import ask
from kctl.admin.group_changes import remove_members
from kctl.admin.groups import describe_groups
from kctl.cli.confirmation import DryRun, Plan, Yes, confirm_plan
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.options import session_of
from kctl.commands.groups.arguments import GroupName
from kctl.model.groups import Group, Member
from kctl.views.groups import MEMBER_COLUMNS, member_rows
from kctl.views.outcomes import outcome_columns, show_outcomes
from kctl.views.quantities import plural


def remove_group_members(
    ctx: typer.Context,
    group: GroupName,
    members: Annotated[
        list[str] | None,
        typer.Option("--member", help="Member id; can be repeated."),
    ] = None,
    instances: Annotated[
        list[str] | None,
        typer.Option("--instance", help="Instance id of a static member; can be repeated."),
    ] = None,
    all_members: Annotated[bool, typer.Option("--all", help="All members.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Remove members from a group, such as static members that will not return.

    A live consumer notices it and joins again.
    """
    session = session_of(ctx)
    (found,) = ask(session, lambda client: describe_groups(client, [group]))
    chosen = _chosen(found, members or [], instances or [], all_members=all_members)
    ids = {member.member_id for member in chosen}
    rows = [row for row in member_rows(found) if row["member_id"] in ids]
    plan = Plan(
        f"Remove {plural(len(rows), 'member')} of {group}?",
        rows,
        MEMBER_COLUMNS,
        "member_id",
        outcome_columns("member"),
    )
    if not confirm_plan(session, plan, yes=yes, dry_run=dry_run):
        return
    check = f"kctl groups describe {group} --members"
    outcomes = ask(session, lambda client: remove_members(client, group, chosen), check=check)
    show_outcomes(session.out, outcomes, "member", "removed")


def _chosen(
    group: Group, members: list[str], instances: list[str], *, all_members: bool
) -> list[Member]:
    if not (members or instances or all_members):
        raise CliError("no member specified", "use --member, --instance or --all", ExitStatus.USAGE)
    if not group.exists:
        raise CliError(f"no such group: {group.group_id!r}", "kctl groups list shows the groups")
    known = {member.member_id for member in group.members}
    known |= {member.group_instance_id or "" for member in group.members}
    missing = [name for name in [*members, *instances] if name not in known]
    if missing:
        raise CliError(
            f"{group.group_id} has no member {missing[0]}", "kctl groups describe --members"
        )
    return [
        member
        for member in group.members
        if all_members or member.member_id in members or member.group_instance_id in instances
    ]
