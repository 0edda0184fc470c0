"""The log of requests: one record each. Options may hold a key and are not in it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from aiohttp.http_exceptions import HttpProcessingError

if TYPE_CHECKING:
    from aiohttp import web


class _WithoutClientsFaults(logging.Filter):
    """Makes a line of what clients did wrong: no stack, and nothing of what they sent."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Take every record."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            record.levelno, record.levelname = logging.INFO, logging.getLevelName(logging.INFO)
            record.msg = f"{record.msg}: {type(error).__name__}"
            record.exc_info = None
        return True


PROTOCOL_LOG = logging.getLogger("tardis_fast.server.protocol")
"""Where aiohttp tells of what is no HTTP."""
PROTOCOL_LOG.addFilter(_WithoutClientsFaults())


class RequestLog:
    """Writes to a logger, or to none."""

    def __init__(self, logger: logging.Logger | None) -> None:
        self._logger = logger

    def plain(self, request: web.BaseRequest, status: int, seconds: float) -> None:
        """Tell of an answer over HTTP."""
        self._tell(request, "http", str(status), seconds)

    def socket(self, request: web.BaseRequest, close_code: int | None, seconds: float) -> None:
        """Tell of a WebSocket that was closed."""
        self._tell(request, "ws", "" if close_code is None else str(close_code), seconds)

    def failed(self, request: web.BaseRequest, error: Exception) -> None:
        """Tell why a session ended early."""
        if self._logger is not None:
            extra = {"fields": {"path": request.path, "error": str(error)}}
            self._logger.warning("%s ended early: %s", request.path, error, extra=extra)

    def _tell(self, request: web.BaseRequest, transport: str, outcome: str, seconds: float) -> None:
        if self._logger is None:
            return
        fields = {
            "transport": transport,
            "method": request.method,
            "path": request.path,
            "client": request.remote or "",
            "outcome": outcome,
            "seconds": f"{seconds:.3f}",
        }
        self._logger.info(
            "%s %s %s in %.3f s",
            request.method,
            request.path,
            outcome,
            seconds,
            extra={"fields": fields},
        )
