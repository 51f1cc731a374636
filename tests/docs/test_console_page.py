"""The machinery that runs console blocks finds differences, and only those that matter."""

from pathlib import Path

import pytest

from tests.docs.console_page import normalised, read_blocks, rewrite
from tests.docs.console_session import Session

PAGE = """\
# A page

<!-- varies: seed \\d+ -->
```console
$ echo one; echo seed 17
one
seed 17
$ cat <<'END'
> two
> END
two
```

```console
$ false
(exit status 1)
$ export NAME=kctl
$ echo $NAME $HOME
kctl ~
```
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("started at 2026-01-01T00:00:00.123Z", "started at 2027-12-31T10:11:12.456Z"),
        ("3 brokers started in 812 ms", "3 brokers started in 4 ms"),
        ("id e8yepalqSfOQVi5ptv9qKA", "id x7H2y-OcQo-BuqvqrZ7jhQ"),
        ("ID   PORT", "ID PORT"),
        ("http://127.0.0.1:38807", "http://127.0.0.1:41234"),
    ],
)
def test_what_differs_by_nature_is_not_compared(shown: str, printed: str) -> None:
    assert normalised([shown]) == normalised([printed])


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("leader 1", "leader 2"),
        ("HW 3", "HW 4"),
        ("a", "a\nb"),
        ("127.0.0.1:9092", "127.0.0.1:9093"),
    ],
)
def test_everything_else_is_compared(shown: str, printed: str) -> None:
    assert normalised(shown.splitlines()) != normalised(printed.splitlines())


def test_page_that_shows_what_is_printed_passes(page: Path, tmp_path: Path) -> None:
    Session(tmp_path, is_rewriting=False).run_page(read_blocks(page))


@pytest.mark.parametrize(
    ("old", "new"), [("\none\n", "\nother\n"), ("(exit status 1)\n", ""), ("kctl ~", "kctl")]
)
def test_page_that_shows_something_else_fails(
    page: Path, tmp_path: Path, old: str, new: str
) -> None:
    assert old in PAGE
    page.write_text(PAGE.replace(old, new))
    with pytest.raises(AssertionError, match="the page"):
        Session(tmp_path, is_rewriting=False).run_page(read_blocks(page))


def test_rewrite_changes_only_what_differs(page: Path, tmp_path: Path) -> None:
    page.write_text(PAGE.replace("\ntwo\n```", "\nthree\n```").replace("seed 17\n$", "seed 18\n$"))
    blocks = read_blocks(page)
    Session(tmp_path, is_rewriting=True).run_page(blocks)
    rewrite(page, blocks)
    assert page.read_text() == PAGE.replace("seed 17\n$", "seed 18\n$")
