"""The sample market and the cache from the command line."""

import os
import signal
import subprocess
import sysconfig
from pathlib import Path

import tardis_fast
from tardis_fast import FeedOptions, Stream

COMMAND = Path(sysconfig.get_path("scripts")) / "tardis-fast"


def test_sample_api_serves_until_it_is_stopped(tmp_path: Path) -> None:
    arguments = ["sample-api", "--port", "0", "--seed", "7", "--book-levels", "20"]
    with subprocess.Popen([COMMAND, *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            endpoint = process.stdout.readline().split()[3].rstrip(":")
            feed = FeedOptions(endpoint=endpoint, cache_dir=tmp_path)
            stream = Stream("deribit", "2020-02-01", "2020-02-01T00:02", ["book_change"])
            messages = list(tardis_fast.replay_normalized(stream, feed=feed).messages())
        finally:
            process.send_signal(signal.SIGTERM)
    assert messages
    assert process.returncode == 0


def test_clear_cache_removes_an_exchange_or_all(tmp_path: Path) -> None:
    for exchange in ("bitmex", "deribit"):
        (tmp_path / "feeds" / exchange / "hash").mkdir(parents=True)
    clear = [str(COMMAND), "clear-cache", "--cache-dir", str(tmp_path)]
    subprocess.run([*clear, "--exchange", "bitmex"], check=True)
    assert [path.name for path in (tmp_path / "feeds").iterdir()] == ["deribit"]
    subprocess.run(clear, check=True)
    assert not (tmp_path / "feeds").exists()


def test_the_cache_is_named_by_the_file_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "all.toml"
    file.write_text(f'[archive]\ncache_dir = "{tmp_path}/file"\n[server]\nport = 1\n', "utf-8")
    for name in ("file", "environment"):
        (tmp_path / name / "feeds" / "bitmex").mkdir(parents=True)
    clear = [str(COMMAND), "clear-cache", "--config", str(file)]
    environment = os.environ | {"TM_CACHE_DIR": f"{tmp_path}/environment"}
    subprocess.run(clear, check=True, env=environment)
    assert (tmp_path / "file" / "feeds").exists()
    assert not (tmp_path / "environment" / "feeds").exists()
    subprocess.run(clear, check=True)
    assert not (tmp_path / "file" / "feeds").exists()


def test_clear_cache_refuses_what_is_no_exchange(tmp_path: Path) -> None:
    done = subprocess.run(
        [COMMAND, "clear-cache", "--cache-dir", str(tmp_path), "--exchange", ".."],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "`..` is no exchange id" in done.stderr
