"""Transactions as requests over a socket: the same script for our broker and for Apache Kafka.

    init NAME v=4 [id=ID|null|-] [timeout=MS] [as=OTHER] [half=OTHER]
    claim NAME like=OTHER [id=+N] [epoch=+N]      NAME acts as a variant of OTHER
    add NAME v=3 [verify] TOPIC-PARTITION …       · offsets NAME v=3 group=G
    end NAME v=3 commit|abort                     · marker NAME commit|abort epoch=N TOPIC-PARTITION
    produce NAME v=10 TOPIC-PARTITION [anonymous] · offset NAME v=3 group=G TOPIC-PARTITION=OFFSET
    describe ID … · list [STATE …] · producers TOPIC-PARTITION … · stable TOPIC-PARTITION

NAME is a producer; it keeps its transactional id, producer id, epoch and next sequence. Requests
that get CONCURRENT_TRANSACTIONS are retried, as clients do, because their number depends on timing.
Names are prefixed on the wire and ids are renamed, so that scripts can be repeated on a broker.
"""

import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from broker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from broker.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from broker.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    TransactionState,
)
from broker.protocol.messages.end_txn import EndTxnRequest
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from broker.protocol.messages.list_transactions import ListTransactionsRequest
from broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from broker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from broker.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from broker.records.builder import BatchSettings, build_batch
from tests.support.wire import WireClient

TOPICS = {"t": 2, "u": 1}
PATIENCE_S = 20
PAUSE_S = 0.02
GROUP, TRANSACTION = 0, 1
PASSING = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    # Returned by a new coordinator.
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


@dataclass
class Producer:
    transactional_id: str = ""
    producer_id: int = -1
    producer_epoch: int = -1
    sequences: dict[TopicPartition, int] = field(default_factory=lambda: defaultdict(int))


def by_topic(names: list[TopicPartition]) -> Iterator[tuple[str, list[int]]]:
    for topic, group in itertools.groupby(names, lambda name: name.topic):
        yield topic, [name.partition for name in group]


