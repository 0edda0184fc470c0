"""What a task does to publish its partition, for `publish` and for the data source alike."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from tardis_fast._core import TardisFastError
from tardis_fast.spark.ledger_rows import TaskAccount
from tardis_fast.spark.process_publisher import DeadLetters, ProcessPublisher
from tardis_fast.spark.rejected_rows import RejectedRow, RejectedRows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tardis_fast.options import Settings
    from tardis_fast.spark.row_forms import RowForm


class PublishingTask:
    """Publishes the batches of a partition; it goes to the executors."""

    def __init__(  # noqa: PLR0913 - the options, by name
        self,
        settings: Settings,
        form: RowForm,
        run: str,
        *,
        quarantines: bool,
        allow_dead_letters: bool,
        max_event_bytes: int,
    ) -> None:
        self._settings = settings
        self._form = form
        self._run = run
        self._quarantines = quarantines
        self._allow_dead_letters = allow_dead_letters
        self._max_event_bytes = max_event_bytes

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[list[dict[str, Any]]]:
        """Publish all batches; give what is set aside as it is found, and the ledger at the end.

        Returns only when every event is acknowledged; raises when one cannot be.
        """
        account = TaskAccount.of_task(self._run)
        bronze = self._settings.bronze.with_session(f"{self._run}-{account.partition}")
        reader = self._form.reader(bronze.encoder(), self._max_event_bytes)
        rejected = RejectedRows(account.partition, "set them aside with quarantine=")
        publisher = None
        for batch in batches:
            if not batch.num_rows:
                continue
            if publisher is None:
                publisher = ProcessPublisher.of(self._settings)
                publisher.start_task()
            batch = self._form.select_batch(batch)  # noqa: PLW2901 - the same, as it is read
            events, bad = reader.read(self._form.readable(batch))
            found = rejected.of_batch(batch, bad)
            if found and not self._quarantines:
                rejected.refuse(found)
            if found:
                yield account.quarantine(found)
            publisher.publish(events)
        if publisher is None:
            yield account.empty_ledger(tuple(self._settings.buses))
            return
        publisher.publish(reader.finish()[0])
        before, after, dead = publisher.finish_task()
        if dead:
            yield account.quarantine(self._buried(dead, account.partition))
        yield account.ledger(before, after)

    def _buried(self, dead: DeadLetters, partition: int) -> list[RejectedRow]:
        if not self._allow_dead_letters:
            raise TardisFastError(
                f"partition {partition}: {len(dead)} events cannot be delivered: "
                f"{dead.first_reason}; correct that, or have them set aside with quarantine= and "
                "allow_dead_letters=True"
            )
        return [
            RejectedRow(-1, letter["reason"], _content(letter))
            for batch in dead.batches
            for letter in batch.to_pylist()
        ]


def _content(letter: dict[str, Any]) -> str:
    event = base64.b64encode(letter["event"]).decode()
    return json.dumps({"payload_case": letter["payload_case"], "event": event})
