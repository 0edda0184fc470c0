"""The producer's process, seen from the test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from typing_extensions import Self

if TYPE_CHECKING:
    from types import TracebackType

TESTS = Path(__file__).parent.parent


class ProducerProcess:
    """A running producer; what it logs goes to a file beside its state."""

    def __init__(self, order: dict[str, Any], directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.log_path = directory / "producer.log"
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "faults.producer"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=TESTS,
                text=True,
            )
        self._write(json.dumps({"state_dir": str(directory / "state"), **order}))

    def _pipe(self, pipe: IO[str] | None) -> IO[str]:
        if pipe is None:
            raise RuntimeError("the producer has no pipes")
        return pipe

    def _write(self, line: str) -> None:
        pipe = self._pipe(self._process.stdin)
        pipe.write(line + "\n")
        pipe.flush()

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def answer(self) -> dict[str, Any]:
        """Wait for its next line."""
        line = self._pipe(self._process.stdout).readline()
        if not line:
            raise RuntimeError(f"the producer ended early:\n{self.log()[-4000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def go_on(self) -> None:
        """Let it flush and close."""
        self._write("")

    def log(self) -> str:
        """Return what it logged."""
        return self.log_path.read_text(encoding="utf-8")

    def kill(self) -> None:
        """End it by SIGKILL."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