class WireScript:
    """Runs scripts on one broker."""

    def __init__(self, wire: WireClient, prefix: str) -> None:
        self.wire = wire
        self.prefix = prefix
        self.producers: dict[str, Producer] = defaultdict(Producer)
        self.aliases: dict[int, str] = {}
        self.out: list[str] = []

    def prepare(self) -> None:
        """Create the topics, and wait until the broker has complete metadata."""
        topics = [
            CreatableTopic(name=self.prefix + name, num_partitions=count, replication_factor=1)
            for name, count in TOPICS.items()
        ]
        create = CreateTopicsRequest(topics=topics)
        made = {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}
        self.until(lambda: all(t.error_code in made for t in self.wire.ask(create, 5).topics))
        names = [MetadataRequestTopic(name=topic.name) for topic in topics]
        asked = MetadataRequest(topics=names)
        self.until(lambda: not any(t.error_code for t in self.wire.ask(asked, 4).topics))
        for key_type in (GROUP, TRANSACTION):
            self.until(partial(self.has_coordinator, key_type))
        self.until(lambda: self.wire.ask(ListTransactionsRequest(), 1).error_code == 0)

    def has_coordinator(self, key_type: int) -> bool:
        """Ask for the coordinator of a group or of a transactional id."""
        find = FindCoordinatorRequest(key=self.prefix + "a", key_type=key_type)
        return self.wire.ask(find, 2).error_code == 0

    def until(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < deadline, f"waited in vain after {self.out}"
            time.sleep(PAUSE_S)

    def play(self, text: str) -> str:
        """The script with the current output."""
        played = []
        for block in text.strip().split("\n\n"):
            head = block.split("\n----")[0]
            self.out = []
            for line in head.splitlines():
                if not line.startswith("#"):
                    self.run(line)
            played.append("\n".join([head, "----", *self.out]))
        return "\n\n".join(played) + "\n"

    def run(self, line: str) -> None:
        command, *words = line.split()
        positional = [word for word in words if "=" not in word]
        options = dict(word.split("=", 1) for word in words if "=" in word)
        getattr(self, f"do_{command}")(*positional, **options)

    def say(self, what: str) -> None:
        self.out.append(what.replace(self.prefix, ""))

    def alias(self, producer_id: int) -> str:
        if producer_id < 0:
            return str(producer_id)
        return self.aliases.setdefault(producer_id, f"P{len(self.aliases)}")

    def name(self, text: str) -> TopicPartition:
        topic, _, index = text.rpartition("-")
        return TopicPartition(self.prefix + topic, int(index))

    def names(self, texts: tuple[str, ...]) -> list[TopicPartition]:
        return [self.name(text) for text in texts]

    def error(self, ask: Callable[[], int]) -> str:
        """The name of the error code after all retries."""
        codes: list[int] = []

        def is_settled() -> bool:
            codes.append(ask())
            return codes[-1] not in PASSING

        self.until(is_settled)
        return ErrorCode.name_of(codes[-1])

    # Producers

    def do_init(self, name: str, v: str, **options: str) -> None:
        producer = self.producers[name]
        transactional_id = options.get("id", producer.transactional_id.removeprefix(self.prefix))
        producer.transactional_id = self.prefix + transactional_id
        is_plain = transactional_id in ("null", "-")
        plain = None if transactional_id == "null" else ""
        producer_id = producer_epoch = -1
        if "as" in options or "half" in options:
            other = self.producers[options.get("as") or options["half"]]
            producer_id = other.producer_id
            producer_epoch = other.producer_epoch if "as" in options else -1
        request = InitProducerIdRequest(
            transactional_id=plain if is_plain else producer.transactional_id,
            transaction_timeout_ms=int(options.get("timeout", 60_000)),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        )

        def ask() -> int:
            answer = self.wire.ask(request, int(v))
            if answer.error_code == 0:
                producer.producer_id = answer.producer_id
                producer.producer_epoch = answer.producer_epoch
                producer.sequences.clear()
            return answer.error_code

        code = self.error(ask)
        given = f" {self.alias(producer.producer_id)} epoch {producer.producer_epoch}"
        self.say(f"{name} init v{v} {code}{given if code == 'NONE' else ''}")

    def do_claim(self, name: str, like: str, **options: str) -> None:
        other = self.producers[like]
        self.producers[name] = Producer(
            other.transactional_id,
            other.producer_id + int(options.get("id", 0)),
            other.producer_epoch + int(options.get("epoch", 0)),
        )

    def do_add(self, name: str, *words: str, v: str) -> None:
        verify_only = words[0] == "verify"
        names = self.names(words[1:] if verify_only else words)
        request = self.add_request(self.producers[name], names, verify_only, int(v))
        answers: list[list[AddPartitionsToTxnTopicResult]] = []

        def ask() -> int:
            answer = self.wire.ask(request, int(v))
            assert answer.error_code == 0
            results = [result.topic_results for result in answer.results_by_transaction]
            answers.append(answer.results_by_topic_v3_and_below or [r for t in results for r in t])
            return answers[-1][0].results_by_partition[0].partition_error_code

        self.error(ask)
        codes = {
            TopicPartition(topic.name, result.partition_index): result.partition_error_code
            for topic in answers[-1]
            for result in topic.results_by_partition
        }
        self.say(f"{name} add v{v} {self.codes(codes)}")

    def add_request(
        self, producer: Producer, names: list[TopicPartition], verify_only: bool, version: int
    ) -> AddPartitionsToTxnRequest:
        topics = [
            AddPartitionsToTxnTopic(name=topic, partitions=indexes)
            for topic, indexes in by_topic(names)
        ]
        if version < 4:
            return AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=producer.transactional_id,
                v3_and_below_producer_id=producer.producer_id,
                v3_and_below_producer_epoch=producer.producer_epoch,
                v3_and_below_topics=topics,
            )
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            verify_only=verify_only,
            topics=topics,
        )
        return AddPartitionsToTxnRequest(transactions=[transaction])

    def codes(self, codes: dict[TopicPartition, int]) -> str:
        return " ".join(f"{name}={ErrorCode.name_of(codes[name])}" for name in sorted(codes))

    def do_offsets(self, name: str, v: str, group: str) -> None:
        producer = self.producers[name]
        request = AddOffsetsToTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            group_id=self.prefix + group,
        )
        code = self.error(lambda: self.wire.ask(request, int(v)).error_code)
        self.say(f"{name} offsets v{v} {code}")

    def do_end(self, name: str, how: str, v: str) -> None:
        producer = self.producers[name]
        request = EndTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=how == "commit",
        )
        code = self.error(lambda: self.wire.ask(request, int(v)).error_code)
        self.say(f"{name} {how} v{v} {code}")

    def do_produce(self, name: str, where: str, anonymous: str = "", *, v: str) -> None:
        producer, partition = self.producers[name], self.name(where)
        settings = BatchSettings(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=producer.sequences[partition],
            is_transactional=True,
        )
        batch = build_batch([(0, 1_700_000_000_000, None, b"value", ())], settings)
        data = PartitionProduceData(index=partition.partition, records=memoryview(batch))
        request = ProduceRequest(
            transactional_id=None if anonymous else producer.transactional_id,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=partition.topic, partition_data=[data])],
        )
        answer = self.wire.ask(request, int(v)).responses[0].partition_responses[0]
        at = f" at {answer.base_offset}" if answer.error_code == 0 else ""
        producer.sequences[partition] += answer.error_code == 0
        self.say(f"{name} produce v{v} {ErrorCode.name_of(answer.error_code)}{at}")

    def do_offset(self, name: str, v: str, group: str, **offsets: str) -> None:
        producer = self.producers[name]
        ((where, offset),) = offsets.items()
        partition = self.name(where)
        request = TxnOffsetCommitRequest(
            transactional_id=producer.transactional_id,
            group_id=self.prefix + group,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=partition.topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=partition.partition, committed_offset=int(offset)
                        )
                    ],
                )
            ],
        )
        answer = self.wire.ask(request, int(v)).topics[0].partitions[0]
        self.say(f"{name} offset v{v} {ErrorCode.name_of(answer.error_code)}")

    # Requests of brokers and administrators

    def do_marker(self, name: str, how: str, where: str, epoch: str) -> None:
        producer, partition = self.producers[name], self.name(where)
        marker = WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            transaction_result=how == "commit",
            coordinator_epoch=int(epoch),
            topics=[
                WritableTxnMarkerTopic(
                    name=partition.topic, partition_indexes=[partition.partition]
                )
            ],
        )
        answer = self.wire.ask(WriteTxnMarkersRequest(markers=[marker]), 1)
        (result,) = answer.markers[0].topics[0].partitions
        self.say(f"{name} marker {where} {ErrorCode.name_of(result.error_code)}")

    def do_describe(self, *ids: str) -> None:
        wanted = ["" if text == "-" else self.prefix + text for text in ids]
        request = DescribeTransactionsRequest(transactional_ids=wanted)
        states: list[TransactionState] = []

        def is_settled() -> bool:
            states[:] = self.wire.ask(request, 0).transaction_states
            return not any(state.transaction_state.startswith("Prepare") for state in states)

        self.until(is_settled)
        for state in states:
            what = self.description(state) if state.error_code == 0 else ""
            self.say(
                f"{state.transactional_id} {ErrorCode.name_of(state.error_code)} {what}".strip()
            )

    def description(self, state: TransactionState) -> str:
        # The partition of a group depends on the prefix.
        topics = " ".join(
            topic.topic if topic.topic.startswith("__") else f"{topic.topic}{topic.partitions}"
            for topic in sorted(state.topics, key=lambda topic: topic.topic)
        )
        who = f"{self.alias(state.producer_id)} epoch {state.producer_epoch}"
        # Kafka keeps the start of the last transaction in state Empty until it is restarted.
        has_start = state.transaction_state != "Empty" and state.transaction_start_time_ms > 0
        return (
            f"{state.transaction_state} {who} timeout {state.transaction_timeout_ms} "
            f"{'started' if has_start else 'idle'} [{topics}]"
        )

    def do_list(self, *states: str) -> None:
        answer = self.wire.ask(ListTransactionsRequest(state_filters=list(states)), 1)
        ours = [s for s in answer.transaction_states if s.transactional_id.startswith(self.prefix)]
        for state in sorted(ours, key=lambda state: state.transactional_id):
            who = self.alias(state.producer_id)
            self.say(f"{state.transactional_id} {state.transaction_state} {who}")
        self.say(f"unknown states {answer.unknown_state_filters}")

    def do_producers(self, *partitions: str) -> None:
        topics = [
            TopicRequest(name=topic, partition_indexes=indexes)
            for topic, indexes in by_topic(self.names(partitions))
        ]
        for topic in self.wire.ask(DescribeProducersRequest(topics=topics), 0).topics:
            for partition in topic.partitions:
                who = " ".join(
                    f"{self.alias(p.producer_id)} epoch {p.producer_epoch} "
                    f"sequence {p.last_sequence} since {p.current_txn_start_offset}"
                    for p in sorted(partition.active_producers, key=lambda p: p.producer_id)
                )
                code = ErrorCode.name_of(partition.error_code)
                self.say(f"{topic.name}-{partition.partition_index} {code} [{who}]")

    def do_stable(self, where: str) -> None:
        partition = self.name(where)
        ends = []
        for isolation_level in (0, 1):
            asked = ListOffsetsPartition(partition_index=partition.partition, timestamp=-1)
            topic = ListOffsetsTopic(name=partition.topic, partitions=[asked])
            request = ListOffsetsRequest(
                replica_id=-1, isolation_level=isolation_level, topics=[topic]
            )
            ends.append(self.wire.ask(request, 5).topics[0].partitions[0].offset)
        self.say(f"{where} high watermark {ends[0]} last stable offset {ends[1]}")
