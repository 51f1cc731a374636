"""Trees as lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kctl.cli.tables import PLAIN, Look, fit_spans, painted
from kctl.cli.terminal import visible
from kctl.cli.theme import Spans, Style


@dataclass(frozen=True)
class Node:
    """One line of a tree, and what is below it."""

    spans: Spans
    children: Sequence["Node"] = ()


def tree_lines(root: Node, look: Look = PLAIN) -> Iterator[str]:
    """A line per node, cut to the width of `look`."""
    yield _line("", root, look)
    yield from _lines_below(root, "", look)


def _lines_below(node: Node, rail: str, look: Look) -> Iterator[str]:
    for number, child in enumerate(node.children, start=1):
        is_last = number == len(node.children)
        yield _line(rail + ("└── " if is_last else "├── "), child, look)
        yield from _lines_below(child, rail + ("    " if is_last else "│   "), look)


def _line(rail: str, node: Node, look: Look) -> str:
    spans = tuple((visible(text), style) for text, style in node.spans)
    if look.width:
        spans = fit_spans(spans, max(1, look.width - len(rail)))
    return look.paint(rail, Style.FAINT) + painted(spans, look.paint)
