"""Write down what a real Kafka answers: `python -m tests.config.record HOST:PORT`.

The broker must have been started with tests.config.scenario.STATIC and nothing else.
"""

import asyncio
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

from broker.net.broker_connection import BrokerConnection, Node, open_connection
from broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.config.scenario import EVERYTHING, STEPS, T, play

GOLDEN = Path(__file__).parents[1] / "golden" / "configs"


async def _send(connection: BrokerConnection, request: Any) -> Any:
    async with asyncio.timeout(10):
        return await connection.send(request)


async def answers(host: str, port: int) -> tuple[list[Any], list[Any]]:
    """The answers to the scenario and to EVERYTHING, of the broker at this address."""
    connection = await open_connection(Node(-1, host, port), "kctl", timeout_s=10)
    try:
        topic = CreatableTopic(name=T, num_partitions=2, replication_factor=1)
        await connection.send(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
        everything = await play(partial(_send, connection), [EVERYTHING])
        try:
            return await play(partial(_send, connection), STEPS, pause_s=0.3), everything
        finally:
            gone = DeleteTopicState(name=T)
            request = DeleteTopicsRequest(topics=[gone], topic_names=[T], timeout_ms=10_000)
            await connection.send(request)
    finally:
        connection.close()


def main() -> None:
    """Record."""
    host, _, port = sys.argv[1].rpartition(":")
    scenario, everything = asyncio.run(answers(host, int(port)))
    GOLDEN.mkdir(exist_ok=True)
    for name, lines in (("scenario", scenario), ("broker", everything)):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (GOLDEN / f"{name}.jsonl").write_text(text)


if __name__ == "__main__":
    main()
