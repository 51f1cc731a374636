"""Hooks of MkDocs: menu entries that are directories, and links that leave the site.

Pages link to files of the repository (`../CONTRIBUTING.md`, `deploy/kctl-broker.service`). Those in
docs/ are copied to the site. Links to files above docs/ become plain text there, because the site
does not contain them; `tests/docs/test_links.py` checks that the files exist.
"""

import re
from pathlib import Path
from typing import Any

_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+(?:[A-Z]+\.md|man|completions|bench|tests)[^)]*\)")
_SECTION = "how-kafka-works"
_ORDER = (
    *("architecture", "storage", "replication", "isr", "replica-assignment", "leader-election"),
    *("all-replicas-down", "broker-failover", "controller", "producer-routing", "groups"),
    *("offset-storage", "delivery", "zero-copy", "admin-tools", "monitoring", "demo"),
)
"""Chapters whose names begin so are listed in this order, others after them by name."""


def on_config(config: Any) -> Any:
    """Replace the entry of a directory in the menu by its pages, or remove it if it has none."""
    directory = Path(config["docs_dir"]) / _SECTION
    pages = sorted(directory.glob("*.md"), key=_position)
    entries = [f"{_SECTION}/{page.name}" for page in pages]
    nav = [entry for entry in config["nav"] if _SECTION not in entry.values()]
    if entries:
        place = next(i for i, entry in enumerate(config["nav"]) if _SECTION in entry.values())
        (title,) = config["nav"][place]
        nav.insert(place, {title: entries})
    config["nav"] = nav
    return config


def _position(page: Path) -> tuple[int, str]:
    if page.stem in ("index", "README"):
        return -1, page.name
    known = [number for number, name in enumerate(_ORDER) if page.stem.startswith(name)]
    return (known[0] if known else len(_ORDER)), page.name


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Turn links to files outside of docs/ into text."""
    return _OUTSIDE.sub(r"\1", markdown)
