"""Recorded responses of Apache Kafka in all admin conversations: one line per case.

`pytest -m kafka tests/conformance/test_admin_on_kafka.py --rewrite` records them again.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.conformance import admin_cluster, admin_offsets, admin_security, admin_topics

FILE = Path(__file__).parent.parent / "golden" / "admin-answers.jsonl"

Answers = dict[tuple[str, int], list[Any]]
"""By the name of the exchange and the version."""

CASES = [
    case
    for module in (admin_topics, admin_offsets, admin_cluster, admin_security)
    for exchange in module.EXCHANGES
    for case in exchange.cases()
]
IDS = [f"{exchange.name}-v{version}" for exchange, version in CASES]


def read_answers() -> Answers:
    """Read the file."""
    lines = map(json.loads, FILE.read_text().splitlines())
    return {(line["exchange"], line["version"]): line["answers"] for line in lines}


def write_answers(answers: Mapping[tuple[str, int], list[Any]]) -> None:
    """Replace the file."""
    lines = [
        json.dumps({"exchange": name, "version": version, "answers": found}, separators=(",", ":"))
        for (name, version), found in answers.items()
    ]
    FILE.write_text("\n".join(lines) + "\n")
