"""The event loop of programs that serve: uvloop's, where there is one."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")


def run(main: Coroutine[Any, Any, _Result]) -> _Result:
    """Run `main` in a new event loop."""
    try:
        import uvloop  # noqa: PLC0415 - not there on every system
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)
