"""The options of the embedded lake."""

from typing import ClassVar

from tardis_fast.options.base import BusOptions, option
from tardis_fast.options.forms import Names, PathText, Text, Whole


class LakeOptions(BusOptions):
    """Lake: Bronze as Parquet files on local disk, by payload case and date; no broker needed."""

    section: ClassVar[str] = "lake"
    flag_prefix: ClassVar[str] = "lake-"

    dir: PathText = option("Directory of the Parquet files.")
    include_payloads: Names = option("Keep only these payload cases.", metavar="CASE,CASE")
    roll_mb: Whole = option("Megabytes of events after which a file is complete.", default="16")
    roll_seconds: Whole = option("Seconds after which a file is complete.", default="10")
    compression: Text = option("Codec of the files.", default="zstd", metavar="zstd|none")
