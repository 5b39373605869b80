"""One request that schemathesis made, sent over HTTP as somebody, and all that must hold of its answer and of the rows after it."""

import json
import uuid
from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

import requests
from schemathesis import GenerationMode, Response
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.case import Case
from schemathesis.specs.openapi import checks

from ledger.domain.errors import STATUS
from tests.storms import aims
from tests.storms.rows import Rows, explained

CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]
CALLERS = ("agent",) * 6 + ("operator", "nobody")
SECONDS = 60
FORMS = {
    "unknown-field",
    "unsupported-media",
    "malformed-json",
    "duplicate-key",
    "naive-time",
    "method-not-allowed",
    "key-required",
}
"""Refusals of a request's form, all of which the document says."""
_NOT_SENDABLE = (
    requests.exceptions.InvalidHeader,
    requests.exceptions.InvalidURL,
    requests.exceptions.InvalidJSONError,
    UnicodeError,
)
"""Headers and addresses that no client can put on the line."""


class Judge:
    """Who calls, what is there to aim at, and what was found. Requests go to `host`, which serves the database of this process."""

    def __init__(self, host: str, key: str, email: str, chance: Random) -> None:
        from ledger.models import Tenant, User

        self._host = host
        self._chance = chance
        self._lines = requests.Session()
        self._lines.trust_env = False
        person, tenant = User.objects.get(email=email), Tenant.objects.get()
        self._headers: Mapping[str, Mapping[str, str]] = {
            "agent": {"Authorization": f"Bearer {key}"},
            "operator": {"Authorization": f"Bearer {operator_key(person, tenant)}"},
            "person": signed_in(person),
            "nobody": {},
        }
        self.counted: Counter[str] = Counter()
        self.sent = 0
        self.failures: list[str] = []
        # Before the first call: the server's connection is watched from when it opens.
        self._rows = Rows()
        self._known = aims.lay(self._must, tenant)
        self._rows.changed()

    def _must(self, method: str, path: str, body: Any) -> Any:
        headers = {**self._headers["agent"], "Idempotency-Key": str(uuid.uuid4())}
        reply = self._lines.request(method, f"{self._host}/api/v1{path}", json=body, headers=headers, timeout=SECONDS)
        assert reply.status_code < 300, (path, reply.text[:300])
        return reply.json()

    def caller(self, case: Case) -> str:
        """Mostly somebody who may; a person where only people may."""
        drawn = self._chance.choice(CALLERS)
        decides = case.operation.path.endswith("/decision")
        return "person" if decides and drawn == "agent" and self._chance.random() < 0.8 else drawn

    def aim(self, case: Case) -> None:
        """Point what isn't to be wrong at something that is there, most of the time."""
        if _sound(case, ParameterLocation.PATH):
            for name in sorted(set(case.path_parameters) & set(self._known)):
                if self._chance.random() < 0.8:
                    case.path_parameters[name] = self._chance.choice(self._known[name])
        if _sound(case, ParameterLocation.BODY) and isinstance(case.body, dict):
            aimed = [name for name in sorted(case.body) if self._known.get(name) and self._chance.random() < 0.5]
            case.body = {**case.body, **{name: self._chance.choice(self._known[name]) for name in aimed}}

    def send(self, case: Case, kind: str, caller: str = "") -> Response | None:
        """Send it and keep what is wrong with the answer; None for what can't be put on the line."""
        caller = caller or self.caller(case)
        if _sound(case, ParameterLocation.BODY) and isinstance(case.body, dict) and "wait_seconds" in case.body:
            case.body = {**case.body, "wait_seconds": 0}
        where = f"{case.operation.label}, {kind} as {caller}: {case.method} {case.formatted_path[:120]} {str(case.body)[:160]!r}"
        try:
            reply = case.call(
                base_url=self._host,
                session=self._lines,
                headers=dict(self._headers[caller]),
                timeout=SECONDS,
                allow_redirects=False,
            )
        except _NOT_SENDABLE:
            self.counted["not sendable"] += 1
            return None
        self.sent += 1
        self.counted[kind] += 1
        self.counted[f"{reply.status_code // 100}xx"] += 1
        said = reply.content[:200] if reply.content else b""
        self.failures += [f"{fault} for {where} {said!r}" for fault in self._faults(case, caller, reply)]
        return reply

    def _faults(self, case: Case, caller: str, reply: Response) -> list[str]:
        faults = list(_broken_checks(case, reply))
        if reply.status_code < 400:
            faults += _undocumented(case, reply)
            if caller == "nobody":
                faults.append(f"{reply.status_code} and nobody asked")
        elif case.method != "HEAD":
            faults += _no_problem(reply) or _not_as_documented(case, reply)
        changed = self._rows.changed()
        self.counted["wrote"] += bool(changed) and reply.status_code < 400
        if reply.status_code >= 400 and changed:
            if explained(case.formatted_path, changed):
                self.counted["refused, and the run was told to wake"] += 1
            else:
                faults.append(f"{reply.status_code} and rows {changed}")
        return faults


