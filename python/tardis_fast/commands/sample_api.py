"""`tardis-fast sample-api`: the sample market behind the address of an API."""

import signal
import threading

import click

from tardis_fast._core import SampleMarket
from tardis_fast.sample_api import SampleApiThread


@click.command("sample-api")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), default=8600, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), help="Another seed is another market.")
@click.option(
    "--messages-per-second", type=click.IntRange(min=1), help="How busy each exchange is."
)
@click.option("--book-levels", type=click.IntRange(min=1), help="Depth of each side of a book.")
def sample_api(
    host: str, port: int, seed: int | None, messages_per_second: int | None, book_levels: int | None
) -> None:
    """Serve a made-up market as the Tardis API serves the archive.

    It needs no key and no network and has any range, always with the same messages. Give its
    address, http://HOST:PORT/v1, as the endpoint to whatever replays.
    """
    market = SampleMarket(
        seed=seed, messages_per_second=messages_per_second, book_levels=book_levels
    )
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with SampleApiThread(market, host=host, port=port) as api:
        click.echo(f"sample market at {api.endpoint}: {', '.join(SampleMarket.exchanges())}")
        stop.wait()
