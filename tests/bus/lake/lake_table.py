"""What is in a table of the lake."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from tardis_fast import batch_to_events

if TYPE_CHECKING:
    from pathlib import Path


def files(table: Path) -> list[Path]:
    """Return the files that readers see, oldest first."""
    return sorted(table.glob("payload_case=*/date=*/*"), key=lambda file: file.name)


def events(table: Path, case: str | None = None) -> dict[str, list[bytes]]:
    """Read all events back, by partition."""
    found: defaultdict[str, list[bytes]] = defaultdict(list)
    for file in files(table):
        of_file = file.parent.parent.name.removeprefix("payload_case=")
        if case in {None, of_file}:
            for batch in pq.ParquetFile(file).iter_batches():
                place = str(file.parent.relative_to(table))
                found[place] += batch_to_events(batch, case=of_file).to_pylist()
    return dict(found)
