"""The manual page of the daemon, kctl-broker(8)."""

import argparse
from collections.abc import Iterator
from typing import Final

from broker.__main__ import make_parser
from kctl.docs.man import escape

BROKER_PAGE: Final = "kctl-broker.8"

DESCRIPTION: Final = (
    "A Kafka broker: it speaks Kafka's protocol, stores its data in Kafka's own files, and keeps "
    "its metadata in an embedded store or, with zookeeper.connect, in a ZooKeeper that it can "
    "share with Apache Kafka.",
    "FILE has Kafka's own settings. A setting that this broker cannot obey and whose loss would "
    "matter, such as a login mechanism that it does not have, is refused with one line and status "
    "1. Known settings without effect are listed in one warning at start.",
    "When it is ready, the broker logs one line with its broker.id and its listeners. Log messages "
    "go to standard error.",
)
SIGNALS: Final = {
    "SIGTERM, SIGINT": "Stop: hand over the leaderships (controlled.shutdown.enable), flush the "
    "logs, write the checkpoints. The next start needs no recovery.",
    "SIGKILL": "Nothing that was acknowledged is lost. The next start recovers the segments that "
    "were not flushed.",
}
STATUSES: Final = {
    "0": "It was stopped by a signal.",
    "1": "It could not start, or it stopped because all log directories failed; the last line of "
    "the log says why.",
    "2": "The command line is wrong.",
}
EXAMPLES: Final = (
    "kctl-broker /etc/kctl/server.properties",
    "kctl-broker --override log.dirs=/tmp/kafka --override listeners=PLAINTEXT://localhost:9092",
)


def broker_page() -> str:
    """The text of the page, with the options of the program itself."""
    return "\n".join(_page(make_parser())) + "\n"


def _page(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield '.TH KCTL\\-BROKER 8 "" kctl "kctl manual"'
    yield from (".SH NAME", "kctl\\-broker \\- run a Kafka\\-compatible broker")
    usage = " ".join(parser.format_usage().split()).removeprefix("usage: kctl-broker ")
    yield from (".SH SYNOPSIS", ".B kctl\\-broker", escape(usage))
    yield from (".SH DESCRIPTION", escape(DESCRIPTION[0]))
    for paragraph in DESCRIPTION[1:]:
        yield from (".PP", escape(paragraph))
    yield ".SH OPTIONS"
    for action in parser._actions:  # argparse has no public list of them
        yield from _option(action)
    yield from _table("SIGNALS", SIGNALS)
    yield from _table("EXIT STATUS", STATUSES)
    yield from (".SH EXAMPLES", ".EX", *map(escape, EXAMPLES), ".EE")
    yield from (".SH SEE ALSO", ".BR kctl (1)")


def _option(action: argparse.Action) -> Iterator[str]:
    names = ", ".join(f"\\fB{escape(name)}\\fR" for name in action.option_strings)
    value = f"\\fI{escape(str(action.metavar))}\\fR" if action.metavar else ""
    help_text = (action.help or "").rstrip(".")
    yield from (".TP", " ".join(filter(None, (names, value))))
    yield escape(help_text[:1].upper() + help_text[1:] + ".")


def _table(title: str, rows: dict[str, str]) -> Iterator[str]:
    yield f".SH {title}"
    for term, text in rows.items():
        yield from (".TP", f".B {escape(term)}", escape(text))
