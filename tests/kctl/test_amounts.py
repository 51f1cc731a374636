"""Parsing of byte amounts, rates and broker ids."""

import pytest

from kctl.cli.arguments.amounts import parse_broker_ids, parse_bytes, parse_rate
from kctl.cli.errors import CliError, ExitStatus


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0),
        ("500000", 500_000),
        ("50MB", 50_000_000),
        ("1.5GiB", 1_610_612_736),
        ("10 kB/s", 10_000),
        ("2m", 2_000_000),
        ("1Ki", 1024),
    ],
)
def test_amounts_are_read_in_decimal_and_binary_units(text: str, count: int) -> None:
    assert parse_bytes(text, "--throttle") == count


@pytest.mark.parametrize("text", ["", "fast", "-5", "5XB", "1.2.3MB"])
def test_malformed_amount_is_refused(text: str) -> None:
    with pytest.raises(CliError) as refused:
        parse_bytes(text, "--throttle")
    assert refused.value.status is ExitStatus.USAGE


def test_rate_below_the_minimum_is_refused() -> None:
    assert parse_rate("1KiB", "--throttle") == 1024
    with pytest.raises(CliError, match="too slow"):
        parse_rate("50", "--throttle")


def test_broker_ids_are_parsed_and_must_be_unique() -> None:
    assert parse_broker_ids("1, 2,30", "--drain") == {1, 2, 30}
    assert parse_broker_ids(None, "--drain") == frozenset()
    with pytest.raises(CliError, match="'b' is not a broker id"):
        parse_broker_ids("1,b", "--drain")
    with pytest.raises(CliError, match="repeated"):
        parse_broker_ids("1,1", "--drain")
