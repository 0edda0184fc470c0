"""What is refused, and how that is told over HTTP and over WebSocket."""

from __future__ import annotations

from http import HTTPStatus

from aiohttp import WSCloseCode, web

from tardis_fast._core import ConfigError, ReplayError
from tardis_fast.server.sessions import TooManySessionsError

_LONGEST_REASON = 123
"""Bytes that WebSocket leaves for the reason of a close."""


def refusal(status: int, message: str) -> web.Response:
    """Return an HTTP answer that says why there is no other."""
    return web.json_response({"message": message}, status=status)


def refusal_of(error: Exception) -> web.Response:
    """Return the HTTP answer to a request that failed before anything was sent."""
    return refusal(_status_of(error), told(error))


def _status_of(error: Exception) -> int:
    if isinstance(error, ConfigError):
        return HTTPStatus.BAD_REQUEST
    if isinstance(error, ReplayError):
        return error.status or HTTPStatus.INTERNAL_SERVER_ERROR
    if isinstance(error, TooManySessionsError):
        return HTTPStatus.SERVICE_UNAVAILABLE
    return HTTPStatus.INTERNAL_SERVER_ERROR


def close_code_of(error: Exception) -> int:
    """Return the WebSocket close code for a failure."""
    if isinstance(error, TooManySessionsError):
        return WSCloseCode.TRY_AGAIN_LATER
    return WSCloseCode.INTERNAL_ERROR


def told(error: Exception) -> str:
    """Return what the client is told."""
    if isinstance(error, TooManySessionsError):
        return "as many sessions run as --max-sessions allows; try again later"
    return str(error)


def close_reason(text: str) -> bytes:
    """Return the text as far as a close has room for it, without half a character at its end."""
    return text.encode()[:_LONGEST_REASON].decode(errors="ignore").encode()
