"""Links between pages lead somewhere, and the modules that pages name exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
MODULE = re.compile(r"\b((?:broker|kctl|tests|bench|[a-z_]+)/[a-z_/]+\.(?:py|txt|md|yml))\b")
DIAGRAMS = ("docs/architecture.md", "CONTRIBUTING.md")
"""Pages that name modules by their paths below broker/ or kctl/."""


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_of_a_page_lead_to_files_and_headings(page: Path) -> None:
    for link in LINK.findall(page.read_text()):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name_of(page)}: {link}"
        if anchor:
            assert anchor in anchors(target), f"{name_of(page)}: {link}"


@pytest.mark.parametrize("name", DIAGRAMS)
def test_modules_that_a_page_names_exist(name: str) -> None:
    named = MODULE.findall((ROOT / name).read_text())
    places = (ROOT, ROOT / "broker", ROOT / "kctl", ROOT / "docs")
    missing = [path for path in named if not any((place / path).exists() for place in places)]
    assert named
    assert not missing
