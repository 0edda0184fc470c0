"""Ports for brokers."""

from __future__ import annotations

import random
import socket

_given: set[int] = set()


def free_port() -> int:
    """Choose a port of 127.0.0.1 that nothing listens on and that was not given out before.

    It is below the range from which the kernel takes ports for outgoing connections: from that
    range, a port could be taken while its broker is down, even by a client that tries to reach the
    broker and so connects to itself.
    """
    while True:
        port = random.randrange(20_000, 32_000)  # noqa: S311
        if port in _given:
            continue
        with socket.socket() as candidate:
            try:
                candidate.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.add(port)
        return port
