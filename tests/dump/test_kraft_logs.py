"""The metadata log of a real KRaft cluster, read as kafka-dump-log reads it."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from broker.protocol.errors import DecodeError
from kctl.dump.reading.kraft_records import METADATA_RECORDS, metadata_document, metadata_words
from tests.support.kctl import Kctl
from tests.support.kraft_kafka import KraftKafka
from tests.support.real_kafka import java_command


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_metadata_log_is_decoded_as_kafka_dump_log_decodes_it(
    kctl: Kctl, kraft_kafka: KraftKafka, tmp_path: Path
) -> None:
    servers = kraft_kafka.bootstrap_servers
    created = kctl("-b", servers, "topics", "create", "in-metadata", "-p", "2")
    assert created.exit_code == 0, created.stderr
    altered = kctl(
        "-b", servers, "topics", "alter", "in-metadata", "--config", "retention.ms=9", "--yes"
    )
    assert altered.exit_code == 0, altered.stderr
    # A copy, because the log grows.
    copy = tmp_path / "__cluster_metadata-0"
    shutil.copytree(kraft_kafka.directory / "data-1" / copy.name, copy)
    files = sorted(copy.glob("*.log")) + sorted(copy.glob("*.checkpoint"))
    assert len(files) > 1
    for file in files:
        args = ("--cluster-metadata-decoder", "--files", str(file))
        command = java_command("kafka.tools.DumpLogSegments", *args)
        theirs = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        ours = kctl("dump-log", "--format", "kafka", *args)
        assert ours.exit_code == 0, ours.stderr
        assert ours.output == theirs.stdout
        assert file.suffix != ".log" or '"type":"TOPIC_RECORD"' in ours.output


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_rows_of_the_metadata_log_name_the_topic(kctl: Kctl, kraft_kafka: KraftKafka) -> None:
    servers = kraft_kafka.bootstrap_servers
    assert kctl("-b", servers, "topics", "create", "in-rows").exit_code == 0
    directory = kraft_kafka.directory / "data-1" / "__cluster_metadata-0"
    result = kctl("dump-log", str(directory), "--records", "-o", "jsonl")
    assert result.exit_code == 0, result.stderr
    values = [json.loads(line)["value"] for line in result.output.splitlines()]
    topics = [one["data"]["name"] for one in values if one and one.get("type") == "TOPIC_RECORD"]
    assert "in-rows" in topics


def test_damaged_metadata_record_is_shown_with_the_reason() -> None:
    for value in (None, b"", b"\x02\x00\x00", b"\x01\xff", b"\x01\x63\x00", b"\x01\x02\x00\x05"):
        with pytest.raises(DecodeError):
            metadata_document(value)
        assert metadata_words(7, value).startswith("Error at 7, skipping. ")


def test_names_of_record_types_are_those_of_their_messages() -> None:
    assert metadata_words(0, b"\x01\x14\x00\x00") == '{"type":"NO_OP_RECORD","version":0,"data":{}}'
    for name, cls in METADATA_RECORDS.values():
        assert re.sub("(?<=.)([A-Z])", r"_\1", cls.__name__).upper() == name
