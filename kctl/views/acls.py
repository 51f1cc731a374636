"""Rows and columns of `kctl acls`."""

import shlex
from collections.abc import Collection, Mapping, Sequence

from broker.security.acls import WILDCARD, PatternType, ResourceType
from kctl.cli.output import Output
from kctl.cli.tables import Column, by_word
from kctl.cli.theme import Style
from kctl.model.acl_decisions import Decision, Finding, Remedy
from kctl.model.acls import Acl
from kctl.model.outcomes import Outcome
from kctl.views.outcomes import raise_failures

COLUMNS = [
    Column("principal", priority=0),
    Column("permission", priority=1, style=by_word("permission")),
    Column("operation", priority=1),
    Column("resource", priority=0),
    Column("pattern_type", "PATTERN", priority=3),
    Column("host", priority=2),
    Column("resource_type", wide=True),
    Column("resource_name", wide=True),
]
CHANGE_COLUMNS = [Column("change", style=by_word("change")), *COLUMNS]
STATUS_COLUMNS = [*COLUMNS, Column("status", priority=1, style=by_word("status"))]
FINDING_COLUMNS = [Column("finding"), *COLUMNS[:6], Column("because", priority=1), Column("other")]


def acl_row(acl: Acl) -> dict[str, object]:
    """An ACL as a row of COLUMNS."""
    return {
        "principal": acl.principal,
        "permission": acl.permission.name,
        "operation": acl.operation.name,
        "resource": str(acl.pattern),
        "pattern_type": acl.pattern.pattern_type.name,
        "host": acl.host,
        "resource_type": acl.pattern.type.name,
        "resource_name": acl.pattern.name,
    }


def change_rows(change: str, acls: Sequence[Acl]) -> list[dict[str, object]]:
    """ACLs that will be added or removed."""
    return [{"change": change, **acl_row(acl)} for acl in acls]


def show_acl_outcomes(
    out: Output,
    acls: Sequence[Acl],
    outcomes: Mapping[Acl, Outcome],
    done: str,
    removed: Collection[Acl] = (),
) -> None:
    """Print a row per ACL with its status; CliError if a change failed.

    An ACL without an outcome was left as it is.
    """
    rows = []
    for acl in acls:
        one = outcomes.get(acl)
        if one is None:
            status = "skipped" if acl in removed else "already exists"
        elif one.error:
            status = "failed"
        else:
            status = "removed" if acl in removed else done
        rows.append({**acl_row(acl), "status": status})
    out.rows(rows, STATUS_COLUMNS, name="principal", strict=False)
    raise_failures(list(outcomes.values()), "ACL")


def command_line(verb: str, acl: Acl) -> str:
    """The command that adds or removes one ACL."""
    word = acl.permission.name.lower()
    pattern = acl.pattern
    words = [*("kctl", "acls", verb), "cluster" if pattern.type is ResourceType.CLUSTER else ""]
    if not words[-1]:
        words[-1] = str(pattern)
    words += [f"--{word}", acl.principal, "--operation", acl.operation.name.lower()]
    if pattern.pattern_type is PatternType.PREFIXED:
        words += ["--pattern", "prefixed"]
    if acl.host != WILDCARD:
        words += [f"--{word}-host", acl.host]
    return shlex.join(words)


DECISION_COLUMNS = [
    Column("principal"),
    Column("operation"),
    Column("resource"),
    Column("host"),
    Column("allowed", style=lambda row: Style.GOOD if row.get("allowed") else Style.BAD),
    Column("reason"),
    Column("rule"),
]


def decision_row(decision: Decision, remedies: Sequence[Remedy]) -> dict[str, object]:
    """A decision as a record of DECISION_COLUMNS; JSON has all rules and the remedies too."""
    request = decision.request
    return {
        "principal": request.principal,
        "operation": request.operation.name,
        "resource": str(request.resource),
        "host": request.host,
        "allowed": decision.allowed,
        "reason": str(decision.reason),
        "rule": str(decision.rule) if decision.rule else None,
        "denying": [acl_row(acl) for acl in decision.denying],
        "allowing": [acl_row(acl) for acl in decision.allowing],
        "remedies": [remedy_text(remedy) for remedy in remedies],
    }


def remedy_text(remedy: Remedy) -> str:
    """A step that reverses a decision: a command, where there is one."""
    if remedy.acl is None:
        return str(remedy.step)
    return command_line(str(remedy.step), remedy.acl)


def finding_row(finding: Finding) -> dict[str, object]:
    """A finding as a row of FINDING_COLUMNS."""
    return {
        "finding": str(finding.problem),
        **acl_row(finding.acl),
        "because": finding.because,
        "other": str(finding.other) if finding.other else None,
        "remedy": command_line("remove", finding.acl),
    }
