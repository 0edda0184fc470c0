"""Bronze to Silver: one typed table for each payload case, deduplicated, with scaled integers.

Takes the rows that came into Bronze since the last run. Rows with figures that have no exact place
in their scale go to silver/quarantine with the reason. To make Silver anew, remove its tables and
its checkpoint (_checkpoints/silver), and run it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tardis_fast.spark import job
from tardis_fast.spark.silver import SilverOptions, run_silver

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the arguments and run."""
    parser = job.parser(__doc__ or "")
    parser.add_argument(
        "--round-computed",
        action="store_true",
        help="round figures that are computed (vwap, volumes of bars, amounts of grouped levels, "
        "greeks, implied volatilities, mark and underlying prices of options) half to even, "
        "instead of putting their rows into quarantine",
    )
    parser.add_argument(
        "--every",
        metavar="INTERVAL",
        help='go on for ever, a batch at most so often, for example "1 minute" '
        "(end when all that is there is read)",
    )
    given = parser.parse_args(arguments)
    options = SilverOptions(round_computed=given.round_computed, every=given.every)
    counts = run_silver(job.open_tables(given, "silver"), options)
    for case, rows in sorted(counts.items()):
        print(f"{case}: {rows} events read")
    if not counts:
        print("nothing new in Bronze")


if __name__ == "__main__":
    job.run(main)
