"""A standalone cluster of Spark: a master and two workers, and programs that run on it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
from typing_extensions import Self

import tardis_fast
from brokers.ports import free_port
from brokers.process import Process
from brokers.program import Program

if TYPE_CHECKING:
    from types import TracebackType

WORKERS = 2
_CLASSES = "org.apache.spark.deploy"
_EXECUTOR = b"CoarseGrainedExecutorBackend"
_PATIENCE = 120


class Cluster:
    """Used with `with`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._runs: list[Run] = []
        self._port = free_port()
        host = ["--host", "127.0.0.1", "--webui-port"]
        arguments = {"master": ["Master", *host, str(free_port()), "--port", str(self._port)]}
        for number in range(WORKERS):
            work = ["-c", "1", "-m", "1g", "-d", str(directory / f"work-{number}")]
            arguments[f"worker-{number}"] = ["Worker", *host, str(free_port()), *work, self.master]
        self._processes = {name: self._process(name, *rest) for name, rest in arguments.items()}

    @property
    def master(self) -> str:
        """The address that drivers connect to."""
        return f"spark://127.0.0.1:{self._port}"

    def _process(self, name: str, kind: str, *arguments: str) -> Process:
        spark = Path(pyspark.__file__).parent
        directory = self._directory / name
        directory.mkdir()
        command = [str(spark / "bin" / "spark-class"), f"{_CLASSES}.{kind.lower()}.{kind}"]
        environment = {"SPARK_HOME": str(spark), "SPARK_DAEMON_MEMORY": "256m"}
        return Process(
            Program([*command, *arguments], image="", environment=environment), directory
        )

    def __enter__(self) -> Self:
        for process in self._processes.values():
            process.start()
        self._wait_for("master", "Registering worker", WORKERS)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for run in self._runs:
            run.end()
        for process in reversed(self._processes.values()):
            process.kill()

    def _wait_for(self, name: str, text: str, times: int) -> None:
        deadline = time.monotonic() + _PATIENCE
        while self._processes[name].log(1_000).count(text) < times:
            assert time.monotonic() < deadline, self._processes[name].log(50)
            time.sleep(0.2)

    def start(self, program: str, **arguments: Any) -> Run:
        """Start a driver: a program of this directory, with its arguments as JSON."""
        self._runs.append(Run(self._directory, self.master, program, arguments))
        return self._runs[-1]

    def executors(self) -> list[int]:
        """Return the process ids of the executors that run now."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:  # it has ended
                continue
            if _EXECUTOR in command and str(self._directory).encode() in command:
                found.append(int(entry.name))
        return found

    def kill_an_executor(self) -> None:
        """End one as a crash would."""
        os.kill(self.executors()[0], signal.SIGKILL)


class Run:
    """A driver at work."""

    def __init__(
        self, directory: Path, master: str, program: str, arguments: dict[str, Any]
    ) -> None:
        self._result = directory / f"{program}-{time.monotonic_ns()}.json"
        self._log = self._result.with_suffix(".log")
        packages = str(Path(tardis_fast.__file__).parents[1])
        here = Path(__file__).parent
        paths = os.pathsep.join([packages, str(here.parent)])
        environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": paths}
        given = {"master": master, "result": str(self._result), "directory": str(directory)}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(here / f"{program}.py"), json.dumps(given | arguments)],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
            )

    def result(self) -> Any:
        """Wait for the end and return what it found."""
        try:
            status = self._process.wait(600)
        finally:
            self._process.kill()
        assert status == 0, _without_java(self._log.read_text("utf-8", "replace"))
        return json.loads(self._result.read_text("utf-8"))

    def fail(self, text: str) -> None:
        """End it, and fail with what it said."""
        self.end()
        raise AssertionError(f"{text}; {_without_java(self._log.read_text('utf-8', 'replace'))}")

    def end(self) -> None:
        """End it, if it has not ended."""
        self._process.kill()
        self._process.wait()

    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None


def _without_java(log: str) -> str:
    return "\n".join(line for line in log.splitlines() if not re.match(r"\s+at ", line))[-6_000:]
