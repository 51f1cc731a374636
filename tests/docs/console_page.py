"""Pages with console blocks: their commands are run and what they print is compared.

A block is fenced with ```console. A line `$ …` is a command (`> …` continues it), the lines below
it are its output, stdout and stderr together; `(exit status 3)` ends the output of a command that
fails. Comments of the page apply to the next block:

    <!-- varies: REGEX -->   what the regular expression matches may differ from run to run
    <!-- until: REGEX -->    what the first reading command must print before --rewrite accepts it

Before outputs are compared, `normalised` removes what differs by nature: times, durations, random
ids, process ids, free ports, and the widths of columns. A command that only reads is repeated until
it prints what the page shows, because a cluster needs a moment for most changes; other commands run
once.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path
from typing import Final

BLOCK: Final = re.compile(
    r"(?P<notes>(?:^<!-- (?:varies|until): .*? -->\n)*)^```console\n(?P<body>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
NOTE: Final = re.compile(r"^<!-- (varies|until): (.*?) -->$", re.MULTILINE)

READS: Final = re.compile(
    r"kctl (brokers|cluster|health|offsets|log-dirs|metrics|replicas list|dump-log|"
    r"(topics|groups|transactions|configs) (list|describe|producers)|zk (ls|get|tree)|"
    r"reassign (plan|list)|dev status|consume (?!.*(--group|-g ))|api-versions|throttle list)\b|"
    r"(ls|cat|wc|grep|head|sha256sum) "
)
"""Commands that change nothing, and so can be repeated."""

_PATTERNS: Final = (
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,]?\d*Z?", "TIME"),
    (r"\b1[5-9]\d{11}\b", "TIME-MS"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID"),
    (r"(?<![\w-])(?=[\w-]*[A-Z])(?=[\w-]*[a-z])[\w-]{22}(?![\w-])", "ID"),
    (r"127\.0\.0\.1:[1-6]\d{4}\b", "127.0.0.1:FREE-PORT"),
    (r"\b\d+(\.\d+)? m?s\b", "DURATION"),
    (r"[ \t]+|─+", " "),
    (r" +$", ""),
)
NORMAL: Final = tuple((re.compile(pattern, re.MULTILINE), name) for pattern, name in _PATTERNS)


@dataclass
class Step:
    """A command of a page with the output that the page shows."""

    line: str
    shown: list[str]
    varies: tuple[str, ...] = ()
    until: str | None = None

    @property
    def only_reads(self) -> bool:
        """Whether it can be repeated."""
        return READS.match(self.line) is not None

    def matches(self, output: Sequence[str]) -> bool:
        """Whether this output is the one that the page shows."""
        return normalised(self.shown, self.varies) == normalised(output, self.varies)

    def difference(self, output: Sequence[str]) -> str:
        """The page's output and this one, for a failing test."""
        lines = unified_diff(self.shown, output, "the page", "the command", lineterm="", n=100)
        return "\n".join([f"$ {self.line}", *lines])


@dataclass
class Block:
    """A console block: where it is in the text, and its steps."""

    start: int
    end: int
    steps: list[Step] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The block as Markdown."""
        lines = []
        for step in self.steps:
            first, *others = step.line.split("\n")
            lines += [f"$ {first}", *(f"> {other}" for other in others), *step.shown]
        return "\n".join(["```console", *lines, "```"])


def normalised(output: Sequence[str], varies: Sequence[str] = ()) -> list[str]:
    """The lines without what differs from run to run."""
    text = "\n".join(output)
    for pattern in varies:
        text = re.sub(pattern, "…", text, flags=re.MULTILINE)
    for known, name in NORMAL:
        text = known.sub(name, text)
    return text.strip().splitlines()


def read_blocks(page: Path) -> list[Block]:
    """The console blocks of a page, in order."""
    return [_block(found) for found in BLOCK.finditer(page.read_text())]


def _block(found: re.Match[str]) -> Block:
    notes = NOTE.findall(found["notes"])
    varies = tuple(value for kind, value in notes if kind == "varies")
    block = Block(found.end("notes"), found.end())
    for line in found["body"].splitlines():
        if line.startswith("$ "):
            block.steps.append(Step(line[2:], [], varies))
        elif line.startswith("> ") and not block.steps[-1].shown:
            block.steps[-1].line += f"\n{line[2:]}"
        else:
            block.steps[-1].shown.append(line)
    for value in [value for kind, value in notes if kind == "until"]:
        next(step for step in block.steps if step.only_reads).until = value
    return block


def rewrite(page: Path, blocks: Sequence[Block]) -> None:
    """Write the page with the outputs that its steps have now."""
    text = page.read_text()
    for block in reversed(blocks):
        text = text[: block.start] + block.text + text[block.end :]
    if text != page.read_text():
        page.write_text(text)
