"""Progress of reading log files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kctl.cli.progress import progress_display
from kctl.dump.reading.files import DumpFile

Watch = Callable[[DumpFile], Callable[[int], None]]
"""Called before each file is read; returns a callback for the number of bytes read so far."""


@contextmanager
def progress_bar(*, is_wanted: bool) -> Iterator[Watch]:
    """A bar per file on stderr, if `is_wanted` and stderr is a terminal.

    Not wanted if results go to the same terminal: they show the progress themselves.
    """
    with progress_display(is_enabled=is_wanted) as show:

        def watch(file: DumpFile) -> Callable[[int], None]:
            name = f"{file.path.parent.name}/{file.path.name}"
            size = file.path.stat().st_size
            return lambda position: show(name, position, size)

        yield watch
