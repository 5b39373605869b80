"""Who asks: a bearer key with the scope that the route needs, looked at before anything of the request is read."""

from __future__ import annotations

from typing import cast

from django.http import HttpRequest
from ninja.security.base import AuthBase

from ledger.domain.identity import Caller, Scope
from ledger.services import keys


class ApiKey(AuthBase):
    """A live key that has the scope. Raises LedgerError `unauthenticated`, `key-revoked`, `key-expired`, `scope-missing`."""

    openapi_type = "http"
    openapi_scheme = "bearer"

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        super().__init__()

    def __call__(self, request: HttpRequest) -> Caller:
        caller = keys.authenticate(request.headers.get("Authorization"))
        caller.needs(self.scope)
        return caller


READ = ApiKey(Scope.RUNS_READ)
WORK = ApiKey(Scope.RUNS_WORK)
START = ApiKey(Scope.RUNS_START)
REGISTER = ApiKey(Scope.WORKFLOWS_REGISTER)
EMIT = ApiKey(Scope.EVENTS_EMIT)


def caller(request: HttpRequest) -> Caller:
    """Who authentication found."""
    return cast(Caller, request.auth)  # type: ignore[attr-defined]
