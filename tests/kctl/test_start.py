"""kctl starts quickly: nothing heavy is imported before it is needed."""

import os
import subprocess
import sys
import time

import pytest

HEAVY = {"pyspark", "pyarrow", "confluent_kafka", "kazoo", "yaml", "rich", "pydantic", "asyncio"}
HELP_TIME_LIMIT_S = 0.25


def loaded_after(statement: str) -> set[str]:
    """The modules that a fresh Python has loaded after `statement`."""
    code = f"import sys\n{statement}\nsys.stderr.write('\\n'.join(sys.modules))"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(answer.stderr.split())


def test_importing_kctl_loads_nothing_heavy() -> None:
    assert loaded_after("import kctl.app").isdisjoint(HEAVY)


def test_help_loads_no_command() -> None:
    run_help = "import kctl.app\ntry: kctl.app.app(['--help'])\nexcept SystemExit: pass"
    loaded = loaded_after(run_help)
    assert loaded.isdisjoint(HEAVY)
    assert not [name for name in loaded if name.startswith(("kctl.commands", "broker"))]


def test_command_loads_only_what_asking_a_broker_takes() -> None:
    run = "import kctl.app\ntry: kctl.app.app(['cluster', '-b', ':'])\nexcept SystemExit: pass"
    assert loaded_after(run) & HEAVY == {"asyncio"}


@pytest.mark.slow
def test_help_answers_within_a_quarter_of_a_second() -> None:
    command = [sys.executable, "-m", "kctl", "--help"]
    # The best of several: other work on the machine can only make it slower.
    assert min(_timed(command) for _ in range(10)) < HELP_TIME_LIMIT_S


def _timed(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True, env=dict(os.environ))
    return time.perf_counter() - start
