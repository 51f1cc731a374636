"""The help of `kctl top`."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Static

_KEYS = (
    ("1 … 5", "brokers, topics, partitions, groups, reassignments"),
    ("↑ ↓  PgUp PgDn", "move; also j and k, Home and End"),
    ("Enter", "open: topic → partitions → replicas; group → partitions"),
    ("u", "the consumers of the topic under the cursor"),
    ("Esc", "remove the filter, or go back"),
    ("/", "filter: rows with this text; Enter keeps, Esc removes it"),
    ("← →", "sort by another column"),
    ("i", "invert the order"),
    ("Space", "freeze the screen, or go on"),
    ("c", "copy the kctl command that shows the same"),
    ("q", "quit"),
)
_COLUMNS = (
    ("IN/S OUT/S", "bytes written and read per second; OUT needs --admin"),
    ("P99", "99 of 100 produce requests took at most this long"),
    ("URP", "partitions with replicas missing from the ISR"),
    ("HW LEO", "high watermark, log end offset of the leader"),
    ("REPLICA-LAG", "broker:records that this follower lacks"),
    ("ETA", "time until the lag, or what is left to copy, is 0"),
    ("VERDICT", "as in `kctl groups watch`"),
)


class HelpScreen(ModalScreen[None]):
    """Keys and columns; any of its keys closes it."""

    CSS = """
    HelpScreen { align: center middle; background: ansi_default; }
    HelpScreen Static { width: 76; height: auto; border: round ansi_cyan; padding: 0 1;
        background: ansi_default; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,space,question_mark,h", "dismiss", show=False)
    ]

    def compose(self) -> ComposeResult:
        """One box."""
        text = Text("Keys\n", style="bold")
        for keys, meaning in _KEYS:
            text.append(f"{keys:<16}", style="cyan")
            text.append(f"{meaning}\n", style="not bold")
        text.append("\nColumns\n")
        for keys, meaning in _COLUMNS:
            text.append(f"{keys:<16}", style="not bold cyan")
            text.append(f"{meaning}\n", style="not bold")
        text.right_crop(1)
        yield Static(text)
