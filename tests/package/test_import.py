"""Importing the package is cheap and does nothing else."""

import subprocess
import sys

import tardis_fast
from tardis_fast import _core


def run(code: str) -> str:
    """Run `code` in a fresh interpreter and return what it prints."""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_import_starts_no_thread() -> None:
    code = "import os, tardis_fast; print(len(os.listdir('/proc/self/task')))"
    assert run(code) == "1"


def test_import_loads_no_heavy_package() -> None:
    code = "import sys, tardis_fast; print(*sorted(sys.modules))"
    loaded = set(run(code).split())
    heavy = {"pyarrow", "google.protobuf", "click", "rich", "pydantic", "pyspark", "asyncio"}
    assert not loaded & heavy


def test_every_export_of_the_core_has_a_place_in_the_package() -> None:
    exported = {name for name in dir(_core) if not name.startswith("_")}
    assert exported <= set(tardis_fast.__all__)
    assert all(hasattr(tardis_fast, name) for name in tardis_fast.__all__)


def test_exceptions_have_one_base() -> None:
    assert issubclass(tardis_fast.TardisFastError, ValueError)
    for error in (
        tardis_fast.ConfigError,
        tardis_fast.InvalidMessageError,
        tardis_fast.InvalidEventError,
    ):
        assert issubclass(error, tardis_fast.TardisFastError)
