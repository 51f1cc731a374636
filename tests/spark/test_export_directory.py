"""Publication by one rename, exactly once, also after crashes."""

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from kctl.cli.errors import CliError
from kctl.spark.execution.task import run_task
from kctl.spark.manifest_checks import verify_files
from kctl.spark.planning.settings import TaskSettings
from kctl.spark.publishing.export_directory import LocalExportDirectory
from kctl.spark.publishing.spark_export_directory import is_local
from kctl.spark.publishing.staging import Staging
from kctl.spark.writing.results import TaskResult
from tests.spark.support import LOGS, export_without_spark, exported, make_plan


@pytest.fixture
def target(tmp_path: Path) -> LocalExportDirectory:
    return LocalExportDirectory(str(tmp_path / "out"))


def run_all(target: LocalExportDirectory, *topics: str) -> list[TaskResult]:
    """A run with finished tasks that is not published."""
    plan = make_plan(LOGS, target, *topics, task_bytes=5000)
    target.staging.path.mkdir(parents=True)
    target.staging.begin(plan)
    return [run_task(task, TaskSettings.from_json(plan.options)) for task in plan.tasks]


def test_export_is_invisible_before_the_commit_and_complete_after_it(
    target: LocalExportDirectory,
) -> None:
    results = run_all(target, "rolled")
    assert target.exports() == []
    target.commit(target.staging.plan(), results)
    assert target.exports() == [1]
    assert len(exported(target.path)) == 1500
    assert not target.staging.path.exists()


@pytest.mark.parametrize("dies_at", ["assemble", "write manifest", "rename", "remove staging"])
def test_repeated_commit_after_a_crash_publishes_once(
    target: LocalExportDirectory, monkeypatch: pytest.MonkeyPatch, dies_at: str
) -> None:
    results = run_all(target, "rolled")
    plan = target.staging.plan()
    calls = 0

    def die(*_args: object, **_kwargs: object) -> None:
        nonlocal calls
        calls += 1
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if dies_at == "assemble":
            whole = Staging.assemble
            patch.setattr(Staging, "assemble", lambda s, r: die() if r.index == 2 else whole(s, r))
        elif dies_at == "write manifest":
            patch.setattr("kctl.spark.publishing.export_directory.write_json", die)
        elif dies_at == "rename":
            patch.setattr(LocalExportDirectory, "export_path", die)
        else:
            patch.setattr(Staging, "remove", die)
        with pytest.raises(KeyboardInterrupt):
            target.commit(plan, results)
    assert calls == 1
    seen_in_between = len(exported(target.path)) if target.exports() else 0
    assert seen_in_between == (1500 if dies_at == "remove staging" else 0)

    results = [result for task in plan.tasks if (result := target.staging.result(task.index))]
    target.commit(target.staging.plan(), results)
    assert target.exports() == [1]
    assert len(exported(target.path)) == 1500
    assert list(verify_files(target, 1)) == []


def test_two_attempts_at_a_task_publish_one(target: LocalExportDirectory) -> None:
    results = run_all(target, "txn")
    settings = TaskSettings.from_json(target.staging.plan().options)
    plan = target.staging.plan()
    with target.staging.attempt(0) as late:
        (late / "part").write_text("late")
        assert target.staging.finish(late, TaskResult(0, (), ())) == results[0]
    assert run_task(plan.tasks[0], settings) == results[0]
    target.commit(plan, results)
    assert len(exported(target.path)) == 180


def test_failed_attempt_leaves_no_files(target: LocalExportDirectory) -> None:
    target.staging.path.mkdir(parents=True)
    target.staging.begin(make_plan(LOGS, target, "txn"))
    with pytest.raises(OSError, match="full"), target.staging.attempt(0) as directory:
        (directory / "part").write_text("half")
        raise OSError("full")
    assert list((target.staging.path / "attempts").iterdir()) == []
    assert target.staging.result(0) is None


