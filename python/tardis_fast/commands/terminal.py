"""What commands show while they run: a progress bar on a terminal, and the log."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from tardis_fast.logs import PACKAGE, formatter_of
from tardis_fast.options import LogOptions
from tardis_fast.replaying import Replay


class Step:
    """Where a command tells how far it is."""

    def __init__(self, bar: Progress | None, total: int | None) -> None:
        self._bar = bar
        self._events = 0
        self._task: TaskID | None = None
        if bar is not None:
            self._task = bar.add_task("", total=total, counts="")

    def name(self, name: str) -> None:
        """Say what is being done now, and show it: it may be done before the bar is drawn again."""
        self._update(description=name, refresh=True)

    def events(self, count: int) -> None:
        """Say that so many more events were taken in."""
        self._events += count
        self._update(counts=f"{self._events:,} events")

    def bytes(self, count: int) -> None:
        """Say that so many more bytes were read."""
        self._update(advance=count)

    def replayed(self, replay: Replay) -> None:
        """Say how far a replay is."""
        if self._bar is None:
            return
        done = replay.progress
        self._update(
            completed=done.minutes,
            total=done.minutes_total,
            counts=f"{done.messages:,} messages, {self._events:,} events",
        )

    def _update(self, **values: Any) -> None:  # noqa: ANN401 - those of rich
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, **values)


@contextmanager
def progress(
    console: Console, total: int | None, unit: ProgressColumn | None = None
) -> Iterator[Step]:
    """Show a bar while the block runs, if `console` is a terminal; bytes if there is no `unit`."""
    if not console.is_terminal:
        yield Step(None, total)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        unit or DownloadColumn(),
        TextColumn("{task.fields[counts]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        yield Step(bar, total)


class _ConsoleHandler(logging.Handler):
    """Prints above the progress bar instead of into it."""

    def __init__(self, console: Console, options: LogOptions) -> None:
        super().__init__(logging.INFO)
        self._console = console
        self.setFormatter(formatter_of(options))

    def emit(self, record: logging.LogRecord) -> None:
        self._console.print(self.format(record), markup=False, emoji=False, soft_wrap=True)


@contextmanager
def log_to(console: Console, options: LogOptions) -> Iterator[None]:
    """Show the log of this package on `console` while the block runs."""
    logger = logging.getLogger(PACKAGE)
    handler, level = _ConsoleHandler(console, options), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
