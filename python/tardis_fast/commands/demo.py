"""`tardis-fast demo`: everything at once, on a made-up market."""

import asyncio
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import click
from rich.console import Console

from tardis_fast import event_loop
from tardis_fast.demo import Demo

_PORT = 8000


@click.command()
@click.option("--once", is_flag=True, help="Run a bounded amount, print a summary and end.")
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep lake, cache and state here.  [default: a temporary directory]",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_534),
    help=f"Port to listen on, with the next.  [default: {_PORT}; with --once: any]",
)
def demo(*, once: bool, directory: Path | None, port: int | None) -> None:
    """Show everything at work on a made-up market.

    Replays and a live stream are published to the lake. It needs no key, no broker and no
    network. Prints where the page is and what to try; Ctrl-C ends it with a summary.

    Ends with 0, or with 1 if the lake does not hold every event that was published.
    """
    with ExitStack() as stack:
        if directory is None:
            name = stack.enter_context(tempfile.TemporaryDirectory(prefix="tardis-fast-demo-"))
            directory = Path(name)
        if port is None:
            port = 0 if once else _PORT
        demonstration = Demo(directory.absolute(), Console())
        is_well = event_loop.run(_run(demonstration, port, once=once))
    sys.exit(0 if is_well else 1)


async def _run(demonstration: Demo, port: int, *, once: bool) -> bool:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    return await demonstration.run(port, stopping, once=once)
