"""`tardis-fast clear-cache`: slices of the archive that are no longer needed."""

import click

from tardis_fast.commands.option_flags import config_option, settings_of
from tardis_fast.options import FeedOptions
from tardis_fast.replaying import clear_cache as clear


@click.command("clear-cache")
@click.option("--cache-dir", type=click.Path(), metavar="PATH", help="Where slices are kept.")
@click.option("--exchange", metavar="ID", help="Only those of this exchange.")
@config_option
@click.pass_context
def clear_cache(
    context: click.Context, /, cache_dir: str | None, exchange: str | None, **_: object
) -> None:
    """Remove slices of the archive from the cache."""
    found = settings_of(context, FeedOptions).archive.cache_dir if cache_dir is None else cache_dir
    clear(exchange, feed=FeedOptions(cache_dir=found))
