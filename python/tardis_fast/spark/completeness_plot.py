"""The plots of the completeness report: records of a symbol by the minute, with what went wrong."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from tardis_fast._core import TardisFastError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from pyspark.sql import Column, DataFrame

_MINUTES = 1440


@dataclass
class _Day:
    """What is drawn of one symbol on one day; times are minutes of the day."""

    records: dict[int, int] = field(default_factory=dict)
    sessions: set[str] = field(default_factory=set)


def plot_days(bronze: DataFrame, sessions: DataFrame, directory: str) -> list[Path]:
    """Plot each symbol of each day into `DIRECTORY/DATE/EXCHANGE/SYMBOL.png`.

    What is drawn is counted by Spark: at most a figure a minute and symbol comes to the driver.
    """
    counted = (
        bronze.where("symbol IS NOT NULL")
        .groupBy("date", "exchange", "symbol", _minute("local_ts").cast("int").alias("minute"))
        .agg(f.count("*").alias("records"), f.collect_set("session").alias("sessions"))
    )
    days: dict[tuple[date, str, str], _Day] = defaultdict(_Day)
    for row in counted.collect():
        day = days[row["date"], row["exchange"], row["symbol"]]
        day.records[row["minute"]] = row["records"]
        day.sessions.update(row["sessions"])
    lost, gaps = _disconnects(bronze), _gaps(sessions)
    written = []
    for (date_, exchange, symbol), day in sorted(days.items()):
        path = Path(directory) / date_.isoformat() / _file(exchange) / f"{_file(symbol)}.png"
        missing = [gap for session in sorted(day.sessions) for gap in gaps[date_, session]]
        _draw(path, f"{exchange} {symbol}, {date_}", day.records, missing, lost[date_, exchange])
        written.append(path)
    return written


def _disconnects(bronze: DataFrame) -> dict[tuple[date, str], list[float]]:
    found: dict[tuple[date, str], list[float]] = defaultdict(list)
    rows = bronze.where("payload_case = 'disconnect'")
    for row in rows.select("date", "exchange", _minute("local_ts").alias("minute")).collect():
        found[row["date"], row["exchange"]].append(row["minute"])
    return found


def _gaps(sessions: DataFrame) -> dict[tuple[date, str], list[float]]:
    found: dict[tuple[date, str], list[float]] = defaultdict(list)
    gaps = sessions.select("date", "session", f.explode("gaps").alias("gap"))
    for row in gaps.select("date", "session", _minute("gap.before_ts").alias("minute")).collect():
        found[row["date"], row["session"]].append(row["minute"])
    return found


def _minute(time: str) -> Column:
    return f.unix_micros(time) / 60e6 % _MINUTES


def _file(name: str) -> str:
    """Return a name of a file; symbols may have slashes in them."""
    return re.sub("[^A-Za-z0-9._-]", "_", name)


def _draw(
    path: Path,
    title: str,
    records: dict[int, int],
    gaps: Sequence[float],
    disconnects: Sequence[float],
) -> None:
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - only those who plot need it
    except ImportError as error:
        raise TardisFastError(
            "plots need matplotlib; install tardis-fast[spark], or leave --plots out"
        ) from error
    figure = Figure(figsize=(10, 3), layout="constrained")
    axes = figure.subplots()
    axes.step(
        range(_MINUTES),
        [records.get(minute, 0) for minute in range(_MINUTES)],
        where="post",
        linewidth=0.8,
        label="records a minute",
    )
    for name, color, minutes in (("gap", "red", gaps), ("disconnect", "orange", disconnects)):
        for number, minute in enumerate(minutes):
            label = f"{name} ({len(minutes)})" if number == 0 else None
            axes.axvline(minute, color=color, linewidth=0.8, alpha=0.7, label=label)
    axes.set(title=title, xlabel="hour, UTC", xlim=(0, _MINUTES), ylim=(0, None))
    axes.set_xticks(range(0, _MINUTES + 1, 120), [str(hour) for hour in range(0, 25, 2)])
    axes.legend(loc="upper right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
