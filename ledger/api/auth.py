"""Who asks: a bearer key with the scope that the route needs, looked at before anything of the request is read."""

from __future__ import annotations

from typing import cast

from django.http import HttpRequest
from ninja.security.base import AuthBase

from ledger.api import rates
from ledger.domain.identity import Caller, Scope
from ledger.services import keys


class ApiKey(AuthBase):
    """A live key that has the scope, and doesn't call too often. Raises LedgerError `unauthenticated`, `key-revoked`, `key-expired`, `scope-missing`,
    `rate-limited`.

    What a worker says of a call that it made, and that it still lives, is `unlimited`: refused, it would cost a run or an outcome.
    """

    openapi_type = "http"
    openapi_scheme = "bearer"

    def __init__(self, scope: Scope, unlimited: bool = False) -> None:
        self.scope = scope
        self.unlimited = unlimited
        super().__init__()

    def __call__(self, request: HttpRequest) -> Caller:
        caller = keys.authenticate(request.headers.get("Authorization"))
        caller.needs(self.scope)
        if caller.key_id is not None and not self.unlimited:
            rates.check(caller.key_id)
        return caller


READ = ApiKey(Scope.RUNS_READ)
WORK = ApiKey(Scope.RUNS_WORK)
REPORT = ApiKey(Scope.RUNS_WORK, unlimited=True)
START = ApiKey(Scope.RUNS_START)
REGISTER = ApiKey(Scope.WORKFLOWS_REGISTER)
EMIT = ApiKey(Scope.EVENTS_EMIT)


def caller(request: HttpRequest) -> Caller:
    """Who authentication found."""
    return cast(Caller, request.auth)  # type: ignore[attr-defined]
