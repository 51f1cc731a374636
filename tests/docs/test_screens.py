"""Screens of the main commands: complete, used in the README, self-contained."""

import re
from pathlib import Path

import pytest

from kctl.docs.screens import AFTERWARDS, DIRECTORY, PAGE, SCREENS, TOP_SCREENS, Screen, settled

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("screen", [*SCREENS, *AFTERWARDS], ids=lambda screen: screen.name)
def test_every_screen_is_committed_and_in_the_readme(screen: Screen) -> None:
    path = DIRECTORY / f"{screen.name}.svg"
    assert str(path) in (ROOT / "README.md").read_text()
    picture = (ROOT / path).read_text()
    assert screen.title.replace(" ", "&#160;") in picture
    assert picture.count("$&#160;kctl") == len(screen.lines)


def test_every_screen_file_belongs_to_a_screen() -> None:
    known = {f"{screen.name}.svg" for screen in [*SCREENS, *AFTERWARDS]}
    known |= {f"{name}.svg" for name in TOP_SCREENS}
    assert {path.name for path in (ROOT / DIRECTORY).iterdir()} == known


def test_screen_of_top_is_in_the_readme_and_fetches_nothing() -> None:
    assert "docs/screens/top.svg" in (ROOT / "README.md").read_text()
    picture = (ROOT / DIRECTORY / "top.svg").read_text()
    assert "orders" in picture
    assert set(re.findall(r"https?://[^\"'\s)]+", picture)) <= {
        "http://www.w3.org/2000/svg",
        "https://www.textualize.io",  # a comment
    }


def test_pictures_fetch_nothing() -> None:
    addresses = re.findall(r"https?://[^\"'\s]+", PAGE)
    assert addresses == ["http://www.w3.org/2000/svg"]  # the name of the format, not a place


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ("a\r\nb\r\n", "a\nb"),
        ("\x1b[?25lbar 10%\r\x1b[2Kbar 20%\r\x1b[2K\x1b[?25hdone\n", "done"),
        ("bar\n\x1b[1A\x1b[2Kdone\n", "done"),
        ("one\ntwo\n\x1b[1A\x1b[2K\x1b[1A\x1b[2Kend", "end"),
        ("\x1b[1mbold\x1b[0m", "\x1b[1mbold\x1b[0m"),
    ],
)
def test_erased_progress_bar_is_not_in_the_picture(written: str, left: str) -> None:
    assert settled(written) == left
