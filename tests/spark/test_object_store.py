"""Exports to S3 with the local engine, on a real S3 server (moto), read back by Arrow."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.fs as fs
import pytest

from tests.spark.support import LOGS, kafka_printed, sizes, write_log
from tests.support.kctl import Kctl

moto_server = pytest.importorskip("moto.server")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = moto_server.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"{host}:{port}"
    server.stop()


@pytest.fixture
def store(endpoint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> fs.FileSystem:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{endpoint}",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }.items():
        monkeypatch.setenv(name, value)
    system = fs.S3FileSystem(
        access_key="test",
        secret_key="test",
        endpoint_override=endpoint,
        scheme="http",
        region="us-east-1",
        allow_bucket_creation=True,
    )
    system.create_dir(f"lake-{tmp_path.name}".lower().replace("_", "-"))
    return system


@pytest.fixture
def bucket(tmp_path: Path) -> str:
    return f"lake-{tmp_path.name}".lower().replace("_", "-")


def rows(store: fs.FileSystem, place: str) -> list[dict[str, Any]]:
    table = ds.dataset(place, filesystem=store, format="parquet").to_table()
    return sorted(table.to_pylist(), key=lambda row: row["offset"])


def test_export_to_s3_is_listed_verified_and_continued(
    kctl: Kctl, store: fs.FileSystem, bucket: str
) -> None:
    to = f"s3://{bucket}/orders"
    words = ["rolled", "--from-dir", str(LOGS), "--engine", "local", "-o", "json"]
    result = kctl("spark-export", *words, "--to", to, "--incremental")
    assert result.exit_code == 0, result.stderr
    assert result.json["path"] == f"{to}/export=00001"
    assert sizes(rows(store, f"{bucket}/orders/export=00001")) == kafka_printed(
        "magic2", "rolled-0"
    )
    again = kctl("spark-export", *words, "--to", to, "--incremental")
    assert (again.exit_code, again.json["path"]) == (0, None), again.stderr
    listed = kctl("spark-export", "list", to, "--engine", "local", "-o", "json")
    assert [row["records"] for row in listed.json] == [1500]
    source = ("--from-dir", str(LOGS), "--engine", "local", "-o", "json")
    assert kctl("spark-export", "verify", to, *source).json == []
    (path,) = (each for each in _objects(store, f"{bucket}/orders") if each.endswith(".parquet"))
    with store.open_output_stream(path) as stream:
        stream.write(b"changed")
    damaged = kctl("spark-export", "verify", to, *source)
    assert damaged.exit_code == 3


def test_export_without_a_manifest_is_replaced(
    kctl: Kctl, store: fs.FileSystem, bucket: str
) -> None:
    with store.open_output_stream(f"{bucket}/t/export=00001/part-00000-0000.parquet") as stream:
        stream.write(b"half")
    words = ["plain", "--from-dir", str(LOGS), "--engine", "local", "--to", f"s3://{bucket}/t"]
    result = kctl("spark-export", *words)
    assert result.exit_code == 0, result.stderr
    assert len(rows(store, f"{bucket}/t/export=00001")) == len(kafka_printed("magic2", "plain-0"))
    over = kctl("spark-export", *words, "--overwrite")
    assert over.exit_code == 0, over.stderr
    assert not [each for each in _objects(store, f"{bucket}/t") if "export=00001" in each]


def test_regression_export_whose_records_were_all_set_aside_can_be_read(
    kctl: Kctl, store: fs.FileSystem, bucket: str, tmp_path: Path
) -> None:
    write_log(tmp_path / "logs" / "t-0", [[(0, 0, None, b"not JSON", ())]])
    (tmp_path / "schema.ddl").write_text("id INT")
    values = ("--value", "json", "--schema", str(tmp_path / "schema.ddl"))
    source = ("--from-dir", str(tmp_path / "logs"))
    words = ("t", *source, "--engine", "local", "--to", f"s3://{bucket}/t")
    result = kctl("spark-export", *words, *values, "-o", "json")
    assert result.exit_code == 0, result.stderr
    assert (result.json["records"], result.json["undecodable"]) == (0, 1)
    # A file without rows, so that readers find the columns.
    (path,) = (each for each in _objects(store, f"{bucket}/t/export=00001") if "1/part-" in each)
    assert ds.dataset(path, filesystem=store, format="parquet").schema.names[-2:] == [
        "value",
        "headers",
    ]


def test_missing_bucket_is_a_one_line_error(kctl: Kctl, store: fs.FileSystem) -> None:
    words = ["plain", "--from-dir", str(LOGS), "--engine", "local", "--to", "s3://nowhere-9/x"]
    result = kctl("spark-export", *words)
    assert result.exit_code == 1
    assert "nowhere-9" in result.stderr.splitlines()[0]


def _objects(store: fs.FileSystem, place: str) -> list[str]:
    found = store.get_file_info(fs.FileSelector(place, recursive=True))
    return [info.path for info in found if info.type == fs.FileType.File]
