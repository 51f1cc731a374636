"""`kctl dump-log --format kafka`: the golden output of Kafka's own tool."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.kctl import Kctl, KctlResult

GOLDEN = Path(__file__).parents[1] / "golden"
LOGS = GOLDEN / "logs"
EXPECTED = sorted((GOLDEN / "expected").rglob("*.txt"))

# Which files a golden text is about, and with which options it was made.
SUFFIXES = {"log-data": "log", "offsets": "log", "transactions": "log"}
OPTIONS = {
    "log-data": ["--print-data-log"],
    "offsets": ["--offsets-decoder"],
    "transactions": ["--transaction-log-decoder"],
}
DIED = 'Exception in thread "main"'


def name_of(path: Path) -> str:
    return str(path.relative_to(GOLDEN / "expected"))


def arguments(partition: Path, what: str) -> list[str]:
    """The files as the golden command line named them, from the directory above."""
    suffix = SUFFIXES.get(what, what)
    files = sorted(path.name for path in partition.glob(f"*.{suffix}"))
    # Where a pattern matched nothing, the shell that made the golden text passed on an error.
    return [f"{partition.name}/{name}" for name in files] or ["ls:"]


def as_golden(result: KctlResult) -> str:
    """What went to stdout, then what went to stderr, with paths from where the command ran."""
    return result.output + result.stderr.replace(f"{Path.cwd()}/", "")


@pytest.mark.parametrize("expected", EXPECTED, ids=name_of)
def test_format_kafka_prints_what_kafka_dump_log_printed(
    kctl: Kctl, monkeypatch: pytest.MonkeyPatch, expected: Path
) -> None:
    # As the runner catches output; only values of these logs have such line ends in them.
    text, died, _ = expected.read_bytes().decode().replace("\r\n", "\n").partition(DIED)
    partition = LOGS / expected.parent.relative_to(GOLDEN / "expected")
    monkeypatch.chdir(partition.parent)

    result = kctl(
        "dump-log",
        *("--format", "kafka"),
        *OPTIONS.get(expected.stem, []),
        *arguments(partition, expected.stem),
    )

    if died:  # Kafka's tool shows nothing of the other files; ours says one line and goes on
        assert result.output.startswith(text)
        assert result.stderr.startswith("error: ")
        assert result.exit_code == 1
    else:
        assert as_golden(result) == text
        assert result.exit_code == 0


def dump(kctl: Kctl, *args: str) -> KctlResult:
    return kctl("dump-log", "--format", "kafka", *args)


def test_files_option_takes_names_separated_by_commas(kctl: Kctl) -> None:
    first, second = sorted((LOGS / "magic2/txn-0").glob("*.log"))

    assert dump(kctl, "--files", f"{first},{second}") == dump(kctl, str(first), str(second))


def test_directory_means_its_files_known_to_kafka_logs_first(kctl: Kctl) -> None:
    result = dump(kctl, str(LOGS / "magic2/txn-0"))

    dumped = [line[-11:] for line in result.output.splitlines() if line.startswith("Dumping")]
    assert dumped == [
        "0000000.log",
        "00000.index",
        "0.timeindex",
        "0000040.log",
        "00040.index",
        "0.timeindex",
        "40.txnindex",
        "40.snapshot",
        "66.snapshot",
    ]
    assert result.exit_code == 0


def test_deep_iteration_prints_records_without_their_contents(kctl: Kctl) -> None:
    segment = str(LOGS / "magic2/plain-0/00000000000000000000.log")

    deep = dump(kctl, "--deep-iteration", segment).output.splitlines()
    full = dump(kctl, "--print-data-log", segment).output.splitlines()

    assert deep[3] == (
        "| offset: 0 CreateTime: 1700000000000 keySize: -1 valueSize: 11 "
        "sequence: -1 headerKeys: [trace,empty,null]"
    )
    assert [line.partition(" key: ")[0].partition(" payload: ")[0] for line in full[:9]] == deep[:9]


def test_skip_record_metadata_prints_contents_alone(kctl: Kctl) -> None:
    segment = str(LOGS / "magic2/txn-0/00000000000000000040.log")

    lines = dump(kctl, "--print-data-log", "--skip-record-metadata", segment).output.splitlines()

    assert lines[3] == ""  # a commit marker, of which nothing is left
    assert lines[5].startswith("| key: 0 payload: txn 1 row 0")


def test_max_bytes_ends_with_the_last_batch_that_fits(kctl: Kctl) -> None:
    segment = str(LOGS / "magic2/plain-0/00000000000000000000.log")

    result = dump(kctl, "--max-bytes", "3912", segment)

    assert [line.split()[1] for line in result.output.splitlines()[2:]] == ["0", "40"]
    assert dump(kctl, "--max-bytes", "3911", segment).output.count("baseOffset") == 1


def test_index_sanity_check_passes_a_valid_index_and_names_a_truncated_one(
    kctl: Kctl, tmp_path: Path
) -> None:
    sound = LOGS / "magic2/rolled-0/00000000000000000340.index"
    cut = tmp_path / sound.name
    cut.write_bytes(sound.read_bytes()[:-3])
    cut.with_suffix(".log").write_bytes(sound.with_suffix(".log").read_bytes())

    result = kctl("dump-log", "--index-sanity-check", str(sound), str(cut))

    assert f"{sound} passed sanity check." in result.output
    assert result.stderr.startswith(f"error: {cut}: expected entries of 8 bytes")
    assert result.exit_code == 1


def test_verify_index_only_prints_mismatches_and_no_entries(kctl: Kctl, tmp_path: Path) -> None:
    source = LOGS / "magic2/rolled-0/00000000000000000340.index"
    data = bytearray(source.read_bytes())
    data[3] += 1  # the first entry says one offset more
    index = tmp_path / source.name
    index.write_bytes(data)
    index.with_suffix(".log").write_bytes(source.with_suffix(".log").read_bytes())

    result = kctl("dump-log", "--verify-index-only", str(index))

    assert result.output == f"Dumping {index}\n"
    assert result.stderr == f"Mismatches in :{index}\n  Index offset: 360, log offset: 359\n"


def test_gaps_in_offsets_are_reported_at_the_end(kctl: Kctl, tmp_path: Path) -> None:
    first, second, *_ = sorted((LOGS / "magic2/rolled-0").glob("*.log"))
    segment = tmp_path / first.name
    segment.write_bytes(first.read_bytes()[:424] + second.read_bytes())

    result = dump(kctl, "--deep-iteration", str(segment))

    assert result.stderr == f"Non-consecutive offsets in {segment}\n  9 is followed by 340\n"
    assert result.exit_code == 0


def test_checkpoint_is_not_supported_by_kafkas_tool(kctl: Kctl) -> None:
    path = LOGS / "magic2/cleaner-offset-checkpoint"

    result = dump(kctl, str(path))

    assert (result.output, result.stderr) == (
        f"Dumping {path}\n",
        f"Ignoring unknown file {path}\n",
    )


@pytest.mark.parametrize("option", ["--key-decoder-class", "--value-decoder-class"])
def test_string_decoder_prints_contents_and_java_classes_are_refused(
    kctl: Kctl, option: str
) -> None:
    segment = str(LOGS / "magic2/plain-0/00000000000000000000.log")

    known = dump(kctl, option, "org.apache.kafka.tools.api.StringDecoder", segment)
    unknown = dump(kctl, option, "org.example.Avro", segment)

    assert known == dump(kctl, "--print-data-log", segment)
    assert unknown.exit_code == 2
    assert "cannot load Java classes" in unknown.stderr


@pytest.mark.parametrize("option", [["--offset", "1:2"], ["--stats"], ["--key", "a"]])
def test_filters_are_refused_because_kafkas_tool_prints_whole_files(
    kctl: Kctl, option: list[str]
) -> None:
    result = dump(kctl, str(LOGS / "magic2/plain-0"), *option)

    assert (result.output, result.exit_code) == ("", 2)
    assert "prints whole files" in result.stderr


def test_closed_pipe_is_not_an_error() -> None:
    command = [sys.executable, "-m", "kctl", "dump-log", "--format", "kafka", "--print-data-log"]
    segments = sorted(map(str, (LOGS / "magic2/rolled-0").glob("*.log")))
    with subprocess.Popen(
        [*command, *segments * 5], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()

        assert process.stderr.read() == b""
