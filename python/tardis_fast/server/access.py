"""Who may ask: the bearer token."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import web

_SCHEME = "bearer "


class Access:
    """Lets everybody in, or those who know the token."""

    def __init__(self, token: str | None) -> None:
        self._token = None if token is None else token.encode()

    def allows(self, request: web.BaseRequest) -> bool:
        """Whether the request has the token, if one is asked for."""
        if self._token is None:
            return True
        given = request.headers.get("Authorization", "")
        if given[: len(_SCHEME)].lower() != _SCHEME:
            return False
        return hmac.compare_digest(given[len(_SCHEME) :].strip().encode(), self._token)
