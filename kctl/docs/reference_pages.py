"""Generated pages of docs/reference: the APIs that the broker serves, and the exit statuses."""

import inspect
import re

from broker.api.table import TABLE
from kctl.cli.errors import ExitStatus
from kctl.docs.broker_page import STATUSES

_APIS_HEAD = """\
# APIs and versions

What the broker serves, generated from `broker/api/table.py`; run `make docs` after a change there.
ApiVersions is computed from the same table. `kctl api-versions` shows what any broker serves. The
versions are those of Apache Kafka 3.9 in ZooKeeper mode, which a test compares.

| key | API | versions | what it does |
|---|---|---|---|
"""

_STATUSES_HEAD = """\
# Exit statuses

Generated from `kctl/cli/errors.py` and `kctl/docs/broker_page.py`; run `make docs` after a change
there. They are never renumbered.

## kctl

| status | meaning |
|---|---|
"""


def apis_page() -> str:
    """docs/reference/apis.md."""
    rows = []
    for key in sorted(TABLE):
        row = TABLE[key]
        first, last = row.versions
        summary = _summary(inspect.getmodule(row.handle))
        versions = f"{first} to {last}" if last > first else str(first)
        name = row.api_key.name.replace("_", " ").title().replace(" ", "")
        rows.append(f"| {key} | {name} | {versions} | {summary} |\n")
    return _APIS_HEAD + "".join(rows)


def _summary(module: object) -> str:
    """The first sentence of a handler's module, after `Handle <API>:`."""
    text = " ".join((module.__doc__ or "").split("\n\n")[0].split())
    summary = text.partition(": ")[2] or re.sub(r"^Handle \w+,? ?", "", text)
    return summary.partition(". ")[0].rstrip(".").replace("|", "\\|")


def exit_statuses_page() -> str:
    """docs/reference/exit-statuses.md."""
    kctl = "".join(f"| {status.value} | {status.meaning} |\n" for status in ExitStatus)
    broker = "".join(f"| {status} | {meaning} |\n" for status, meaning in STATUSES.items())
    head = "\n## kctl-broker\n\n| status | meaning |\n|---|---|\n"
    return _STATUSES_HEAD + kctl + head + broker
