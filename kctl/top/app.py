"""The screen of `kctl top`. The only module that needs Textual, with the widgets it uses."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Key
from textual.message import Message
from textual.widgets import Input, Static

from kctl.cli.tables import Row
from kctl.model.top import TopSample
from kctl.top import header
from kctl.top.help_screen import HelpScreen
from kctl.top.pages import PAGES, Page, View, command_line
from kctl.top.rows_table import RowsTable
from kctl.top.sampler import Sampler, Source

Choice = Callable[[Page, Row], Page | None]
"""What a key opens."""


class Sampled(Message):
    """A new sample, from the sampler's thread."""

    def __init__(self, sample: TopSample) -> None:
        super().__init__()
        self.sample = sample


class Failed(Message):
    """The cluster did not answer."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason


class TopApp(App[None]):
    """A live view of a cluster.

    *Invariant*: `_path` has at least one page; the last one is shown.
    """

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { background: ansi_default; }
    Static { height: auto; width: 100%; background: ansi_default; }
    #tabs { margin-bottom: 1; }
    #problems { display: none; }
    #filter { display: none; height: 1; border: none; margin-left: 1; background: ansi_default; }
    #empty { display: none; padding: 1 2; height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(n), f"view('{view}')", show=False) for n, view in enumerate(View, start=1)),
        Binding("down,j", "move(1)", show=False, priority=False),
        Binding("up,k", "move(-1)", show=False),
        Binding("pagedown,ctrl+f", "page(1)", show=False),
        Binding("pageup,ctrl+b", "page(-1)", show=False),
        Binding("home", "move(-1000000000)", show=False),
        Binding("end,G", "move(1000000000)", show=False),
        Binding("enter", "open", show=False),
        Binding("escape,backspace", "leave", show=False),
        Binding("slash", "filter", show=False),
        Binding("right", "sort(1)", show=False),
        Binding("left", "sort(-1)", show=False),
        Binding("i", "invert", show=False),
        Binding("u", "consumers", show=False),
        Binding("space", "freeze", show=False),
        Binding("c", "command", show=False),
        Binding("question_mark,h", "help", show=False),
        Binding("q,ctrl+c", "quit", show=False, priority=False),
    ]

    def __init__(self, source: Source, view: View, cluster_options: Sequence[str]) -> None:
        super().__init__(ansi_color=True)
        self._source = source
        self._cluster_options = cluster_options
        self._path: list[Page] = [PAGES[view]]
        self._sample: TopSample | None = None
        """What is shown; older than the newest one while the screen is frozen."""
        self._newest: TopSample | None = None
        self._failure: str | None = None
        self._is_frozen = False
        self._is_composed = False
        self._message: str | None = None
        """Shown instead of the status, until the next key."""
        self._sampler = Sampler(
            source,
            lambda sample: self.post_message(Sampled(sample)),
            lambda reason: self.post_message(Failed(reason)),
        )

    def compose(self) -> ComposeResult:
        """The parts of the screen, from top to bottom."""
        yield Static(id="summary")
        yield Static(id="tabs")
        yield Static(id="problems")
        yield RowsTable()
        yield Static(id="empty")
        yield Input(id="filter", placeholder="text in any column", compact=True)
        yield Static(id="status")
        yield Static(id="keys")

    def on_mount(self) -> None:
        """Begin to read the cluster."""
        self.theme = "ansi-dark"
        self._is_composed = True
        self._table.focus()
        self._enter_page()
        self._sampler.start()

    def on_unmount(self) -> None:
        """Stop reading."""
        self._sampler.stop()

    # --- samples ----------------------------------------------------------------------------------

    def on_sampled(self, message: Sampled) -> None:
        """Show a new sample, unless the screen is frozen."""
        self._newest, self._failure = message.sample, None
        if not self._is_frozen:
            self._sample = message.sample
        self._refresh()

    def on_failed(self, message: Failed) -> None:
        """Keep the last sample and say what is wrong."""
        self._failure = message.reason
        self._refresh()

    # --- keys -------------------------------------------------------------------------------------

    def action_view(self, name: str) -> None:
        """Show one of the five views."""
        self._path = [PAGES[View(name)]]
        self._enter_page()

    def action_open(self) -> None:
        """Open what is under the cursor."""
        self._push(lambda page, row: page.open(row))

    def action_consumers(self) -> None:
        """Show the consumers of the topic under the cursor."""
        self._push(lambda page, row: page.consumers(row))

    def on_rows_table_opened(self) -> None:
        """A row was clicked twice."""
        self.action_open()

    def action_leave(self) -> None:
        """Remove the filter, or go back to the page before."""
        if self._table.filter:
            self.query_one("#filter", Input).value = ""
            self._table.set_filter("")
        elif len(self._path) > 1:
            self._path.pop()
            self._enter_page()
        self._refresh()

    def action_filter(self) -> None:
        """Ask for the text of the filter."""
        entry = self.query_one("#filter", Input)
        entry.display = True
        entry.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while the text is typed."""
        self._table.set_filter(event.value)
        self._refresh()

    def on_input_submitted(self) -> None:
        """Keep the filter."""
        self._close_filter()

    def on_key(self, event: Key) -> None:
        """Escape in the filter removes it; any key removes a message."""
        self._message = None
        entry = self.query_one("#filter", Input)
        if event.key == "escape" and entry.has_focus:
            entry.value = ""
            self._close_filter()
            event.stop()

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        self._table.move(by)

    def action_page(self, by: int) -> None:
        """Move the cursor by screens."""
        self._table.page(by)

    def action_sort(self, step: int) -> None:
        """Sort by the next column, or the one before."""
        self._table.sort_beside(step)

    def action_invert(self) -> None:
        """Invert the order."""
        self._table.invert()

    def action_freeze(self) -> None:
        """Stop updating the screen, or go on; the cluster is read all the time."""
        self._is_frozen = not self._is_frozen
        if not self._is_frozen:
            self._sample = self._newest
        self._refresh()

    def action_command(self) -> None:
        """Show the kctl command for the same, and copy it to the clipboard."""
        line = command_line(self._page, self._cluster_options)
        self.copy_to_clipboard(line)
        self._message = line
        self._refresh()

    def action_help(self) -> None:
        """Show the help."""
        self.push_screen(HelpScreen())

    # --- drawing ----------------------------------------------------------------------------------

    @property
    def _table(self) -> RowsTable:
        return self.screen_stack[0].query_one(RowsTable)

    @property
    def _page(self) -> Page:
        return self._path[-1]

    def _push(self, choose: Choice) -> None:
        row = self._table.cursor_row
        page = None if row is None else choose(self._page, row)
        if page is not None:
            self._path.append(page)
            self._enter_page()

    def _enter_page(self) -> None:
        table, page = self._table, self._page
        table.columns, table.identity, table.sort = page.columns, page.identity, page.sort
        table.filter = ""
        self.query_one("#filter", Input).value = ""
        table.show([])
        self._refresh()
        table.to_top()

    def _close_filter(self) -> None:
        self.query_one("#filter", Input).display = False
        self._table.focus()

    def on_resize(self) -> None:
        """Fit all lines to the new width."""
        self._refresh()

    def _refresh(self) -> None:
        if not self._is_composed or not self.screen_stack:
            return  # a sample can arrive while the screens are being closed
        width, table = self.size.width, self._table
        root = self.screen_stack[0]
        rows = [] if self._sample is None else self._page.rows(self._sample)
        table.show(rows)
        parts = {
            "summary": header.summary(self._source.name, self._sample, width),
            "tabs": header.tabs(self._path, width),
            "problems": header.problems(self._sample, self._failure),
            "status": self._status(),
            "keys": header.keys(width),
            "empty": Text(self._page.empty, style="dim"),
        }
        for name, text in parts.items():
            root.query_one(f"#{name}", Static).update(text)
        root.query_one("#problems").display = bool(parts["problems"].plain)
        is_empty = self._sample is not None and not rows
        root.query_one("#empty").display = is_empty
        table.display = not is_empty

    def _status(self) -> Text:
        if self._message is not None:
            return Text.assemble((" copied: ", "dim"), (self._message, "bold green"))
        return header.status(
            self._sample,
            self._table.num_rows,
            self._table.filter,
            self._source.interval_s,
            is_frozen=self._is_frozen,
        )
