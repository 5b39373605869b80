"""Refusals over HTTP: each error of the tree becomes one problem document (RFC 9457), in this place only."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import structlog
from django.core.exceptions import RequestDataTooBig
from django.db import DataError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from ledger.api.answers import encode
from ledger.domain.canonical import plain
from ledger.domain.errors import LedgerError

MEDIA = "application/problem+json"
TYPE = "urn:resumeapp:problem:"
RETRY_SECONDS = 1
_MOST_FAULTS = 5
_log = structlog.get_logger(__name__)


def problem(error: LedgerError) -> HttpResponse:
    """The problem document of a refusal. Facts are ids, codes, versions and times; never what was sent."""
    document = {
        "type": TYPE + error.code,
        "title": HTTPStatus(error.status).phrase,
        "status": error.status,
        "code": error.code,
        "detail": error.reason,
        "remedy": error.remedy,
        "facts": plain(error.facts),
    }
    response = HttpResponse(encode(document), status=error.status, content_type=MEDIA)
    if error.status == HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = "Bearer"
    if error.status in {HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS}:
        response["Retry-After"] = str(error.facts.get("retry_after", RETRY_SECONDS))
    return response


def too_large(limit: int) -> LedgerError:
    """More bytes came, or were announced, than a request may have."""
    return LedgerError(
        "too-large",
        f"the request is larger than the {limit} bytes that are taken",
        "Keep large content in a store of your own, and send its address and digest.",
        limit=limit,
    )


def install(api: NinjaAPI) -> None:
    """Map every error that can leave a view."""
    api.add_exception_handler(LedgerError, _refused)
    api.add_exception_handler(ValidationError, _invalid)
    api.add_exception_handler(HttpError, _unparsed)
    api.add_exception_handler(Http404, _no_such)
    api.add_exception_handler(RequestDataTooBig, _too_big)
    api.add_exception_handler(UnreadablePostError, _cut_off)
    for lost in (OperationalError, InterfaceError):
        api.add_exception_handler(lost, _database_lost)
    api.add_exception_handler(DataError, _not_storable)
    api.add_exception_handler(Exception, _unexpected)


def _refused(request: HttpRequest, error: Any) -> HttpResponse:
    return problem(error)


def _unparsed(request: HttpRequest, error: Any) -> HttpResponse:
    """The framework wraps what the strict parser raised."""
    cause = error.__cause__
    if isinstance(cause, LedgerError):
        return problem(cause)
    return _unexpected(request, cause or error)


def _no_such(request: HttpRequest, error: Any) -> HttpResponse:
    return problem(LedgerError("not-found", "there is nothing at this address", "Check the path against /api/v1/docs."))


def _too_big(request: HttpRequest, error: Any) -> HttpResponse:
    from django.conf import settings

    return problem(too_large(settings.DATA_UPLOAD_MAX_MEMORY_SIZE))


def _cut_off(request: HttpRequest, error: Any) -> HttpResponse:
    return problem(LedgerError("malformed-json", "the request ended before its announced length", "Send it again."))


def _not_storable(request: HttpRequest, error: Any) -> HttpResponse:
    _log.warning("value_refused_by_database", path=request.path, error=type(error).__name__)
    return problem(LedgerError("invalid", "a value doesn't fit its field", "Shorten it."))


def _database_lost(request: HttpRequest, error: Any) -> HttpResponse:
    _log.warning("database_lost", path=request.path, error=type(error).__name__)
    return problem(
        LedgerError(
            "unavailable",
            "the database did not answer; whether this call was carried out isn't known",
            "Ask again with the same Idempotency-Key: what was carried out is answered, not repeated.",
        )
    )


def _unexpected(request: HttpRequest, error: Any) -> HttpResponse:
    """Types and places go to the log, never texts: those may hold what was sent."""
    number = str(uuid4())
    _log.error("unexpected_error", id=number, path=request.path, error=type(error).__name__, at=_where(error))
    return problem(
        LedgerError(
            "internal",
            "something unexpected happened here",
            f"Ask again with the same Idempotency-Key; if it stays, tell an administrator the number {number}.",
            id=number,
        )
    )


def _where(error: BaseException) -> list[str]:
    places = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        places.append(f"{code.co_filename.rsplit('/', 2)[-1]}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return places[-6:]


# What the models refuse -----------------------------------------------------------------------


def _invalid(request: HttpRequest, error: Any) -> HttpResponse:
    return problem(faults(error.errors))


def faults(errors: list[dict[str, Any]]) -> LedgerError:
    """One refusal for all that a model found: paths and rules, never values."""
    unknown = [found for found in errors if found["type"] == "extra_forbidden"]
    shown = (unknown or errors)[:_MOST_FAULTS]
    reason = "; ".join(f"{path(found['loc'])} {_says(found)}" for found in shown)
    fields = [path(found["loc"]) for found in shown]
    if unknown:
        return LedgerError(
            "unknown-field", reason, "Leave it out, or check its spelling against /api/v1/docs.", fields=fields
        )
    return LedgerError("invalid", reason, "Correct the named fields; /api/v1/docs says what each takes.", fields=fields)


def path(place: tuple[Any, ...]) -> str:
    """`$.next.kind` in a body, `limit in the query` elsewhere."""
    kind, *steps = place
    if kind != "body":
        return f"{'.'.join(str(step)[:80] for step in steps)} in the {kind}"
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{str(step)[:80]}" for step in steps[1:])


_SAYINGS: Mapping[str, str] = {
    "missing": "is needed",
    "extra_forbidden": "isn't known",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "union_tag_invalid": "must be of a kind among {expected_tags}",
    "union_tag_not_found": "needs its kind",
    "uuid_parsing": "isn't a UUID",
    "uuid_type": "isn't a UUID",
    "int_type": "isn't an integer",
    "int_parsing": "isn't an integer",
    "int_from_float": "isn't an integer",
    "string_type": "isn't text",
    "bool_type": "isn't true or false",
    "list_type": "isn't a list",
    "tuple_type": "isn't a list",
    "dict_type": "isn't an object",
    "model_type": "isn't an object",
    "model_attributes_type": "isn't an object",
    "string_too_long": "has more than {max_length} characters",
    "string_too_short": "has fewer than {min_length} characters",
    "string_pattern_mismatch": "isn't of the form {pattern}",
    "too_long": "has more than {max_length} items",
    "too_short": "has fewer than {min_length} items",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
}


def _says(found: Mapping[str, Any]) -> str:
    return _SAYINGS.get(found["type"], "isn't usable").format_map(found.get("ctx") or {})
