"""Options of Kafka's tools under their own names."""

from pathlib import Path

import pytest

from kctl.cli.kafka_spellings import SPELLINGS, with_our_spellings
from kctl.docs.tree import walk_commands
from tests.support.broker import RunningBroker
from tests.support.kctl import Kctl


@pytest.mark.parametrize("command", SPELLINGS)
def test_spellings_lead_to_options_that_the_command_has(command: str) -> None:
    (found,) = [one for one in walk_commands() if one.path[1:] == tuple(command.split())]
    names = {name for parameter in found.parameters for name in parameter.names}
    for theirs, spelling in SPELLINGS[command].items():
        assert theirs not in names, f"{theirs} is declared by the command itself"
        assert not spelling.ours or spelling.ours in names


@pytest.mark.parametrize(
    ("command", "line", "expected"),
    [
        ("produce", "--topic t --producer-property a=b", "t --property a=b"),
        ("produce", "--topic=t --request-required-acks -1", "t --acks all"),
        ("consume", "t --timeout-ms 1500", "t --idle 1.5"),
        ("consume", "t --timeout-ms abc", "t --idle abc"),
        (
            "perf produce",
            "--topic t --producer-props a=b c=d --num-records 5",
            "t --property a=b --property c=d --num-records 5",
        ),
        ("topics describe", "t --partition-size-limit-per-response 9 -v", "t -v"),
        ("produce", "t -- --topic", "t -- --topic"),
        ("produce", "t --producer-property", "t --producer-property"),
        ("brokers list", "--producer-property a=b", "--producer-property a=b"),
    ],
)
def test_options_are_respelled(command: str, line: str, expected: str) -> None:
    assert with_our_spellings(command, line.split()) == expected.split()


def test_command_lines_of_the_console_tools_work(
    kctl: Kctl, shared_broker: RunningBroker, tmp_path: Path
) -> None:
    servers = ("--bootstrap-server", shared_broker.bootstrap_servers)
    assert kctl("topics", "create", *servers, "spelled").exit_code == 0
    words = "--topic spelled --producer-property linger.ms=1 --reader-property parse.key=true"
    text = "k\tv1\nk\tv2\n"
    assert kctl("produce", *servers, *words.split(), stdin=text).exit_code == 0
    words = "--topic spelled --from-beginning --timeout-ms 2000 --max-messages 2"
    words += " --consumer-property fetch.min.bytes=1"
    assert kctl("consume", *servers, *words.split()).output == "v1\nv2\n"
    payloads = tmp_path / "payloads"
    payloads.write_text("aa|bb|cc")
    words = f"--topic spelled --num-records 20 --payload-file {payloads} --payload-delimiter |"
    words += " --throughput -1 --producer-props acks=1 linger.ms=0"
    result = kctl("perf", "produce", *servers, *words.split(), "-o", "json")
    assert (result.exit_code, result.json["records"]) == (0, 20), result.stderr
    words = "--topic spelled --num-records 3 --payload-monotonic --throughput -1"
    assert kctl("perf", "produce", *servers, *words.split()).exit_code == 0
    values = kctl("consume", *servers, "spelled", "--exit").output.split()
    assert values[:2] == ["v1", "v2"]
    assert set(values[2:22]) <= {"aa", "bb", "cc"}
    assert values[22:] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--payload-file /nowhere", "cannot read /nowhere"),
        ("--payload-file /dev/null", "/dev/null has no records"),
        ("--payload-file /dev/null --payload-monotonic", "cannot be combined"),
        ("--producer-props", "--producer-props"),
    ],
)
def test_bad_payload_is_refused_before_anything_is_sent(
    kctl: Kctl, shared_broker: RunningBroker, words: str, message: str
) -> None:
    servers = ("-b", shared_broker.bootstrap_servers)
    kctl("topics", "create", *servers, "unspoilt", "--if-not-exists")
    result = kctl("perf", "produce", *servers, "unspoilt", *words.split())
    assert result.exit_code in (1, 2)
    assert message in result.stderr
    assert kctl("offsets", *servers, "unspoilt", "-o", "json").json[0]["offset"] == 0
