"""Shell completion: the scripts are sound, and what they ask for is answered."""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

COMMAND = Path(sysconfig.get_path("scripts")) / "tardis-fast"


def script(shell: str) -> str:
    """Return the completion script of a shell."""
    done = subprocess.run(
        [COMMAND, "completion", shell], check=True, capture_output=True, text=True
    )
    return done.stdout


def completed(*words: str) -> list[str]:
    """Return what bash is offered for the last of these words."""
    asked = {
        "_TARDIS_FAST_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["tardis-fast", *words]),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(
        [COMMAND], check=True, capture_output=True, text=True, env=os.environ | asked
    )
    return [line.removeprefix("plain,") for line in done.stdout.splitlines()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(shell: str) -> None:
    text = script(shell)
    assert f"_TARDIS_FAST_COMPLETE={shell}_complete" in text
    if shutil.which(shell):
        subprocess.run([shell, "-n"], check=True, input=text, text=True)


def test_commands_and_options_are_completed() -> None:
    assert completed("se") == ["serve"]
    assert completed("publish", "--kafka-top") == ["--kafka-topic", "--kafka-topic-routing"]
    assert completed("serve", "--no-clu") == ["--no-cluster-mode"]
    assert completed("completion", "z") == ["zsh"]
    assert "--kafka-topic" in completed("publish", "--")


def test_a_shell_that_is_not_known_is_refused() -> None:
    done = subprocess.run(
        [COMMAND, "completion", "tcsh"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in done.stderr
