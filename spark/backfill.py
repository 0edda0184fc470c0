"""A range of the archive to the Bronze table, to buses, or to both.

Resumable: what is finished (a data type of an exchange on a day) is recorded in bronze/backfills
and not done again; stop it as you like, and run it again. Buses are given by --config FILE.toml and
by TM_ environment variables, as tardis-fast takes them; the key of the archive by --api-key or
TM_API_KEY.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tardis_fast.options.settings import load_settings
from tardis_fast.spark import job
from tardis_fast.spark.backfill import BackfillOptions, Unit, run_backfill

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the arguments and run."""
    parser = job.parser(__doc__ or "")
    parser.add_argument("--exchanges", required=True, type=_list, metavar="A,B")
    parser.add_argument(
        "--data-types",
        required=True,
        type=_list,
        metavar="A,B",
        help="for example trade,book_change,quote_1s",
    )
    parser.add_argument("--symbols", default=[], type=_list, metavar="A,B", help="symbols (all)")
    for name, text in (("--from", "first"), ("--to", "not included")):
        parser.add_argument(
            name,
            required=True,
            type=datetime.fromisoformat,
            dest=f"{name[2:]}_date",
            metavar="DATE",
            help=f"{text}; a date, or a time to the minute, UTC",
        )
    parser.add_argument(
        "--no-table", action="store_true", help="only publish; the Bronze table gets nothing"
    )
    parser.add_argument(
        "--publish",
        action="store_true",
        help="publish to the buses of --config and of the environment",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="configuration of the buses")
    parser.add_argument("--endpoint", metavar="URL", help="address of the Tardis API")
    parser.add_argument("--api-key", default=os.environ.get("TM_API_KEY"), metavar="KEY")
    parser.add_argument("--cache-dir", metavar="DIR", help="where executors keep slices")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        type=job.pair,
        metavar="NAME=VALUE",
        help='a further option of format("tardis"), for example partition_minutes=30; '
        "may be given again",
    )
    parser.add_argument(
        "--run",
        default="backfill",
        metavar="NAME",
        help="name of the run; under another name everything is done again (backfill)",
    )
    _run(parser.parse_args(arguments))


def _run(given: argparse.Namespace) -> None:
    feed = {
        key: value
        for key in ("endpoint", "api_key", "cache_dir")
        if (value := getattr(given, key)) is not None
    }
    options = BackfillOptions(
        exchanges=given.exchanges,
        data_types=given.data_types,
        symbols=given.symbols,
        from_date=given.from_date,
        to_date=given.to_date,
        to_table=not given.no_table,
        settings=load_settings({}, os.environ, given.config) if given.publish else None,
        feed=feed | dict(given.option),
        run=given.run,
    )
    run_backfill(job.open_tables(given, "backfill"), options, _report)


def _report(unit: Unit, events: int | None) -> None:
    print(f"{unit}: " + ("done before" if events is None else f"{events} events"), flush=True)


def _list(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


if __name__ == "__main__":
    job.run(main)