def test_directory_that_workers_do_not_share_is_an_error(target: LocalExportDirectory) -> None:
    plan = make_plan(LOGS, target, "txn")
    with pytest.raises(FileNotFoundError, match="directory that all workers share"):
        run_task(plan.tasks[0], TaskSettings.from_json(plan.options))
    assert not target.path.exists()


def test_overwrite_replaces_all_exports(target: LocalExportDirectory) -> None:
    export_without_spark(LOGS, target, "rolled")
    plan = replace(make_plan(LOGS, target, "txn"), is_overwrite=True, run_id="another")
    target.staging.path.mkdir()
    target.staging.begin(plan)
    settings = TaskSettings.from_json(plan.options)
    target.commit(target.staging.plan(), [run_task(task, settings) for task in plan.tasks])
    assert {row["topic"] for row in exported(target.path)} == {"txn"}
    assert [path.name for path in target.path.iterdir()] == ["export=00001"]


def test_second_run_at_the_same_time_is_refused(target: LocalExportDirectory) -> None:
    other = LocalExportDirectory(str(target.path)).staging
    with target.staging.locked(), pytest.raises(CliError, match="is running"), other.locked():
        pass
    with other.locked():
        pass


def test_regression_lock_file_that_was_removed_is_not_a_lock(target: LocalExportDirectory) -> None:
    """Runs that lock, work and remove their staging directory, all at the same time."""
    inside: list[int] = []
    together: list[list[int]] = []
    deadline = time.monotonic() + 2

    def run(number: int) -> int:
        entered = 0
        while time.monotonic() < deadline:
            with contextlib.suppress(CliError), target.staging.locked():
                inside.append(number)
                if len(inside) > 1:
                    together.append(list(inside))
                time.sleep(0.0005)
                inside.remove(number)
                target.staging.remove()
                entered += 1
        return entered

    with ThreadPoolExecutor(4) as pool:
        entered = sum(pool.map(run, range(4)))
    assert entered > 10
    assert together == []


def test_exported_end_is_the_end_of_the_range_and_not_the_last_record(
    target: LocalExportDirectory,
) -> None:
    export_without_spark(LOGS, target, "txn", "rolled")
    ends = {each: end.end_offset for each, end in target.exported_ends().items()}
    assert ends == {("rolled", 0): 1500, ("txn", 0): 266}


@pytest.mark.parametrize(
    ("location", "is_here"),
    [("/tmp/x", True), ("file:///tmp/x", True), ("out", True), ("s3a://bucket/x", False)],
)
def test_only_local_paths_are_written_by_tasks(location: str, is_here: bool) -> None:
    assert is_local(location) is is_here


def test_file_url_is_a_local_path() -> None:
    assert LocalExportDirectory("file:///tmp/x").path == Path("/tmp/x")


class TestVerify:
    @pytest.fixture
    def published(self, target: LocalExportDirectory) -> LocalExportDirectory:
        export_without_spark(LOGS, target, "plain")
        return target

    def problems(self, target: LocalExportDirectory) -> list[str]:
        return [finding.problem for finding in verify_files(target, 1)]

    def data_file(self, target: LocalExportDirectory) -> Path:
        (path,) = target.export_path(1).glob("*.parquet")
        return path

    def test_intact_export_has_no_findings(self, published: LocalExportDirectory) -> None:
        assert self.problems(published) == []

    def test_missing_file_is_reported(self, published: LocalExportDirectory) -> None:
        self.data_file(published).unlink()
        assert self.problems(published) == ["is missing"]

    def test_changed_byte_is_reported(self, published: LocalExportDirectory) -> None:
        path = self.data_file(published)
        data = bytearray(path.read_bytes())
        data[100] ^= 1
        path.write_bytes(data)
        (problem,) = self.problems(published)
        assert problem.startswith("expected crc32c")

    def test_file_missing_in_the_manifest_is_reported(
        self, published: LocalExportDirectory
    ) -> None:
        (published.export_path(1) / "extra.parquet").write_bytes(b"")
        assert self.problems(published) == ["is not in the manifest"]
