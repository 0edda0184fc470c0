"""Which form the rows of a DataFrame have, decided by its schema before any job runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import BinaryType, StringType

from tardis_fast import _core
from tardis_fast._core import PAYLOAD_CASES, ConfigError, InvalidEventError
from tardis_fast.spark.arrow_schemas import arrow_schema, text_bytes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

EVENT_COLUMN = "event"
TEXT_COLUMNS = ("value", "message")
_LAKE_PARTITIONS = {"payload_case", "date"}
"""Columns that Spark finds in the names of the lake's directories; events have no such fields."""
_DATASETS: dict[str, list[str]] = _core.dataset_columns()
_WIDE: list[str] = _core.bronze_schema().names
_NARROW: dict[str, list[str]] = {case: _core.bronze_schema(case).names for case in PAYLOAD_CASES}
_ENVELOPE = [name for name in _NARROW["trade"] if name in _WIDE]

EXPECTED = f"""one of
- Bronze events: a binary column `{EVENT_COLUMN}`, or one binary column of any name
- normalized messages as JSON: a string column {" or ".join(f"`{name}`" for name in TEXT_COLUMNS)}
- Bronze columns: {", ".join(_ENVELOPE)}, then the columns of one payload case, or a struct of each
- a dataset as CSV with its header: {", ".join(_DATASETS)}"""


@dataclass(frozen=True)
class RowForm:
    """What rows are, and which columns of the DataFrame they are made of."""

    form: str
    """As `_core.RowReader` names it."""
    kind: str | None
    """A payload case or a dataset."""
    columns: tuple[str, ...]

    @property
    def _places(self) -> list[str]:
        """Names for columns of a dataset, since Spark's Arrow functions take no dots in names."""
        return [f"column_{place}" for place in range(len(self.columns))]

    def select(self, df: DataFrame) -> DataFrame:
        """Return the columns that are read, in their order."""
        if self.form == "csv":
            pairs = zip(self.columns, self._places, strict=True)
            return df.selectExpr(*(f"CAST({_quoted(name)} AS STRING) {to}" for name, to in pairs))
        if list(self.columns) == df.columns:
            return df
        return df.selectExpr(*map(_quoted, self.columns))

    def select_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch as the core reads it, of what `select` gave or of all columns."""
        is_selected = self.form == "csv" and batch.schema.names == self._places
        columns = batch.columns if is_selected else [batch.column(name) for name in self.columns]
        if self.form == "csv":
            columns = [column.cast(pa.string()) for column in columns]
        return pa.RecordBatch.from_arrays(columns, names=list(self.columns))

    def readable(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a selected batch as it goes to the core.

        A text that is no UTF-8, as Kafka and text files may hold, would fail its whole batch; the
        bytes of messages are checked row by row.
        """
        if self.form != "json":
            return batch
        return pa.RecordBatch.from_arrays(
            [text_bytes(column) for column in batch.columns], names=list(self.columns)
        )

    def reader(self, encoder: _core.BronzeEncoder, max_event_bytes: int) -> _core.RowReader:
        """Return a reader of such rows."""
        return _core.RowReader(
            self.form, self.kind, encoder=encoder, max_event_bytes=max_event_bytes
        )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def form_of(df: DataFrame, given: str = "auto", column: str | None = None) -> RowForm:
    """Return the form of the rows of a DataFrame; see `form_of_schema`."""
    return form_of_schema(df.schema, given, column)


def form_of_schema(schema: StructType, given: str = "auto", column: str | None = None) -> RowForm:
    """Return the form of the rows: as `given` says, else by the columns.

    `given` is `auto`, `bronze`, `json`, `wide`, `narrow:CASE` or `csv:DATASET`; `column` names the
    column of events or texts where it has another name. Raises `ConfigError`, with the expected and
    the found schema, for what does not fit.
    """
    name, _, kind = given.partition(":")
    if column is not None and column not in schema.names:
        raise _mismatch(schema, f"column `{column}` is not there")
    if name == "auto" and column is not None:
        name = "bronze" if isinstance(schema[column].dataType, BinaryType) else "json"
    if name == "auto":
        form = _found_form(schema)
    elif name == "bronze" and not kind:
        form = RowForm("bronze", None, (column or _event_column(schema) or EVENT_COLUMN,))
    elif name == "json" and not kind:
        form = RowForm("json", None, (column or _text_column(schema) or TEXT_COLUMNS[0],))
    elif name == "wide" and not kind:
        form = RowForm("columns", None, _those_of(schema, _WIDE))
    elif name == "narrow" and kind:
        case = str(kind)
        form = RowForm("columns", case, _those_of(schema, _core.bronze_schema(case).names))
    elif name == "csv" and kind in _DATASETS:
        form = RowForm("csv", kind, tuple(_DATASETS[kind]))
    else:
        raise ConfigError(
            f"input: `{given}` is not known; use auto, bronze, json, wide, narrow:CASE with one of "
            f"{', '.join(PAYLOAD_CASES)}, or csv:DATASET with one of {', '.join(_DATASETS)}"
        )
    _check(schema, form)
    return form


def _found_form(schema: StructType) -> RowForm:
    event = _event_column(schema)
    if event is not None:
        return RowForm("bronze", None, (event,))
    text = _text_column(schema)
    if text is not None:
        return RowForm("json", None, (text,))
    names = [name for name in schema.names if name not in _LAKE_PARTITIONS]
    payloads = set(names) - set(_ENVELOPE)
    if payloads and payloads <= set(_WIDE) and set(_ENVELOPE) <= set(names):
        return RowForm("columns", None, tuple(names))
    fits = [f"narrow:{case}" for case, known in _NARROW.items() if set(names) == set(known)]
    fits += [f"csv:{dataset}" for dataset, known in _DATASETS.items() if set(names) == set(known)]
    if len(fits) > 1:
        raise ConfigError(
            f"input: the columns are those of {' and of '.join(fits)}; say which with input="
        )
    if not fits:
        raise _mismatch(schema, "no known form")
    form, _, kind = fits[0].partition(":")
    return RowForm("columns" if form == "narrow" else form, kind, tuple(names))


def _event_column(schema: StructType) -> str | None:
    binaries = [field.name for field in schema if isinstance(field.dataType, BinaryType)]
    if EVENT_COLUMN in binaries:
        return EVENT_COLUMN
    return binaries[0] if len(binaries) == 1 else None


def _text_column(schema: StructType) -> str | None:
    texts = [field.name for field in schema if isinstance(field.dataType, StringType)]
    return next((name for name in TEXT_COLUMNS if name in texts), None)


def _those_of(schema: StructType, known: list[str]) -> tuple[str, ...]:
    return tuple(name for name in schema.names if name in known)


def _check(schema: StructType, form: RowForm) -> None:
    """Read no rows: what is wrong with the columns is found without any."""
    missing = [name for name in form.columns if name not in schema.names]
    if missing or not form.columns:
        raise _mismatch(schema, f"column `{missing[0]}` is not there" if missing else "no column")
    try:
        empty = pa.RecordBatch.from_pylist([], schema=arrow_schema(schema))
        form.reader(_core.BronzeEncoder(), 1).read(form.readable(form.select_batch(empty)))
    except (InvalidEventError, TypeError, pa.ArrowNotImplementedError) as error:
        raise _mismatch(schema, str(error)) from None


def _mismatch(schema: StructType, problem: str) -> ConfigError:
    found = "\n".join(f"- {field.name}: {field.dataType.simpleString()}" for field in schema)
    return ConfigError(
        f"these rows cannot be published: {problem}\nexpected {EXPECTED}\nfound\n{found}"
    )
