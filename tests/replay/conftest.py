"""The sample market behind an address, and a cache of its own for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tardis_fast import FeedOptions
from tardis_fast.sample_api import SampleApiThread


@pytest.fixture(scope="session")
def sample_api() -> Iterator[SampleApiThread]:
    """Serve the sample market."""
    with SampleApiThread() as api:
        yield api


@pytest.fixture
def feed(sample_api: SampleApiThread, tmp_path: Path) -> FeedOptions:
    """Point replays to the sample market, with an empty cache."""
    return FeedOptions(endpoint=sample_api.endpoint, cache_dir=tmp_path / "cache")
