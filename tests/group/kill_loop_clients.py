"""Clients of groups and transactions, each in a process of its own.

`python -m tests.group.kill_loop_clients ROLE BOOTSTRAP_SERVERS` works until it is ended, and prints
a line whenever it has committed, and one per error. ROLE may end in a number: `member-1`.

Processes, because confluent-kafka holds the GIL in several calls (`assignment`, `position`,
`begin_transaction`) and librdkafka can deadlock in one of them: see `kill_loop`.
"""

import sys
import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from tests.support.consumed import partition_of

INPUT, OUTPUT = "input", "output"
GROUP, TRANSFORMERS = "group", "transformers"


class Client:
    """Repeats `step` for ever; failed steps are repeated."""

    role = ""
    """Its name, which is the first word of what it reports."""

    def run(self) -> None:
        """Step by step."""
        while True:
            try:
                self.step()
            except KafkaException as error:
                self.report("error", f"{self.call}: {error}")
                self.recover()

    call = "start"
    """The current call into the library."""

    def calling(self, call: str) -> None:
        """Set the current call into the library."""
        self.call = call

    def report(self, what: str, detail: str = "") -> None:
        """Print one line for the parent process."""
        print(what, self.role, detail.replace("\n", " "), flush=True)

    def step(self) -> None:
        """One unit of work."""
        raise NotImplementedError

    def recover(self) -> None:
        """After a step that failed."""


class Feeder(Client):
    """An idempotent producer that writes numbers to the input topic."""

    def __init__(self, servers: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "linger.ms": 5,
                "log_level": 0,
            }
        )
        self._next = 0

    def step(self) -> None:
        """Write one number."""
        self.calling("produce")
        try:
            self._producer.produce(INPUT, b"%d" % self._next, on_delivery=self._delivered)
            self._next += 1
        except BufferError:
            pass
        self._producer.poll(0)
        time.sleep(0.02)

    def _delivered(self, error: object, message: Message) -> None:
        if error is None:
            self.report("commit")
        else:
            self.report("error", str(error))


def consumer(servers: str, group: str) -> Consumer:
    """A consumer that starts at the beginning and does not commit automatically."""
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "log_level": 0,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "session.timeout.ms": 10_000,
        }
    )


class Member(Client):
    """A group member that commits what it has read."""

    def __init__(self, servers: str) -> None:
        self._consumer = consumer(servers, GROUP)
        self._consumer.subscribe([INPUT])

    def step(self) -> None:
        """Read a few records and commit."""
        self.calling("consume")
        messages = self._consumer.consume(50, 0.2)
        if any(message.error() is None for message in messages):
            self.calling("commit")
            self._consumer.commit(asynchronous=False)
            self.report("commit")


class Transformer(Client):
    """Copies input to output exactly once: offsets and records in one transaction."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._consumer = consumer(servers, TRANSFORMERS)
        self._consumer.subscribe([INPUT])
        self._producer: Producer | None = None

    def _begin(self) -> Producer:
        if self._producer is None:
            self.calling("init_transactions")
            producer = Producer(
                {
                    "bootstrap.servers": self._servers,
                    "transactional.id": self.role,
                    "log_level": 0,
                    "transaction.timeout.ms": 10_000,
                }
            )
            producer.init_transactions(30)
            self._producer = producer
        self._producer.begin_transaction()
        return self._producer

    def step(self) -> None:
        """Read a few records, write them and commit both."""
        self.calling("consume")
        messages = [m for m in self._consumer.consume(20, 0.2) if m.error() is None]
        if not messages:
            return
        producer = self._begin()
        self.calling("produce")
        for message in messages:
            producer.produce(OUTPUT, message.value(), partition=partition_of(message))
        self.calling("send_offsets_to_transaction")
        positions = self._consumer.position(self._consumer.assignment())
        producer.send_offsets_to_transaction(
            [p for p in positions if p.offset >= 0], self._consumer.consumer_group_metadata(), 30
        )
        self.calling("commit_transaction")
        producer.commit_transaction(30)
        self.report("commit")

    def recover(self) -> None:
        """Abort and seek to the committed offsets; use a new producer after a fatal error."""
        if self._producer is not None and self.call != "init_transactions":
            try:
                self.calling("abort_transaction")
                self._producer.abort_transaction(30)
            except KafkaException as failure:
                self.report("error", f"{self.call}: {failure}")
                self._producer = None
        else:
            self._producer = None
        self._rewind()

    def _rewind(self) -> None:
        while True:
            try:
                self.calling("committed")
                for position in self._consumer.committed(self._consumer.assignment(), 10):
                    offset = position.offset if position.offset >= 0 else 0
                    self._consumer.seek(TopicPartition(INPUT, position.partition, offset))
                return
            except KafkaException as error:
                self.report("error", f"{self.call}: {error}")


ROLES: dict[str, Callable[[str], Client]] = {
    "feeder": Feeder,
    "member": Member,
    "transformer": Transformer,
}

if __name__ == "__main__":
    client = ROLES[sys.argv[1].partition("-")[0]](sys.argv[2])
    client.role = sys.argv[1]
    client.run()
