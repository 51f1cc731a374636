"""Damaged batches get Kafka's verdict, and what is stored is what Kafka stores."""

import os
import random
import time
from pathlib import Path

import pytest

from tests.fuzz.beside_kafka import PARTITIONS, TOPICS, Compared, stored_differences
from tests.support.broker import running_broker
from tests.support.real_kafka import RealKafka
from tests.support.wire import WireClient

BATCHES = int(os.environ.get("KCTL_BATCHES", "7200"))
SEED = int(os.environ.get("KCTL_SEED", "1"))


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_damaged_batches_get_the_verdict_of_kafka_and_are_stored_alike(
    real_kafka: RealKafka, tmp_path: Path
) -> None:
    rng = random.Random(SEED)
    with (
        running_broker(tmp_path) as broker,
        WireClient(broker.bootstrap_servers) as ours,
        WireClient(real_kafka.bootstrap_servers) as theirs,
    ):
        for wire in (ours, theirs):
            wire.socket.settimeout(180)
        compared = Compared(ours, theirs, f"fuzz-{time.time_ns()}-")
        compared.create_topics()
        for _ in range(BATCHES // (len(TOPICS) * PARTITIONS)):
            compared.send_round(rng, int(time.time() * 1000))
        print(compared.verdicts, *compared.other_refusals, sep="\n")
        assert compared.differences == []
        assert len(compared.other_refusals) <= BATCHES // 200
        assert compared.verdicts["NONE"] > BATCHES // 10
        assert len(compared.verdicts) > 4
        log_dirs = (broker.log_dir, real_kafka.log_dir(1))
        assert list(stored_differences(*log_dirs, compared.prefix)) == []
        assert "Traceback" not in broker.output()
