"""Every handler module begins with what each version changed, and what is deliberately missing."""

import re
import sys
from pathlib import Path
from typing import Final

import pytest

from broker.api import handlers
from broker.api.rows import Row
from broker.api.table import TABLE

_NOTE: Final = re.compile(r"^ {4}v(\d+) \S", re.MULTILINE)
ROWS = [pytest.param(row, id=row.api_key.name) for row in TABLE.values()]


def notes(row: Row) -> str:
    return sys.modules[row.handle.__module__].__doc__ or ""


def test_directory_listing_is_the_api_table() -> None:
    listed = {path.stem for path in Path(handlers.__path__[0]).glob("[!_]*.py")}
    assert listed == {row.api_key.name.lower() for row in TABLE.values()}


@pytest.mark.parametrize("row", ROWS)
def test_notes_name_every_version_in_order(row: Row) -> None:
    noted = [int(version) for version in _NOTE.findall(notes(row))]
    lowest, highest = row.versions
    assert [version for version in noted if version] == list(range(lowest + 1, highest + 1))
    assert noted == sorted(noted)


@pytest.mark.parametrize("row", ROWS)
def test_notes_say_what_is_deliberately_missing(row: Row) -> None:
    assert notes(row).count("\n\nDeliberately missing: ") == 1


@pytest.mark.parametrize("row", ROWS)
def test_notes_begin_with_the_name_of_the_api(row: Row) -> None:
    name = row.api_key.display_name
    assert re.match(rf"(Handle )?{name}\b", notes(row))
