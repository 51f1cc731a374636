"""Bytes, rates and ids of brokers as people write them."""

import pytest

from kctl.errors import CliError, ExitStatus
from kctl.words.amounts import parse_broker_ids, parse_bytes, parse_rate


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
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(CliError) as refused:
        parse_bytes(text, "--throttle")
    assert refused.value.status is ExitStatus.USAGE


def test_rate_at_which_nothing_arrives_is_refused() -> None:
    assert parse_rate("1KiB", "--throttle") == 1024
    with pytest.raises(CliError, match="nothing ever arrives"):
        parse_rate("50", "--throttle")


def test_ids_are_read_and_none_may_come_twice() -> None:
    assert parse_broker_ids("1, 2,30", "--drain") == {1, 2, 30}
    assert parse_broker_ids(None, "--drain") == frozenset()
    with pytest.raises(CliError, match="'b' is not the id"):
        parse_broker_ids("1,b", "--drain")
    with pytest.raises(CliError, match="named twice"):
        parse_broker_ids("1,1", "--drain")
