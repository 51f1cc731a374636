"""Progress of an export: Spark's task status and the progress bar."""

import io
import sys
from pathlib import Path

import pytest

from kctl.spark.engine.jobs import DiskFull, explain
from kctl.spark.engine.local import EngineOptions, LocalOptions
from kctl.spark.engine.session import SparkOptions
from kctl.spark.execution.progress import progress_bar
from kctl.spark.execution.runner import Progress, run_plan
from kctl.spark.planning.plan import ExportTask, Piece, Plan
from kctl.spark.planning.settings import TaskSettings
from kctl.spark.publishing.export_directory import LocalExportDirectory
from tests.spark import faults
from tests.spark.support import LOGS, make_plan


@pytest.mark.spark
@pytest.mark.timeout(400)
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("options", [SparkOptions(), LocalOptions(2)])
def test_progress_counts_running_tasks_and_finished_records(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: EngineOptions
) -> None:
    release = tmp_path / "witness"
    seen: list[Progress] = []

    def watch(state: Progress) -> None:
        seen.append(state)
        if state.running_tasks:
            release.touch()

    monkeypatch.setattr("kctl.spark.execution.runner.run_task", faults.waits_for_release)
    target = LocalExportDirectory(str(tmp_path / "out"))
    plan = make_plan(LOGS, target, "rolled", task_bytes=20_000)
    target.staging.begin(plan)
    run_plan(plan, target, TaskSettings.from_json(plan.options), options, watch)
    assert len(plan.tasks) > 1
    assert any(state.running_tasks and not state.done_tasks for state in seen)
    last = seen[-1]
    assert (last.done_tasks, last.tasks) == (len(plan.tasks), len(plan.tasks))
    assert (last.records, last.done_bytes) == (1500, plan.size_bytes)


class Terminal(io.StringIO):
    """A stderr that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_bar_shows_tasks_records_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    plan = Plan((), (ExportTask(0, (Piece("t", 0, 0, 9, 2_000_000),)),))
    with progress_bar(plan) as watch:
        watch(Progress(4, 1, 2, 1_000_000, 1234))
    shown = terminal.getvalue()
    assert "1/4 tasks, 2 running, 1,234 records" in shown
    assert "1.0/2.0 MB" in shown


def test_no_bar_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar(Plan((), ())) as watch:
        watch(Progress(1, 1, 0, 5, 5))
    assert capsys.readouterr() == ("", "")


JAVA_SAID = """An error occurred while calling o42.save.
: org.apache.spark.SparkException: Job aborted.
Caused by: java.io.IOException: No space left on device
"""


def test_full_disk_is_recognized_in_a_java_error() -> None:
    assert isinstance(explain(RuntimeError(JAVA_SAID)), DiskFull)
