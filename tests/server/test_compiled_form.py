"""Which modules run compiled, as the log says at start."""

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from broker.records import scan
from broker.server.compiled_form import compiled_modules, describe_form, is_stale
from tests.records.forms import is_compiled
from tests.support.broker import RunningBroker, running_broker


def test_compiled_modules_are_those_that_were_loaded_from_an_extension() -> None:
    names = compiled_modules()
    assert ("broker.records.scan" in names) is is_compiled(scan)
    assert all(str(sys.modules[name].__file__).endswith(".so") for name in names)


@pytest.mark.parametrize("is_newer", [False, True])
def test_module_is_stale_if_its_source_was_changed_later(tmp_path: Path, is_newer: bool) -> None:
    compiled = tmp_path / f"codec{EXTENSION_SUFFIXES[0]}"
    compiled.touch()
    assert not is_stale(compiled)  # installed without its source
    source = tmp_path / "codec.py"
    source.touch()
    changed_s = compiled.stat().st_mtime + (10 if is_newer else -10)
    os.utime(source, (changed_s, changed_s))
    assert is_stale(compiled) is is_newer


def test_broker_logs_the_form_that_runs(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        assert number(broker) >= ("broker.records.scan" in compiled_modules())


def number(broker: RunningBroker) -> int:
    (line,) = [line for line in broker.output().splitlines() if "compiled_modules=" in line]
    return int(line.partition("compiled_modules=")[2].split()[0])


def test_description_begins_with_the_number_of_compiled_modules() -> None:
    assert describe_form().startswith(f"compiled_modules={len(compiled_modules())}")
