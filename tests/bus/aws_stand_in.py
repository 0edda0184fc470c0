"""A stand-in for Kinesis and SQS that fails what a test says, which no real server does.

It speaks as much of their JSON protocol as the buses use, and keeps everything it was sent.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

if TYPE_CHECKING:
    from collections.abc import Iterable

BATCHES = {"PutRecords": "Records", "SendMessageBatch": "Entries"}
"""The operations that send events, and where the events are."""


@dataclass(frozen=True)
class Refusal:
    """An answer that refuses a whole request."""

    status: int
    code: str
    message: str = ""


@dataclass(frozen=True)
class Failures:
    """The codes of those events of a request that fail, by their place."""

    codes: dict[int, str]
    is_ours: bool = False


class AwsStandIn:
    """The server; what it was sent is in `sent`, by request, and what it took in `taken`."""

    def __init__(self) -> None:
        self.sent: list[list[dict[str, Any]]] = []
        self.taken: list[dict[str, Any]] = []
        self.script: deque[Refusal | Failures] = deque()
        """What becomes of the next requests that send events; all is well once it is empty."""
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """The endpoint to give to a client of AWS."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        """Start it."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, operation: str, request: dict[str, Any]) -> dict[str, Any] | Refusal:
        """Return what a request of an operation is answered with."""
        if operation == "DescribeStreamSummary":
            return {"StreamDescriptionSummary": _summary(request["StreamName"])}
        if operation == "GetQueueAttributes":
            return {"Attributes": {"MaximumMessageSize": "262144"}}
        with self._lock:
            events = request[BATCHES[operation]]
            self.sent.append(events)
            verdict = self.script.popleft() if self.script else Failures({})
            if isinstance(verdict, Refusal):
                return verdict
            self.taken += [
                event for place, event in enumerate(events) if place not in verdict.codes
            ]
        if operation == "PutRecords":
            return _put_records(len(events), verdict)
        return _send_messages([event["Id"] for event in events], verdict)


def _summary(stream: str) -> dict[str, Any]:
    return {
        "StreamName": stream,
        "StreamARN": f"arn:aws:kinesis:eu-west-1:000000000000:stream/{stream}",
        "StreamStatus": "ACTIVE",
        "RetentionPeriodHours": 24,
        "StreamCreationTimestamp": 0,
        "EnhancedMonitoring": [],
        "OpenShardCount": 1,
    }


def _put_records(count: int, failures: Failures) -> dict[str, Any]:
    records = [
        {"ErrorCode": failures.codes[place], "ErrorMessage": "as the test said"}
        if place in failures.codes
        else {"SequenceNumber": str(place + 1), "ShardId": "shardId-000000000000"}
        for place in range(count)
    ]
    return {"FailedRecordCount": len(failures.codes), "Records": records}


def _send_messages(ids: Iterable[str], failures: Failures) -> dict[str, Any]:
    answer: dict[str, list[dict[str, Any]]] = {"Successful": [], "Failed": []}
    for place, entry in enumerate(ids):
        if place in failures.codes:
            failed = {"Id": entry, "Code": failures.codes[place], "SenderFault": failures.is_ours}
            answer["Failed"].append(failed)
        else:
            taken = {"Id": entry, "MessageId": entry, "MD5OfMessageBody": ""}
            answer["Successful"].append(taken)
    return answer


def _handler(stand_in: AwsStandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            operation = self.headers["X-Amz-Target"].rpartition(".")[2]
            answer = stand_in.answer(operation, json.loads(body))
            status = 200
            if isinstance(answer, Refusal):
                status = answer.status
                answer = {"__type": answer.code, "message": answer.message}
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", self.headers["Content-Type"])
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler
