"""The options of the archive: where replays get their data."""

from typing import ClassVar

from tardis_fast.options.base import OptionsModel, option
from tardis_fast.options.forms import PathText, Secret, Switch, Text, Whole


class FeedOptions(OptionsModel):
    """Archive: the Tardis API and the cache of its slices."""

    section: ClassVar[str] = "archive"

    endpoint: Text = option(
        "Address of the Tardis API.",
        default="https://api.tardis.dev/v1",
        metavar="URL",
        in_help=True,
    )
    api_key: Secret = option("Key of the API; the first day of a month needs none.", in_help=True)
    cache_dir: PathText = option(
        "Where slices are kept.",
        default=".tardis-cache in the system's directory for temporary files",
        in_help=True,
    )
    compression: Text = option(
        "How slices are transferred and kept.", default="zstd", metavar="zstd|gzip"
    )
    offline: Switch = option("Replay from the cache alone.", default="off", in_help=True)
    prefetch_mb: Whole = option(
        "Memory for decompressed data that waits, per stream of a replay.", default="4"
    )
