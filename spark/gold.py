"""Silver to Gold: bars, top of book with spread, funding, open interest, completeness.

Computes the dates and exchanges that changed in Silver since the last run, each as a whole.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from tardis_fast.spark import job
from tardis_fast.spark.gold import GoldOptions, run_gold

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the arguments and run."""
    parser = job.parser(__doc__ or "")
    parser.add_argument(
        "--bars", default="1m,1h", metavar="A,B", help="intervals of bars, for example 10s (1m,1h)"
    )
    parser.add_argument(
        "--sampling", default="1s", metavar="INTERVAL", help="of the top of the book (1s)"
    )
    parser.add_argument("--series", default="1m", metavar="INTERVAL", help="of open interest (1m)")
    parser.add_argument(
        "--dates",
        nargs=2,
        type=date.fromisoformat,
        metavar=("FIRST", "LAST"),
        help="compute these dates, both included, whether they changed or not",
    )
    parser.add_argument(
        "--plots",
        metavar="DIR",
        help="plot how complete each symbol is into DIR/DATE/EXCHANGE/SYMBOL.png, on the driver",
    )
    given = parser.parse_args(arguments)
    options = GoldOptions(
        bars=given.bars.split(","),
        sampling=given.sampling,
        series=given.series,
        dates=None if given.dates is None else (given.dates[0], given.dates[1]),
        plots=given.plots,
    )
    for partition in run_gold(job.open_tables(given, "gold"), options):
        print(f"computed {partition['date']} {partition['exchange']}")


if __name__ == "__main__":
    job.run(main)
