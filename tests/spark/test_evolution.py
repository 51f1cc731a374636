"""`--schema-evolution`: the schema of JSON values changes, and the exports stay one table."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hypothesis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.spark.decoding.evolution import (
    Evolution,
    conform,
    covers,
    evolve,
    evolve_by_sample,
    is_retyped,
)
from kctl.spark.decoding.schema import infer_struct
from tests.spark.support import write_log
from tests.support.kctl import Kctl, KctlResult

pytestmark = pytest.mark.timeout(400)

FIRST = [b'{"id": 1, "v": 1}', b'{"id": 2, "v": 2}']
SECOND = [b'{"id": 3, "v": 1.5, "w": "new"}', b'{"id": 4, "o": {"deep": true}}']
THIRD = [b'{"id": "text"}', b'{"id": 5, "o": {"deep": false, "more": [1]}}']


class Topic:
    """A topic of one partition that grows, and its exports."""

    def __init__(self, kctl: Kctl, directory: Path) -> None:
        self._kctl = kctl
        self.logs, self.out = directory / "logs", directory / "out"
        self.values: list[bytes] = []

    def export(self, values: Sequence[bytes], *options: str) -> KctlResult:
        self.values += values
        batches = [[(at, at, None, value, ())] for at, value in enumerate(self.values)]
        write_log(self.logs / "t-0", batches)
        words = ["t", "--from-dir", str(self.logs), "--to", str(self.out), "--engine", "local"]
        words += ["--value", "json", "--incremental", *options]
        return self._kctl("spark-export", *words, "-o", "json")

    def rows(self) -> dict[int, Any]:
        """Values by offset, as read from each file by itself."""
        paths = [p for p in self.out.rglob("*.parquet") if "_undecodable" not in p.parts]
        tables = [pq.ParquetFile(path).read(["offset", "value"]) for path in paths]
        return {row["offset"]: row["value"] for each in tables for row in each.to_pylist()}

    def schemas(self) -> set[str]:
        """The types of the value in all files."""
        paths = [p for p in self.out.rglob("*.parquet") if "_undecodable" not in p.parts]
        return {str(pq.read_schema(path).field("value").type) for path in paths}

    def problems(self) -> Any:
        source = ("--from-dir", str(self.logs))
        return self._kctl(
            "spark-export", "verify", str(self.out), "--deep", *source, "-o", "json"
        ).json


@pytest.fixture
def topic(kctl: Kctl, tmp_path: Path) -> Topic:
    topic = Topic(kctl, tmp_path)
    assert topic.export(FIRST).exit_code == 0
    return topic


def test_without_evolution_the_schema_stays(topic: Topic) -> None:
    result = topic.export(SECOND)
    assert (result.json["records"], result.json["undecodable"]) == (0, 2)
    assert topic.schemas() == {"struct<id: int64, v: int64>"}


def test_fields_are_added_and_types_stay(topic: Topic) -> None:
    result = topic.export(SECOND, "--schema-evolution", "add")
    assert result.exit_code == 0, result.stderr
    assert (result.json["records"], result.json["undecodable"]) == (1, 1)  # v 1.5 is not an int64
    assert topic.rows()[3] == {"id": 4, "v": None, "w": None, "o": {"deep": True}}
    assert topic.schemas() == {
        "struct<id: int64, v: int64>",
        "struct<id: int64, v: int64, w: string, o: struct<deep: bool>>",
    }
    assert topic.problems() == []


def test_wider_types_rewrite_the_exports_and_no_value_changes(topic: Topic) -> None:
    assert topic.export(SECOND).json["undecodable"] == 2
    result = topic.export(THIRD, "--schema-evolution", "widen")
    assert result.exit_code == 0, result.stderr
    assert (result.json["records"], result.json["undecodable"]) == (1, 1)  # "text" is no number
    result = topic.export([b'{"v": 0.5}'], "--schema-evolution", "widen")
    assert result.exit_code == 0, result.stderr
    assert "rewriting the exports" in result.stderr
    assert topic.schemas() == {
        "struct<id: int64, v: double, o: struct<deep: bool, more: list<element: int64>>>"
    }
    empty = {"v": None, "o": None}
    assert topic.rows() == {
        0: {**empty, "id": 1, "v": 1.0},
        1: {**empty, "id": 2, "v": 2.0},
        # 2 has the field w, which is not in the schema
        3: {**empty, "id": 4, "o": {"deep": True, "more": None}},  # it was set aside, fits now
        5: {**empty, "id": 5, "o": {"deep": False, "more": [1]}},
        6: {**empty, "id": None, "v": 0.5},
    }
    assert topic.problems() == []
    assert topic.export([], "--schema-evolution", "widen").json["path"] is None


def test_stored_integer_that_a_double_cannot_hold_is_an_error_and_nothing_changes(
    kctl: Kctl, tmp_path: Path
) -> None:
    topic = Topic(kctl, tmp_path)
    assert topic.export([b'{"v": 9007199254740993}']).exit_code == 0
    refused = topic.export([b'{"v": 0.5}'], "--schema-evolution", "widen")
    assert refused.exit_code == 1
    assert "a stored value does not fit the wider type" in refused.stderr
    assert topic.rows() == {0: {"v": 9007199254740993}}
    assert [path.name for path in topic.out.iterdir()] == ["export=00001"]
    assert topic.export([], "--schema-evolution", "add").json["undecodable"] == 1


def test_schema_given_by_the_user_extends_the_schema(
    kctl: Kctl, topic: Topic, tmp_path: Path
) -> None:
    ddl = tmp_path / "schema.ddl"
    ddl.write_text("id BIGINT, w STRING")
    refused = topic.export(SECOND, "--schema", str(ddl))
    assert "--schema differs" in refused.stderr
    added = topic.export([], "--schema", str(ddl), "--schema-evolution", "add")
    assert added.exit_code == 0, added.stderr
    assert "struct<id: int64, v: int64, w: string>" in topic.schemas()
    ddl.write_text("id STRING")
    refused = topic.export([], "--schema", str(ddl), "--schema-evolution", "widen")
    assert "--schema differs" in refused.stderr


@pytest.mark.spark
def test_spark_reads_added_fields_as_one_table(topic: Topic, spark: Any) -> None:
    assert topic.export(SECOND, "--schema-evolution", "add").exit_code == 0
    frame = spark.read.option("mergeSchema", True).parquet(str(topic.out))
    rows = {row["offset"]: row["value"].asDict(recursive=True) for row in frame.collect()}
    empty = {"w": None, "o": None}
    assert rows == {
        0: {**empty, "id": 1, "v": 1},
        1: {**empty, "id": 2, "v": 2},
        3: {"id": 4, "v": None, "w": None, "o": {"deep": True}},
    }


@pytest.mark.spark
def test_spark_reads_rewritten_exports_without_any_option(topic: Topic, spark: Any) -> None:
    assert topic.export(SECOND, "--schema-evolution", "widen").exit_code == 0
    rows = spark.read.parquet(str(topic.out)).select("offset", "value.v", "value.w").collect()
    assert {(row["offset"], row["v"], row["w"]) for row in rows} == {
        (0, 1.0, None),
        (1, 2.0, None),
        (2, 1.5, "new"),
        (3, None, None),
    }


@pytest.mark.parametrize("text", ["wide", ""])
def test_unknown_evolution_is_a_usage_error(topic: Topic, text: str) -> None:
    refused = topic.export([], "--schema-evolution", text)
    assert refused.exit_code == 2
    assert "choose from none, add, widen" in refused.stderr


SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text(max_size=2)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(st.integers(-9, 9), max_size=2)
        | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES, min_size=1, max_size=3)


@hypothesis.settings(deadline=None)
@given(OBJECTS, st.lists(OBJECTS, max_size=4), st.sampled_from(list(Evolution)))
def test_evolved_type_holds_every_value_of_the_type_before(
    first: dict[str, Any], later: list[dict[str, Any]], evolution: Evolution
) -> None:
    before = infer_struct([json.dumps(first).encode()])
    if before is None:
        return
    after = evolve_by_sample(before, [json.dumps(each).encode() for each in later], evolution)
    assert covers(after, before)
    assert evolution is not Evolution.NONE or after.equals(before)
    assert evolution is Evolution.WIDEN or not is_retyped(before, after)
    column = pa.array([None, first, None], before)
    found = conform(column, after)
    assert found.type == after
    assert found.is_null().to_pylist() == [True, False, True]
    assert _without_new(found.to_pylist()[1], column.to_pylist()[1])


def _without_new(found: Any, stored: Any) -> bool:
    """Whether every stored value is found; a new field is null."""
    if isinstance(stored, dict):
        return all(_without_new(found[name], each) for name, each in stored.items())
    return bool(found == stored)


def test_types_that_cannot_be_widened_stay() -> None:
    for known, found in [(pa.int64(), pa.string()), (pa.bool_(), pa.int64())]:
        assert evolve(known, found, Evolution.WIDEN) == known
    assert evolve(pa.int32(), pa.int64(), Evolution.WIDEN) == pa.int64()
    assert evolve(pa.float32(), pa.int64(), Evolution.WIDEN) == pa.float64()
    assert evolve(pa.int32(), pa.int64(), Evolution.ADD) == pa.int32()
