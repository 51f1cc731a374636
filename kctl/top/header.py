"""The lines above and below the table: the cluster, the views, problems, keys."""

from collections.abc import Sequence
from datetime import datetime

from rich.text import Text

from kctl.model.top import TopSample
from kctl.top.pages import Page, View
from kctl.views.quantities import plural, size_text
from kctl.views.top.columns import rate_text
from kctl.views.top.numbers import total

KEYS = (
    ("↵", "open"),
    ("esc", "back"),
    ("/", "filter"),
    ("←→", "sort"),
    ("i", "invert"),
    ("u", "consumers"),
    ("space", "freeze"),
    ("c", "command"),
    ("?", "help"),
    ("q", "quit"),
)
_MOST_PROBLEMS = 3


def summary(name: str, sample: TopSample | None, width: int) -> Text:
    """The cluster in one line: as much of it as fits."""
    text = Text.assemble((" kctl top ", "bold"), (f" {name}", "bold cyan"))
    if sample is None:
        return text
    snapshot, rates = sample.reading.snapshot, sample.rates
    brokers = list(rates.brokers.values())
    traffic = [
        ("in", total(one.bytes_in for one in brokers), size_text),
        ("out", total(one.bytes_out for one in brokers), size_text),
        ("msg", total(one.messages_in for one in brokers), rate_text),
    ]
    partitions = sum(len(topic.partitions) for topic in snapshot.topics)
    controller = snapshot.cluster.controller_id
    pieces = [
        plural(len(snapshot.cluster.brokers), "broker"),
        *(f"{what} {show(value)}/s" for what, value, show in traffic if value is not None),
        "no controller" if controller is None else f"controller {controller}",
        plural(len(snapshot.topics), "topic"),
        plural(partitions, "partition"),
        plural(len(snapshot.groups), "group"),
    ]
    for piece in pieces:
        if text.cell_len + len(piece) + 3 > width:
            break
        text.append(" · ", style="dim")
        text.append(piece, style="red" if piece == "no controller" else "")
    return text


def tabs(path: Sequence[Page], width: int) -> Text:
    """The views, the current one marked, and the path below it."""
    text = Text(" ")
    for number, view in enumerate(View, start=1):
        is_current = view is path[0].view
        title = view.title() if width >= 70 or is_current else view.title()[:4]
        text.append(f" {number} ", style="dim")
        text.append(f" {title} " if is_current else title, style="reverse" if is_current else "")
    for page in path[1:]:
        text.append(" → ", style="dim")
        text.append(page.title, style="bold cyan")
    text.truncate(width, overflow="ellipsis")
    return text


def problems(sample: TopSample | None, failure: str | None) -> Text:
    """What could not be read, at most a few lines; empty if there is nothing to say."""
    found = [] if failure is None else [failure]
    if sample is not None:
        found += sample.reading.problems
    lines = [f" ! {one}" for one in found[:_MOST_PROBLEMS]]
    if left_out := len(found) - len(lines):
        lines[-1] += f" (and {left_out} more)"
    return Text("\n".join(lines), style="red", no_wrap=True, overflow="ellipsis")


def status(
    sample: TopSample | None,
    shown: tuple[int, int],
    filtered: str,
    interval_s: float,
    *,
    is_frozen: bool,
) -> Text:
    """The number of rows, the filter, and the time of the sample."""
    text = Text(" ")
    if sample is None:
        text.append("connecting …", style="yellow")
        return text
    rows, of = shown
    text.append(f"{rows} of {of} rows" if rows != of else plural(of, "row"), style="dim")
    if filtered:
        text.append(" · filter ", style="dim")
        text.append(filtered, style="yellow")
    moment = datetime.fromtimestamp(sample.reading.snapshot.time_s).astimezone()
    text.append(f" · {moment:%H:%M:%S}, every {interval_s:g} s", style="dim")
    if is_frozen:
        text.append("  ")
        text.append(" FROZEN ", style="reverse yellow")
    return text


def keys(width: int) -> Text:
    """The keys, as many as fit; help and quit always."""
    always = KEYS[-2:]
    left = width - sum(len(key) + len(name) + 3 for key, name in always)
    chosen = []
    for key, name in KEYS[:-2]:
        left -= len(key) + len(name) + 3
        if left < 0:
            break
        chosen.append((key, name))
    text = Text(" ")
    for key, name in (*chosen, *always):
        text.append(key, style="bold cyan")
        text.append(f" {name}  ", style="dim")
    return text
