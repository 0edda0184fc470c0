"""What `import tardis_fast` adds to starting Python.

usage: python benches/import_time.py
"""

import statistics
import subprocess
import sys
import time

ROUNDS = 25


def start(code: str) -> float:
    """Return the time a fresh interpreter takes for `code`, in milliseconds."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return (time.perf_counter() - started) * 1_000


def main() -> None:
    """Alternate the two, so that both see the same machine, and print the medians."""
    pairs = [(start("pass"), start("import tardis_fast")) for _ in range(ROUNDS)]
    nothing = statistics.median(pair[0] for pair in pairs)
    imported = statistics.median(pair[1] for pair in pairs)
    print(f"python -c pass                {nothing:7.1f} ms")
    print(f"python -c 'import tardis_fast'{imported:7.1f} ms")
    print(f"added {imported - nothing:.1f} ms, ratio {imported / nothing:.2f}")


if __name__ == "__main__":
    main()
