"""Load client on librdkafka's C interface, so that the broker is measured and not the client.

confluent-kafka, whose wheel contains the library, creates a Python object per record. That takes
most of two cores and hides the broker's share. This module calls the C interface once per thousand
records instead.
"""

import ctypes
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from ctypes import CDLL, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from pathlib import Path
from threading import Barrier

import confluent_kafka

from bench.loads import Load

_CLIENTS = 2
"""Number of clients that run at once. A single client does not fill two cores: its two threads
contend for malloc's lock, and more so the faster the broker is."""

_PRODUCER, _CONSUMER = 0, 1
_ANY_PARTITION = -1
_COPY_PAYLOAD = 2
_BATCH_RECORDS = 1000
_PATIENCE_S = 60
_IGNORE = ctypes.cast(CDLL(None).labs, c_void_p)
"""Callback per record: a C function that reads its argument and does nothing else."""


class _Message(ctypes.Structure):
    """`rd_kafka_message_t`."""

    _fields_ = (
        ("error", c_int),
        ("topic", c_void_p),
        ("partition", c_int32),
        ("payload", c_char_p),
        ("payload_bytes", c_size_t),
        ("key", c_char_p),
        ("key_bytes", c_size_t),
        ("offset", c_int64),
        ("opaque", c_void_p),
    )


