"""`kctl zk`: the noun, and the examples of its verbs."""

from kctl.cli.command_tree import command, noun
from kctl.commands.zk.get import get
from kctl.commands.zk.ls import ls
from kctl.commands.zk.tree import tree
from kctl.commands.zk.watch import watch

app = noun("Read and watch the znodes of a cluster, in ZooKeeper or in an embedded store.")

command(
    app,
    "ls",
    examples=[
        "kctl zk ls /brokers/topics -z zk1:2181",
        "kctl zk ls /brokers/ids -z zk1:2181/kafka -o wide",
    ],
)(ls)

command(
    app,
    "get",
    examples=[
        "kctl zk get /controller -z zk1:2181",
        "kctl zk get /brokers/topics/orders -z zk1:2181/kafka --raw",
    ],
)(get)

command(
    app,
    "tree",
    examples=[
        "kctl zk tree -z zk1:2181",
        "kctl zk tree /brokers --depth 3 -z zk1:2181/kafka",
        "kctl zk tree /config --directory /var/lib/kctl -o json",
    ],
)(tree)

command(
    app,
    "watch",
    examples=[
        "kctl zk watch /controller -z zk1:2181",
        "kctl zk watch /brokers/ids -z zk1:2181/kafka -n 1 -o jsonl",
    ],
)(watch)