def _sound(case: Case, location: ParameterLocation) -> bool:
    """Whether nothing there is meant to be wrong."""
    modes = case.meta.components if case.meta else {}
    return location not in modes or modes[location].mode is GenerationMode.POSITIVE


def _broken_checks(case: Case, reply: Response) -> list[str]:
    try:
        case.validate_response(reply, checks=CHECKS)
    except FailureGroup as found:
        return [f"{each.title}: {' '.join(each.message.split())[:300]}" for each in found.exceptions]
    return []


def _undocumented(case: Case, reply: Response) -> list[str]:
    """`default` in the document is for refusals: what was carried out is answered by a status of its own, by a method that the document has."""
    documented = set(case.operation.responses.status_codes) if case.method == case.operation.method.upper() else set()
    return (
        []
        if str(reply.status_code) in documented
        else [f"{case.method} is answered {reply.status_code}, which isn't documented"]
    )


def _no_problem(reply: Response) -> list[str]:
    media = (reply.headers.get("content-type") or [""])[0]
    try:
        found = json.loads(reply.content or b"")
    except ValueError:
        found = None
    if not isinstance(found, dict) or "application/problem+json" not in media:
        return [f"{reply.status_code} without a problem"]
    if STATUS.get(found.get("code", "")) != reply.status_code or found.get("status") != reply.status_code:
        return [f"{reply.status_code} with the code {found.get('code')!r} of another status"]
    return [] if found.get("remedy") and found.get("detail") else [f"{reply.status_code} without a remedy"]


def _not_as_documented(case: Case, reply: Response) -> list[str]:
    """What the document allows has the form that the product takes, whatever the record then says to it."""
    allowed = case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE
    code = json.loads(reply.content)["code"]
    return [f"{code}, which the document allows"] if allowed and code in FORMS else []


def operator_key(person: Any, tenant: Any) -> str:
    """The key of a person who may see and operate everything."""
    from ledger.domain.identity import Scope
    from ledger.services import administration, identity
    from tests.storms import pages

    pages.furnish(person, tenant)
    scopes = (Scope.WORKFLOWS_REGISTER, Scope.RUNS_START, Scope.RUNS_READ, Scope.OPERATE)
    admin = administration.command_line(tenant.pk)
    return identity.issue_key(admin, "operator", scopes, workflows=["*"], person=person).secret


def signed_in(person: Any) -> dict[str, str]:
    """The headers of a person's browser."""
    from django.test import Client

    browser = Client()
    browser.force_login(person)
    token = "a" * 32
    cookies = f"resumeapp_session={browser.cookies['resumeapp_session'].value}; resumeapp_csrf={token}"
    return {"Cookie": cookies, "X-CSRFToken": token}
