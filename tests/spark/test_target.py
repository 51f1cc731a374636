"""Publication: by one rename, once, whatever happens in between."""

from dataclasses import replace
from pathlib import Path

import pytest

from kctl.errors import CliError
from kctl.spark.results import TaskResult
from kctl.spark.settings import TaskSettings
from kctl.spark.spark_target import is_local
from kctl.spark.staging import Staging
from kctl.spark.target import Target
from kctl.spark.task import run_task
from kctl.spark.verify import verify_files
from tests.spark.support import LOGS, export_without_spark, exported, make_plan


@pytest.fixture
def target(tmp_path: Path) -> Target:
    return Target(str(tmp_path / "out"))


def run_all(target: Target, *topics: str) -> list[TaskResult]:
    """A run that has done its tasks and not published them."""
    plan = make_plan(LOGS, target, *topics, task_bytes=5000)
    target.staging.path.mkdir(parents=True)
    target.staging.begin(plan)
    return [run_task(task, TaskSettings.from_json(plan.options)) for task in plan.tasks]


def test_nothing_is_seen_before_the_commit_and_everything_after(target: Target) -> None:
    results = run_all(target, "rolled")
    assert target.exports() == []
    target.commit(target.staging.plan(), results)
    assert target.exports() == [1]
    assert len(exported(target.path)) == 1500
    assert not target.staging.path.exists()


@pytest.mark.parametrize("dies_at", ["assemble", "write manifest", "rename", "remove staging"])
def test_commit_that_died_is_done_again_and_publishes_once(
    target: Target, monkeypatch: pytest.MonkeyPatch, dies_at: str
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
            patch.setattr("kctl.spark.target.write_json", die)
        elif dies_at == "rename":
            patch.setattr(Target, "export_path", die)
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


def test_two_attempts_at_a_task_leave_one(target: Target) -> None:
    results = run_all(target, "txn")
    settings = TaskSettings.from_json(target.staging.plan().options)
    plan = target.staging.plan()
    with target.staging.attempt(0) as late:
        (late / "part").write_text("late")
        assert target.staging.finish(late, TaskResult(0, (), ())) == results[0]
    assert run_task(plan.tasks[0], settings) == results[0]
    target.commit(plan, results)
    assert len(exported(target.path)) == 180


def test_attempt_that_fails_leaves_nothing(target: Target) -> None:
    target.staging.path.mkdir(parents=True)
    target.staging.begin(make_plan(LOGS, target, "txn"))
    with pytest.raises(OSError, match="full"), target.staging.attempt(0) as directory:
        (directory / "part").write_text("half")
        raise OSError("full")
    assert list((target.staging.path / "attempts").iterdir()) == []
    assert target.staging.result(0) is None


def test_worker_that_does_not_see_the_target_says_so(target: Target) -> None:
    plan = make_plan(LOGS, target, "txn")
    with pytest.raises(FileNotFoundError, match="directory that all workers share"):
        run_task(plan.tasks[0], TaskSettings.from_json(plan.options))
    assert not target.path.exists()


def test_overwrite_replaces_all_exports(target: Target) -> None:
    export_without_spark(LOGS, target, "rolled")
    plan = replace(make_plan(LOGS, target, "txn"), is_overwrite=True, run_id="another")
    target.staging.path.mkdir()
    target.staging.begin(plan)
    settings = TaskSettings.from_json(plan.options)
    target.commit(target.staging.plan(), [run_task(task, settings) for task in plan.tasks])
    assert {row["topic"] for row in exported(target.path)} == {"txn"}
    assert [path.name for path in target.path.iterdir()] == ["export=00001"]


def test_two_runs_at_a_time_are_kept_apart(target: Target) -> None:
    other = Target(str(target.path)).staging
    with target.staging.locked(), pytest.raises(CliError, match="is running"), other.locked():
        pass
    with other.locked():
        pass


def test_exported_up_to_is_the_end_of_the_range_and_not_the_last_record(target: Target) -> None:
    export_without_spark(LOGS, target, "txn", "rolled")
    assert target.exported_up_to() == {("rolled", 0): 1500, ("txn", 0): 266}


@pytest.mark.parametrize(
    ("location", "is_here"),
    [("/tmp/x", True), ("file:///tmp/x", True), ("out", True), ("s3a://bucket/x", False)],
)
def test_only_paths_of_this_machine_are_written_by_the_tasks(location: str, is_here: bool) -> None:
    assert is_local(location) is is_here


def test_file_address_is_a_path() -> None:
    assert Target("file:///tmp/x").path == Path("/tmp/x")


class TestVerify:
    @pytest.fixture
    def published(self, target: Target) -> Target:
        export_without_spark(LOGS, target, "plain")
        return target

    def problems(self, target: Target) -> list[str]:
        return [finding.problem for finding in verify_files(target, 1)]

    def data_file(self, target: Target) -> Path:
        (path,) = target.export_path(1).glob("*.parquet")
        return path

    def test_sound_export_has_no_findings(self, published: Target) -> None:
        assert self.problems(published) == []

    def test_missing_file_is_found(self, published: Target) -> None:
        self.data_file(published).unlink()
        assert self.problems(published) == ["is missing"]

    def test_changed_byte_is_found(self, published: Target) -> None:
        path = self.data_file(published)
        data = bytearray(path.read_bytes())
        data[100] ^= 1
        path.write_bytes(data)
        (problem,) = self.problems(published)
        assert problem.startswith("expected crc32c")

    def test_file_that_does_not_belong_is_found(self, published: Target) -> None:
        (published.export_path(1) / "extra.parquet").write_bytes(b"")
        assert self.problems(published) == ["is not in the manifest"]
