"""Recorded one-minute slices behind the address of an API, filtered as the Tardis API filters."""

from __future__ import annotations

import gzip
import json
import threading
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa
from typing_extensions import Self

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

_TIMESTAMP = 29
"""Length of a line's time and the space after it."""


def decompressed(path: Path) -> bytes:
    """Return what a file of zstd holds."""
    with pa.CompressedInputStream(pa.OSFile(str(path)), "zstd") as stream:
        return bytes(stream.read())


def _compressed(data: bytes, compression: str) -> bytes:
    if compression == "gzip":
        return gzip.compress(data, 1)
    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


def _channel_and_symbol(exchange: str, message: dict[str, Any]) -> tuple[str, str]:
    """Return what a message is about; answers to subscriptions belong to no channel."""
    if exchange == "bitmex":
        rows = message.get("data") or [{}]
        asked_for = message.get("filter", {}).get("symbol")
        return message.get("table", ""), asked_for or rows[0].get("symbol", "")
    if exchange.startswith("binance"):
        symbol, _, channel = message.get("stream", "").partition("@")
        return channel.partition("@")[0], symbol
    channel, _, rest = message.get("params", {}).get("channel", "").partition(".")
    return channel, rest.rpartition(".")[0]


def _filtered(exchange: str, lines: bytes, filters: list[dict[str, Any]]) -> bytes:
    if not filters:
        return lines
    symbols = {wanted["channel"]: wanted.get("symbols") for wanted in filters}
    kept = []
    for line in lines.splitlines(keepends=True):
        if line != b"\n":
            channel, symbol = _channel_and_symbol(exchange, json.loads(line[_TIMESTAMP:]))
            if channel not in symbols or symbol not in (symbols[channel] or [symbol]):
                continue
        kept.append(line)
    return b"".join(kept)


class SlicesApi:
    """Serves the slices below a directory; used with `with`."""

    def __init__(self, root: Path) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                url = urlsplit(self.path)
                query = dict(parse_qsl(url.query))
                exchange = url.path.rpartition("/")[2]
                start = datetime.fromisoformat(query["from"].replace("Z", "+00:00"))
                minute = start + timedelta(minutes=int(query["offset"]))
                path = root / exchange / minute.strftime("%Y/%m/%d/%H/%M.json.zst")
                lines = _filtered(
                    exchange, decompressed(path), json.loads(query.get("filters", "[]"))
                )
                compression = "zstd" if query["compression"].startswith("zstd") else "gzip"
                body = _compressed(lines, compression)
                self.send_response(200)
                self.send_header("Content-Encoding", compression)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("x-slice-size", "1")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
