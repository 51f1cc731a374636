"""The load that runs while faults happen: producers and consumers of several clients."""

import gc
import logging
import time
import warnings
from dataclasses import dataclass

from tests.crash.checks import check_followed, check_idempotent, check_transactions
from tests.crash.workload import (
    PACE_S,
    TIMEOUT_S,
    Following,
    LibrdkafkaSending,
    Sending,
    Transacting,
    Work,
    create_topics,
)

with warnings.catch_warnings():  # it loads its schemas in a deprecated way
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaProducer

# It logs an error for each broker it cannot reach, and pytest would keep all of them.
logging.getLogger("kafka").setLevel(logging.CRITICAL)

TOPICS = ("librdkafka", "kafka-python", "transactions")


class KafkaPythonSending(Sending):
    """With kafka-python: idempotent, acks=all. An independent implementation, and slower."""

    def __init__(self, servers: str, topic: str) -> None:
        super().__init__(topic)
        self._producer = KafkaProducer(
            bootstrap_servers=servers.split(","),
            linger_ms=2,
            retry_backoff_ms=20,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=100,
            delivery_timeout_ms=2 * TIMEOUT_S * 1000,
            metadata_max_age_ms=5000,
        )

    def step(self) -> None:
        """Send one, seldom enough that its thread does not crowd out the others."""
        super().step()
        time.sleep(10 * PACE_S)

    def send(self, value: bytes, partition: int) -> None:
        """Send one; its thread reports the outcome."""
        sent = self._producer.send(self.topic, value, partition=partition)
        sent.add_callback(lambda place: self.promise(value, place.partition, place.offset))
        sent.add_errback(self.refused.append)

    def finish(self) -> None:
        """Wait until all are acknowledged."""
        self._producer.flush(TIMEOUT_S)
        self._producer.close(TIMEOUT_S)
        del self._producer
        assert len(self.promised) + len(self.refused) == self.num_sent


@dataclass(frozen=True)
class Load:
    """A producer per topic, and groups that read two of them."""

    sending: tuple[Sending, ...]
    transacting: Transacting
    pair: tuple[Following, ...]
    """One group of two members."""
    read_committed: Following

    @property
    def works(self) -> tuple[Work, ...]:
        """All clients, consumers last."""
        return (*self.sending, self.transacting, *self.pair, self.read_committed)

    def progress(self) -> dict[str, int]:
        """By client: how much it has completed."""
        sent = {each.topic: len(each.promised) for each in self.sending}
        return sent | {
            "transactional producer": len(self.transacting.committed),
            "group": sum(member.num_commits for member in self.pair),
            "read_committed group": self.read_committed.num_commits,
        }

    def stop(self) -> None:
        """Stop in order; raises the error of a client that failed."""
        for work in self.works:
            work.stop()
        gc.collect()  # kafka-python's failed connections, before warnings are errors again

    def give_up(self) -> None:
        """Stop within a bounded time, whatever happens."""
        for work in self.works:
            work.give_up()

    def check(self, servers: str) -> None:
        """Compare the records that were acknowledged with those that can be read."""
        for sending in self.sending:
            check_idempotent(sending, servers)
        check_transactions(self.transacting, servers)
        check_followed(self.pair, servers)
        check_followed([self.read_committed], servers)

    def summary(self) -> str:
        """A summary in one line."""
        sent = " ".join(
            f"{each.topic}={len(each.promised)} (silent {each.longest_silence_s:.1f} s)"
            for each in self.sending
        )
        ends = self.transacting
        return (
            f"promised {sent}; transactions committed={len(ends.committed)} "
            f"aborted={len(ends.aborted)} unknown={len(ends.unknown)}; "
            f"read {len(self.pair[0].read)}+{len(self.pair[1].read)} and "
            f"{len(self.read_committed.read)} of committed transactions"
        )


def start_load(servers: str) -> Load:
    """Create the topics, on three brokers each, and begin."""
    create_topics(servers, *TOPICS, replication_factor=3)
    idempotent = {"enable.idempotence": True, "acks": "all"}
    load = Load(
        (
            LibrdkafkaSending(servers, "librdkafka", idempotent),
            KafkaPythonSending(servers, "kafka-python"),
        ),
        Transacting(servers, "transactions"),
        (Following(servers, "librdkafka"), Following(servers, "librdkafka")),
        Following(servers, "transactions", "read_committed"),
    )
    for work in load.works:
        work.start()
    return load
