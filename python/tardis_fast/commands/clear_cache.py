"""`tardis-fast clear-cache`: slices of the archive that are no longer needed."""

import click

from tardis_fast.options import FeedOptions
from tardis_fast.replaying import clear_cache as clear


@click.command("clear-cache")
@click.option(
    "--cache-dir", type=click.Path(), envvar="TM_CACHE_DIR", help="Where slices are kept."
)
@click.option("--exchange", help="Only those of this exchange.")
def clear_cache(cache_dir: str | None, exchange: str | None) -> None:
    """Remove slices of the archive from the cache."""
    clear(exchange, feed=FeedOptions(cache_dir=cache_dir))
