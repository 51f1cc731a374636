"""The APIs by permission matrix: the same responses from Apache Kafka and from us."""

from collections.abc import Iterator

import pytest

from tests.conformance.acl_exchanges import CASES as ACL_CASES
from tests.conformance.acl_exchanges import IDS as ACL_IDS
from tests.conformance.authorization_runs import (
    AUTHORIZER,
    OPEN,
    Answers,
    allow_administrator,
    prepare,
    read_answers,
    run_case,
    talk_of_acls,
    write_answers,
)
from tests.conformance.authorization_table import CASES, Case, Known
from tests.conformance.exchange import Exchange
from tests.support.real_kafka import joined_kafka
from tests.support.zookeeper import ZooKeeper

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]

_ALONE: dict[str, object] = {
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
}


@pytest.fixture(scope="module")
def kafka(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeper
) -> Iterator[tuple[str, Known]]:
    """A broker with an authorizer, and what it has been prepared with."""
    directory = tmp_path_factory.mktemp("kafka")
    zookeeper = zookeeper_server.fresh_chroot()
    with joined_kafka(directory, zookeeper, 1, {**_ALONE, **OPEN}) as address:
        allow_administrator(address)
    with joined_kafka(directory, zookeeper, 1, {**_ALONE, **AUTHORIZER}) as address:
        yield address, prepare(address)


@pytest.fixture(scope="module")
def answers_of_kafka(pytestconfig: pytest.Config) -> Iterator[Answers]:
    """The responses of Kafka; with --rewrite they are recorded."""
    answers: Answers = {}
    yield answers
    if pytestconfig.getoption("rewrite"):
        write_answers(answers)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_record_is_what_kafka_answers(
    kafka: tuple[str, Known], answers_of_kafka: Answers, case: Case, pytestconfig: pytest.Config
) -> None:
    address, known = kafka
    answers = {(case.name, v, name): found for v, name, found in run_case(case, known, address)}
    answers_of_kafka |= answers
    if not pytestconfig.getoption("rewrite"):
        recorded = read_answers()
        assert answers == {key: recorded[key] for key in answers}


@pytest.mark.parametrize(("exchange", "version"), ACL_CASES, ids=ACL_IDS)
def test_record_is_what_kafka_answers_about_acls(
    kafka: tuple[str, Known],
    answers_of_kafka: Answers,
    exchange: Exchange,
    version: int,
    pytestconfig: pytest.Config,
) -> None:
    answers = talk_of_acls(exchange, version, kafka[0])
    answers_of_kafka |= answers
    if not pytestconfig.getoption("rewrite"):
        recorded = read_answers()
        assert answers == {key: recorded[key] for key in answers}
