"""Startup time: modules are imported only when needed."""

import resource
import subprocess
import sys

HEAVY = {"pyspark", "pyarrow", "confluent_kafka", "kazoo", "yaml", "rich", "pydantic", "asyncio"}


def loaded_after(statement: str) -> set[str]:
    """The modules that a fresh Python has loaded after `statement`."""
    code = f"import sys\n{statement}\nsys.stderr.write('\\n'.join(sys.modules))"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(answer.stderr.split())


def test_importing_kctl_loads_nothing_heavy() -> None:
    assert loaded_after("import kctl.app").isdisjoint(HEAVY)


def test_help_imports_no_command() -> None:
    run_help = "import kctl.app\ntry: kctl.app.app(['--help'])\nexcept SystemExit: pass"
    loaded = loaded_after(run_help)
    assert loaded.isdisjoint(HEAVY)
    assert not [name for name in loaded if name.startswith(("kctl.commands", "broker."))]


def test_command_imports_only_what_a_query_needs() -> None:
    run = "import kctl.app\ntry: kctl.app.app(['cluster', '-b', ':'])\nexcept SystemExit: pass"
    assert loaded_after(run) & HEAVY == {"asyncio"}


def test_help_takes_at_most_a_few_python_startups() -> None:
    # CPU time beside CPU time, because the wall clock of a busy machine proves nothing; that the
    # answer is there within 0.25 s is measured by `python -m bench kctl_start`.
    ours = min(_cpu_seconds("-m", "kctl", "--help") for _ in range(7))
    bare = min(_cpu_seconds("-c", "") for _ in range(7))
    assert ours < 8 * bare


def _cpu_seconds(*args: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *args], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
