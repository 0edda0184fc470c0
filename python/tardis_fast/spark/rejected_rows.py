"""Rows that do not fit: where they stand, why, and what they hold."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass

import pyarrow as pa

from tardis_fast._core import InvalidEventError
from tardis_fast.spark.arrow_schemas import text_bytes


@dataclass(frozen=True)
class RejectedRow:
    """A row that gave no event."""

    row: int
    """Its place in the partition, from 0."""
    reason: str
    content: str
    """The row as JSON; bytes are in base64."""


class RejectedRows:
    """Finds the rejected rows of a partition's batches, and counts its rows."""

    def __init__(self, partition: int, remedy: str) -> None:
        self._partition = partition
        self._remedy = remedy
        self._rows = 0

    def of_batch(self, batch: pa.RecordBatch, rejected: pa.RecordBatch) -> list[RejectedRow]:
        """Return those of the next batch; `rejected` names their places in it, with the reasons."""
        first, self._rows = self._rows, self._rows + batch.num_rows
        if not rejected.num_rows:
            return []
        places, reasons = rejected.column("row"), rejected.column("reason").to_pylist()
        taken = batch.take(places)
        contents = [_content(taken.slice(place, 1)) for place in range(len(places))]
        return [
            RejectedRow(first + place, reason, json.dumps(content, default=_text))
            for place, reason, content in zip(places.to_pylist(), reasons, contents, strict=True)
        ]

    def refuse(self, rows: list[RejectedRow]) -> None:
        """Fail if there are any."""
        if rows:
            first = rows[0]
            raise InvalidEventError(
                f"partition {self._partition}, row {first.row}: {first.reason}; correct such rows, "
                f"or {self._remedy}: {first.content[:200]}"
            )


def _content(row: pa.RecordBatch) -> dict[str, object]:
    """Return what a row holds; texts that are none as bytes."""
    try:
        (content,) = row.to_pylist()
    except UnicodeDecodeError:
        columns = [text_bytes(column) for column in row.columns]
        (content,) = pa.RecordBatch.from_arrays(columns, names=row.schema.names).to_pylist()
    known: dict[str, object] = content
    return known


def _text(value: object) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
