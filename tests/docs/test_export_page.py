"""The commands of docs/export.md, run in order with a real broker, without Spark."""

import os
import re
import shlex
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.broker import running_broker
from tests.support.kctl import run_kctl

PAGE = Path(__file__).parents[2] / "docs" / "export.md"
RECORDS = 60


def commands() -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        client = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        client.create_topics([NewTopic("orders", 2, 1)])["orders"].result(30)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for number in range(RECORDS):
            producer.produce("orders", f'{{"id": {number}}}', f"user-{number}", number % 2)
        assert producer.flush(30) == 0
        settings = {
            **os.environ,
            "B": broker.bootstrap_servers,
            "OUT": str(tmp_path / "out"),
            "KCTL_CONFIG": str(tmp_path / "config.yaml"),
        }
        found = commands()
        assert len(found) > 10
        for line in found:
            text = re.sub(r"\$(\w+)", lambda name: settings[name[1]], line)
            words = shlex.split(text)[1:]
            # Spark's own start is tested elsewhere; the page's plain commands would pay it thrice.
            is_run = words[0] == "spark-export" and "compact" not in words
            engine = ["--engine", "local"] if is_run and "--engine" not in words else []
            result = run_kctl(*words, *engine, env=settings)
            assert result.exit_code == 0, f"{line}\n{result.stderr}"
        for name in ("orders", "local", "day", "nightly"):
            exported = ds.dataset(tmp_path / "out" / name, format="parquet", partitioning="hive")
            assert exported.count_rows() == RECORDS, name
