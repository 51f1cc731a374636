"""The documentation site builds strictly: no page is missing from the menu, no link is broken."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def build(root: Path, site: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=root,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_site_builds_strictly(tmp_path: Path) -> None:
    done = build(ROOT, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "kctl groups" in (tmp_path / "guide" / "groups" / "index.html").read_text()


@pytest.mark.slow
def test_broken_link_fails_the_build(tmp_path: Path) -> None:
    config = (ROOT / "mkdocs.yml").read_text().partition("nav:\n  - Home")[0]
    (tmp_path / "mkdocs.yml").write_text(config.replace("hooks: [kctl/docs/site_hooks.py]\n", ""))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Page\n\n[gone](gone.md)\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    assert "gone.md" in done.stderr
