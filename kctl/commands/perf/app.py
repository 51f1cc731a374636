"""`kctl perf`: the noun, and the examples of its verbs."""

from kctl.cli.command_tree import command, noun
from kctl.commands.perf.consume import consume
from kctl.commands.perf.latency import latency
from kctl.commands.perf.produce import produce

app = noun("Measure the throughput and latency of a cluster.")

command(
    app,
    "produce",
    examples=[
        "kctl perf produce load --num-records 10000 --record-size 100",
        "kctl perf produce load -n 1000 --throughput 5000 --acks 1 -z lz4 -o json",
    ],
)(produce)

command(
    app,
    "consume",
    examples=[
        "kctl perf consume load --num-records 10000",
        "kctl perf consume load -n 1000 -o json",
    ],
)(consume)

command(
    app,
    "latency",
    examples=["kctl perf latency load --num-records 20 --acks 1"],
)(latency)
