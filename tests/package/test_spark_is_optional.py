"""Without Spark the package works, and says what is missing when it is asked for Spark."""

import subprocess
import sys

WITHOUT = """
import importlib.util as util
find = util.find_spec
util.find_spec = lambda name, *rest: None if name == "pyspark" else find(name, *rest)
import tardis_fast
try:
    import tardis_fast.spark
except ImportError as error:
    print(error)
"""


def test_the_error_names_what_to_install() -> None:
    said = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True
    ).stdout
    assert said.strip() == (
        "tardis_fast.spark needs pyspark; install it with: pip install 'tardis-fast[spark]'"
    )
