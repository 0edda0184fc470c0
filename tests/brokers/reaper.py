"""Reads "+group" and "-group" from its input; at its end kills the process groups still listed."""

import contextlib
import os
import signal
import sys

groups: set[int] = set()
for line in sys.stdin:
    if line.startswith("+"):
        groups.add(int(line[1:]))
    else:
        groups.discard(int(line[1:]))
for group in groups:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
