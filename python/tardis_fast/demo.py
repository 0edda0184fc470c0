"""The demo: sample messages to Bronze, to Arrow and back, with the sizes and rates seen."""

import time
from importlib.resources import files

from rich.console import Console
from rich.table import Table

import tardis_fast


def run(repeat: int) -> None:
    """Encode the sample messages `repeat` times and print a table of what came of it."""
    console = Console()
    lines = (files(tardis_fast) / "samples" / "messages.jsonl").read_bytes()
    encoder = tardis_fast.BronzeEncoder(origin="replay", meta={"session_id": "demo"})

    started = time.perf_counter()
    chunks = [encoder.encode_json(lines) for _ in range(repeat)]
    encoded = time.perf_counter()
    batches = [tardis_fast.events_to_batch(chunk) for chunk in chunks]
    arrow = time.perf_counter()
    same = sum(
        tardis_fast.batch_to_events(batch).equals(chunk)
        for batch, chunk in zip(batches, chunks, strict=True)
    )
    back = time.perf_counter()
    lossless = tardis_fast.decode_to_json(chunks[0]) == lines

    table = Table(title="Bronze events of the sample messages, by payload case")
    table.add_column("payload case")
    for name in ("events", "columns", "bytes/event"):
        table.add_column(name, justify="right")
    for case, batch in tardis_fast.events_by_case(chunks[0]).items():
        size = tardis_fast.batch_to_events(batch, case=case).nbytes / batch.num_rows
        table.add_row(case, f"{batch.num_rows * repeat:,}", str(batch.num_columns), f"{size:.0f}")
    console.print(table)

    events = sum(len(chunk) for chunk in chunks)
    messages = lines.count(b"\n") * repeat
    console.print(f"JSON → Bronze:  {messages / (encoded - started):,.0f} messages/s")
    console.print(f"Bronze → Arrow: {events / (arrow - encoded):,.0f} events/s")
    console.print(f"Arrow → Bronze: {events / (back - arrow):,.0f} events/s")
    console.print(f"Same bytes after Arrow: {same} of {len(chunks)} chunks")
    console.print(f"Same JSON after Bronze: {'yes' if lossless else 'NO'}")
