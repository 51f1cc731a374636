"""`kctl dev`: the noun, and the examples of its verbs."""

from kctl.cli.command_tree import command, noun
from kctl.commands.dev.logs import logs
from kctl.commands.dev.membership import add, remove
from kctl.commands.dev.start import start
from kctl.commands.dev.status import status
from kctl.commands.dev.stop import down, kill, pause, resume, stop
from kctl.commands.dev.up import up

app = noun("Run a development broker or cluster on this machine.")

command(
    app,
    "up",
    examples=[
        "kctl dev up",
        "kctl dev up --port 9192 --set num.partitions=3",
        "kctl dev up --brokers 3",
        "kctl dev up --brokers 3 --racks a,b,c --seed-data",
        "kctl dev up --secure",
        "kctl dev up --brokers 3 --zookeeper zk1:2181/trial",
        "kctl dev up --brokers 2 --kafka 1",
        "kctl dev up --brokers 0 --kafka 3 --dir ~/apache --port 39092",
    ],
)(up)

command(app, "status", examples=["kctl dev status", "kctl dev status -o json"])(status)

command(app, "start", examples=["kctl dev start 1"])(start)

command(app, "add", examples=["kctl dev add", "kctl dev add --rack b", "kctl dev add --kafka"])(add)

command(app, "remove", examples=["kctl dev remove 4"])(remove)

command(app, "stop", examples=["kctl dev stop", "kctl dev stop 1"])(stop)

command(app, "kill", examples=["kctl dev kill 1"])(kill)

command(app, "pause", examples=["kctl dev pause 1"])(pause)

command(app, "resume", examples=["kctl dev resume 1"])(resume)

command(app, "down", examples=["kctl dev down", "kctl dev down --delete-data"])(down)

command(
    app,
    "logs",
    examples=["kctl dev logs 1", "kctl dev logs 1 --follow", "kctl dev logs zookeeper"],
)(logs)
