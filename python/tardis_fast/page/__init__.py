"""The page that shows the running server."""

from importlib.resources import files


def page_bytes() -> bytes:
    """Return the page, as `GET /` serves it."""
    return files(__name__).joinpath("index.html").read_bytes()
