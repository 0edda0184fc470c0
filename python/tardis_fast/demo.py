"""The demo: sample messages to Bronze, to Arrow and back, with the sizes and rates seen."""

import time
from importlib.resources import files

from rich.console import Console
from rich.table import Table

import tardis_fast

COPIES = 300
"""How often the sample messages stand in one chunk: a few thousand messages, as in real use."""


def run(chunk_count: int) -> None:
    """Encode `chunk_count` chunks of the sample messages and print what came of it."""
    console = Console()
    lines = (files(tardis_fast) / "samples" / "messages.jsonl").read_bytes() * COPIES
    encoder = tardis_fast.BronzeEncoder(origin="replay", meta={"session_id": "demo"})

    started = time.perf_counter()
    chunks = [encoder.encode_json(lines) for _ in range(chunk_count)]
    encoded = time.perf_counter()
    batches = [tardis_fast.events_to_batch(chunk) for chunk in chunks]
    arrow = time.perf_counter()
    back = [tardis_fast.batch_to_events(batch) for batch in batches]
    finished = time.perf_counter()
    same = sum(after.equals(before) for after, before in zip(back, chunks, strict=True))
    lossless = tardis_fast.decode_to_json(chunks[0]) == lines

    table = Table(title="Bronze events of the sample messages, by payload case")
    table.add_column("payload case")
    for name in ("events", "columns", "bytes/event"):
        table.add_column(name, justify="right")
    for case, batch in tardis_fast.events_by_case(chunks[0]).items():
        size = tardis_fast.batch_to_events(batch, case=case).nbytes / batch.num_rows
        count = batch.num_rows * chunk_count
        table.add_row(case, f"{count:,}", str(batch.num_columns), f"{size:.0f}")
    console.print(table)

    events = sum(len(chunk) for chunk in chunks)
    messages = lines.count(b"\n") * chunk_count
    console.print(f"JSON → Bronze:  {messages / (encoded - started):,.0f} messages/s")
    console.print(f"Bronze → Arrow: {events / (arrow - encoded):,.0f} events/s")
    console.print(f"Arrow → Bronze: {events / (finished - arrow):,.0f} events/s")
    console.print(f"Same bytes after Arrow: {same} of {chunk_count} chunks")
    console.print(f"Same JSON after Bronze: {'yes' if lossless else 'NO'}")
