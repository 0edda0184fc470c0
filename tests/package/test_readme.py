"""What the README shows is true."""

import re
from pathlib import Path
from typing import Any

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")


def test_python_examples_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(examples) == 5
    names: dict[str, Any] = {"print": lambda *_: None}
    for example in examples:
        exec(compile(example, "README.md", "exec"), names)  # noqa: S102 - the project's own text
    assert names["event"].trade.price_str == "62350.5"
