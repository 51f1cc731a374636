"""Record the responses of a real Kafka: `python -m tests.config.record HOST:PORT`.

The broker must have been started with tests.config.scenario.STATIC and nothing else.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from broker.net.broker_connection import Node, open_connection
from broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.config.scenario import EVERYTHING, STEPS, T, play

GOLDEN = Path(__file__).parents[1] / "golden" / "configs"


async def ask(
    host: str, port: int, expected: Sequence[Any] | None = None, pause_s: float = 0
) -> tuple[list[Any], list[Any]]:
    """The responses of a broker to the scenario and to EVERYTHING."""
    connection = await open_connection(Node(-1, host, port), "kctl", timeout_s=10)

    async def send(request: Any) -> Any:
        async with asyncio.timeout(10):
            answer = await connection.send(request)
        await asyncio.sleep(pause_s)
        return answer

    try:
        topic = CreatableTopic(name=T, num_partitions=2, replication_factor=1)
        await send(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
        try:
            return await play(send, STEPS, expected), await play(send, [EVERYTHING])
        finally:
            state = DeleteTopicState(name=T)
            await send(DeleteTopicsRequest(topics=[state], topic_names=[T], timeout_ms=10_000))
    finally:
        connection.close()


def main() -> None:
    """Record, with pauses, so that each change is applied before the next request."""
    host, _, port = sys.argv[1].rpartition(":")
    scenario, everything = asyncio.run(ask(host, int(port), pause_s=0.3))
    GOLDEN.mkdir(exist_ok=True)
    for name, lines in (("scenario", scenario), ("broker", everything)):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (GOLDEN / f"{name}.jsonl").write_text(text)


if __name__ == "__main__":
    main()
