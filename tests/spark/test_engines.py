"""The choice of an engine: options, context, and what each needs."""

from pathlib import Path

import pytest

from kctl.spark.engine import class_archive
from kctl.spark.engine.class_archive import class_archive_options
from tests.spark.support import LOGS, exported, kafka_printed, sizes
from tests.support.kctl import Kctl

CONTEXTS = """
current: laptop
contexts:
  laptop:
    bootstrap_servers: localhost:1
    export_engine: local
"""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--engine", "flink"], "--engine flink: unknown"),
        (["--engine", "local", "--master", "local[2]"], "--master has no effect with --engine"),
        (["--engine", "local", "--conf", "a=b"], "--conf has no effect with --engine local"),
        (["--engine", "spark", "--workers", "2"], "--workers has no effect with --engine spark"),
        (["--workers", "2", "--master", "local"], "--workers has no effect with --engine spark"),
        (["--engine", "local", "--format", "avro"], "--format avro needs Spark"),
    ],
)
def test_options_of_the_other_engine_are_usage_errors(
    kctl: Kctl, tmp_path: Path, arguments: list[str], said: str
) -> None:
    source = ["txn", "--from-dir", str(LOGS), "--to", str(tmp_path / "out")]
    result = kctl("spark-export", *source, *arguments)
    assert result.exit_code == 2, result.stderr
    assert said in result.stderr
    assert not (tmp_path / "out").exists()


def test_context_can_make_the_local_engine_the_default(
    kctl: Kctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_spark(*_: object) -> None:
        pytest.fail("Spark was started")

    monkeypatch.setattr("kctl.spark.execution.runner.spark_context", no_spark)
    (tmp_path / "config.yaml").write_text(CONTEXTS)
    arguments = ["rolled", "--from-dir", str(LOGS), "--to", str(tmp_path / "out")]
    environ = {"KCTL_CONFIG": str(tmp_path / "config.yaml")}
    result = kctl("spark-export", *arguments, env=environ)
    assert result.exit_code == 0, result.stderr
    assert sizes(exported(tmp_path / "out")) == kafka_printed("magic2", "rolled-0")


def test_unknown_engine_of_a_context_is_refused(kctl: Kctl, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(CONTEXTS.replace("local\n", "flink\n"))
    environ = {"KCTL_CONFIG": str(tmp_path / "config.yaml")}
    result = kctl("context", "list", env=environ)
    assert "export_engine of context 'laptop' must be spark or local" in result.stderr
    given = kctl("context", "set", "x", "-b", "h:1", "--export-engine", "flink", env=environ)
    assert given.exit_code == 2


def test_class_archive_is_written_once_and_used_when_it_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    first = class_archive_options(environ)
    draft = Path(first.split()[0].removeprefix("-XX:ArchiveClassesAtExit="))
    assert draft.parent == tmp_path / "kctl"
    draft.touch()
    assert class_archive_options(environ) == ""  # a JVM may be writing it
    monkeypatch.setattr(class_archive, "_SETTLED_S", -1)
    assert class_archive_options(environ).startswith("-XX:SharedArchiveFile=")
    assert not draft.exists()
