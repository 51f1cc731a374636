"""Rows and columns of `kctl health`."""

from collections.abc import Sequence

from kctl.cli.tables import Column, Row
from kctl.cli.theme import Style
from kctl.model.health import Finding, Severity


def _style(row: Row) -> Style:
    return Style.BAD if row["severity"] == Severity.CRITICAL else Style.WARN


COLUMNS = [
    Column("severity", style=_style),
    Column("check", priority=6),
    Column("subject", priority=0),
    Column("message", priority=0),
    Column("hint", wide=True),
]


def finding_rows(findings: Sequence[Finding]) -> list[dict[str, object]]:
    """A row of COLUMNS per finding."""
    return [
        {
            "severity": str(finding.severity),
            "check": finding.check,
            "subject": finding.subject,
            "message": finding.message,
            "hint": finding.hint,
        }
        for finding in findings
    ]
