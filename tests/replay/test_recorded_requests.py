"""Recorded requests on recorded slices give the recorded bytes."""

import hashlib
import json
import logging
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replay.slices_api import SlicesApi
from tardis_fast import Archive, FeedOptions, Session

CONFORMANCE = Path(__file__).parents[3] / "shared" / "conformance" / "e2e"


@pytest.fixture(scope="module")
def slices_api() -> Iterator[SlicesApi]:
    """Serve the recorded slices."""
    with SlicesApi(CONFORMANCE / "slices") as api:
        yield api


def body(session: Session) -> bytes:
    """Read a replay to its end."""
    chunks = []
    while (chunk := session.next_chunk()) is not None:
        assert chunk.messages == chunk.lines.count(b"\n")
        chunks.append(chunk.lines)
    return b"".join(chunks)


@pytest.mark.parametrize("compression", ["zstd", "gzip"])
def test_every_recorded_request_gives_the_recorded_bytes(
    slices_api: SlicesApi, tmp_path: Path, compression: str
) -> None:
    if not CONFORMANCE.is_dir():
        warnings.warn(f"conformance data is not there: {CONFORMANCE}", stacklevel=1)
        return
    requests: list[dict[str, Any]] = json.loads((CONFORMANCE / "requests.json").read_text("utf-8"))
    feed = FeedOptions(
        endpoint=slices_api.endpoint, cache_dir=tmp_path / "cache", compression=compression
    )
    archive = Archive(json.dumps(feed.core_values()))
    wrong = []
    counts: Counter[str] = Counter()
    for request in requests:
        open_ = Session.raw if request["path"] == "/replay" else Session.normalized
        found = body(open_(json.dumps(request["options"]), archive))
        expected = request["sha256"]
        # Frames of a WebSocket are joined by newlines, so the last one has none.
        if expected not in (
            hashlib.sha256(found).hexdigest(),
            hashlib.sha256(found[:-1]).hexdigest(),
        ):
            wrong.append(f"{request['name']}: {len(found)} bytes, expected {request['bytes']}")
        counts[request["path"]] += 1
    logging.getLogger(__name__).info("requests: %s", dict(counts))
    assert not wrong, "\n".join(wrong)