class LibrdkafkaClient:
    """librdkafka with default settings, but idempotent with acks=all like the Java producer.

    `more` are further settings of both, such as those of TLS.
    """

    def __init__(self, more: Mapping[str, str] | None = None) -> None:
        self._library = _load()
        self._more = dict(more or {})

    def produce(self, servers: str, topic: str, load: Load) -> float:
        """Part of LoadClient: each client sends an equal share."""
        settings = {
            "bootstrap.servers": servers,
            "acks": load.acks,
            "enable.idempotence": str(load.acks == "all").lower(),
        } | self._more
        payload = bytes(index % 251 for index in range(load.record_bytes))

        def send(wait_for_others: Callable[[], object]) -> float:
            with self._client(_PRODUCER, settings) as client, self._topic(client, topic) as handle:
                # Connect and obtain a producer id first: librdkafka does not hurry to get one.
                self._send(client, handle, payload, 1)
                self._flush(client)
                wait_for_others()
                self._send(client, handle, payload, load.records // _CLIENTS)
                self._flush(client)
                return time.perf_counter()

        return load.megabytes / _seconds_of_all(send)

    def _send(self, client: int, topic: int, payload: bytes, records: int) -> None:
        batch = (_Message * _BATCH_RECORDS)()
        for message in batch:
            message.payload, message.payload_bytes = payload, len(payload)
        deadline = time.monotonic() + _PATIENCE_S
        left = records
        while left:
            wanted = min(left, _BATCH_RECORDS)
            sent = self._library.rd_kafka_produce_batch(
                topic, _ANY_PARTITION, _COPY_PAYLOAD, batch, wanted
            )
            left -= sent
            self._library.rd_kafka_poll(client, 0 if sent == wanted else 10)
            if time.monotonic() > deadline:
                raise RuntimeError(f"{left} records were not sent within a minute")

    def _flush(self, client: int) -> None:
        if error := self._library.rd_kafka_flush(client, _PATIENCE_S * 1000):
            raise RuntimeError(f"records were not sent within a minute: {self._error_text(error)}")

    def consume(self, servers: str, topic: str, load: Load) -> float:
        """Part of LoadClient: each client reads the whole topic."""
        settings = {
            "bootstrap.servers": servers,
            "group.id": "bench",
            "enable.auto.commit": "false",
            "fetch.queue.backoff.ms": "1",  # the default of 1 s pauses a full queue
        } | self._more
        library = self._library

        def read(wait_for_others: Callable[[], object]) -> float:
            with (
                self._client(_CONSUMER, settings) as client,
                self._partitions(topic, load.partitions) as partitions,
            ):
                library.rd_kafka_poll_set_consumer(client)
                queue = library.rd_kafka_queue_get_consumer(client)
                wait_for_others()
                if error := library.rd_kafka_assign(client, partitions):
                    raise RuntimeError(self._error_text(error))
                received = 0
                while received < load.records:
                    got = library.rd_kafka_consume_callback_queue(queue, 30_000, _IGNORE, None)
                    if got <= 0:
                        raise RuntimeError(f"{load.records - received} records did not arrive")
                    received += got
                ended = time.perf_counter()
                library.rd_kafka_queue_destroy(queue)
                library.rd_kafka_consumer_close(client)
                return ended

        return _CLIENTS * load.megabytes / _seconds_of_all(read)

    @contextmanager
    def _partitions(self, topic: str, count: int) -> Iterator[int]:
        """Assignment of all partitions of a topic, from offset 0."""
        library, name = self._library, topic.encode()
        partitions = library.rd_kafka_topic_partition_list_new(count)
        for index in range(count):
            library.rd_kafka_topic_partition_list_add(partitions, name, index)
            library.rd_kafka_topic_partition_list_set_offset(partitions, name, index, 0)
        try:
            yield partitions
        finally:
            library.rd_kafka_topic_partition_list_destroy(partitions)

    @contextmanager
    def _client(self, kind: int, settings: Mapping[str, str]) -> Iterator[int]:
        library = self._library
        reason = ctypes.create_string_buffer(512)
        conf = library.rd_kafka_conf_new()
        for name, value in settings.items():
            if library.rd_kafka_conf_set(conf, name.encode(), value.encode(), reason, len(reason)):
                raise RuntimeError(reason.value.decode())
        client = library.rd_kafka_new(kind, conf, reason, len(reason))
        if not client:
            raise RuntimeError(reason.value.decode())
        try:
            yield client
        finally:
            library.rd_kafka_destroy(client)

    @contextmanager
    def _topic(self, client: int, name: str) -> Iterator[int]:
        topic = self._library.rd_kafka_topic_new(client, name.encode(), None)
        try:
            yield topic
        finally:
            self._library.rd_kafka_topic_destroy(topic)

    def _error_text(self, error: int) -> str:
        text: bytes = self._library.rd_kafka_err2str(error)
        return text.decode()


def _seconds_of_all(work: Callable[[Callable[[], object]], float]) -> float:
    """Seconds from the common start of all clients until the last one has finished.

    `work` calls its argument when it is ready, which blocks until all clients are, and returns
    time.perf_counter() of its end.
    """
    begun: list[float] = []
    barrier = Barrier(_CLIENTS, lambda: begun.append(time.perf_counter()), _PATIENCE_S)
    with ThreadPoolExecutor(_CLIENTS) as pool:
        clients = [pool.submit(work, barrier.wait) for _ in range(_CLIENTS)]
        return max(client.result() for client in clients) - begun[0]


def _load() -> CDLL:
    """Load the library from confluent-kafka's wheel and declare the functions used here."""
    beside = Path(confluent_kafka.__file__).parent.with_name("confluent_kafka.libs")
    library = CDLL(str(next(beside.glob("librdkafka-*.so*"))))
    pointer, size, text, number = c_void_p, c_size_t, c_char_p, c_int
    for name, result, *arguments in (
        ("conf_new", pointer),
        ("conf_set", number, pointer, text, text, text, size),
        ("new", pointer, number, pointer, text, size),
        ("destroy", None, pointer),
        ("topic_new", pointer, pointer, text, pointer),
        ("topic_destroy", None, pointer),
        ("err2str", text, number),
        ("produce_batch", number, pointer, c_int32, number, pointer, number),
        ("poll", number, pointer, number),
        ("flush", number, pointer, number),
        ("poll_set_consumer", number, pointer),
        ("queue_get_consumer", pointer, pointer),
        ("queue_destroy", None, pointer),
        ("topic_partition_list_new", pointer, number),
        ("topic_partition_list_add", pointer, pointer, text, c_int32),
        ("topic_partition_list_set_offset", number, pointer, text, c_int32, c_int64),
        ("topic_partition_list_destroy", None, pointer),
        ("assign", number, pointer, pointer),
        ("consume_callback_queue", number, pointer, number, pointer, pointer),
        ("consumer_close", number, pointer),
    ):
        function = getattr(library, f"rd_kafka_{name}")
        function.restype, function.argtypes = result, arguments
    return library
