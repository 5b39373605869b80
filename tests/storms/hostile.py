"""A process that sends what nobody honest would: to the API bodies drawn from its own document and then broken, hostile names, numbers and headers;
to the console broken forms of somebody who is signed in."""

import json
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from django.conf import settings as django
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.crash.points import Line
from tests.storms import aims, pages
from tests.storms.documents import Json, allowed
from tests.storms.rows import Rows, explained

ATOMS: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**31,
    2**53,
    -(2**63),
    10**400,
    1e308,
    "",
    " ",
    "\x00",
    "\ud800",
    "\u202e",
    "a" * 10_000,
    "'; DROP TABLE ledger_run; --",
    "../../etc/passwd",
    "2026-13-41T00:00:00Z",
    "9999-12-31T23:59:59-23:59",
    "2026-01-01T00:00:00",
    [],
    {},
    [[[[[[]]]]]],
    {"__class__": "os.system"},
)
RAW = (
    b"",
    b"{",
    b"nul",
    b"{}{}",
    b"[1,]",
    b"\xff\xfe\x00",
    b"\xef\xbb\xbf{}",
    b'{"a":1,"a":2}',
    b'{"a":NaN}',
    b'{"a":1e400}',
    b'{"a":"\\ud800"}',
    b"[" * 3_000 + b"]" * 3_000,
    b'{"a":' * 2_000 + b"1" + b"}" * 2_000,
)
WORDS = st.one_of(
    st.sampled_from(
        ["", " ", "%00", "..", "%2e%2e%2f", "٣", "-1", "9" * 30, "NaN", "%F0%9F%92%A3", "%", "a" * 300, "%0d%0aX: y"]
    ),
    st.text(max_size=20).map(lambda text: quote(text.encode("utf-8", "replace"), safe="")),
)
TEXTS = st.one_of(
    st.sampled_from(["", " ", "ключ", "\x7f", "a" * 300, "a b", "Bearer", "0.0", "99999999999.9"]), st.text(max_size=20)
)


class Sender:
    """One tenant's key, real rows to aim at, and what the answers were."""

    def __init__(self, key: str, email: str) -> None:
        from django.test import Client

        from ledger.models import Tenant, User

        self._http = Client(raise_request_exception=False)
        self._key = key
        person, self.tenant = User.objects.get(email=email), Tenant.objects.get()
        pages.furnish(person, self.tenant)
        self._browser = Client(raise_request_exception=False)
        self._browser.force_login(person)
        self.counted: Counter[str] = Counter()
        self.failures: list[str] = []
        self.known: dict[str, list[Any]] = {}

    def furnish(self) -> None:
        """Rows to aim at; from then on the rows are watched."""
        self.known = aims.lay(self.json, self.tenant)
        self._rows = Rows()

    def json(self, method: str, path: str, body: Any) -> Any:
        reply = self.send(method, f"/api/v1{path}", json.dumps(body).encode(), {"Idempotency-Key": str(uuid.uuid4())})
        assert reply.status_code < 300, (path, reply.content[:300])
        return json.loads(reply.content)

    def send(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str], media: str = "application/json"
    ) -> Any:
        if not path.startswith("/api/"):
            return self._browser.generic(method, path, body, media, headers=headers)
        if path.partition("?")[0].endswith("/decision"):
            # A key never decides; what a person may send is parsed and judged.
            return self._browser.generic(method, path, body, media, headers=headers)
        return self._http.generic(
            method, path, body, media, headers={"Authorization": f"Bearer {self._key}", **headers}
        )

    def try_one(self, method: str, path: str, body: bytes, headers: Mapping[str, str], media: str) -> None:
        """Send it. A refusal is a problem of the 4xx kind, and leaves the record as it was."""
        reply = self.send(method, path, body, headers, media)
        where = f"{method} {path[:120]} {body[:120]!r} {dict(headers)!r}"
        self.counted[f"{reply.status_code // 100}xx"] += 1
        if reply.status_code >= 500:
            self.failures.append(f"{reply.status_code} for {where}: {reply.content[:200]!r}")
        elif reply.status_code >= 400 and path.startswith("/api/") and not _is_problem(reply):
            self.failures.append(f"{reply.status_code} without a problem for {where}: {reply.content[:200]!r}")
        changed = self._rows.changed()
        if reply.status_code >= 400 and changed:
            if explained(path, changed):
                self.counted["refused, and the run was told to wake"] += 1
            else:
                self.failures.append(f"{reply.status_code} and rows {changed} for {where}")


def _is_problem(reply: Any) -> bool:
    try:
        found = json.loads(reply.content)
    except ValueError:
        return False
    return bool(found.get("code") and found.get("remedy") and "application/problem+json" in reply["Content-Type"])


@st.composite
def broken(draw: st.DrawFn, body: st.SearchStrategy[Any], aims: Mapping[str, list[Any]]) -> bytes:
    """A body that is well-formed, or one place of which isn't as it should be; half of what `aims` names is something that is there."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from(RAW))
    value = draw(body)
    if isinstance(value, dict):
        aimed = {
            name: draw(st.sampled_from(aims[name])) for name in sorted(value) if aims.get(name) and draw(st.booleans())
        }
        value = {**value, **aimed}
    for _ in range(draw(st.integers(0, 2))):
        value = _spoilt(draw, value)
    return json.dumps(value).encode("utf-8", "surrogatepass")


def _spoilt(draw: st.DrawFn, value: Any) -> Any:
    """The value with one thing in it replaced, left out or added, at a place drawn on the way down."""
    if isinstance(value, dict) and value and draw(st.booleans()):
        name = draw(st.sampled_from(sorted(value)))
        return {**value, name: _spoilt(draw, value[name])}
    if isinstance(value, list) and value and draw(st.booleans()):
        at = draw(st.integers(0, len(value) - 1))
        return [*value[:at], _spoilt(draw, value[at]), *value[at + 1 :]]
    if isinstance(value, dict) and draw(st.booleans()):
        if value and draw(st.booleans()):
            gone = draw(st.sampled_from(sorted(value)))
            return {name: each for name, each in value.items() if name != gone}
        return {
            **value,
            draw(st.sampled_from(["x", "__proto__", "tenant_id", "id", "\x00", ""])): draw(st.sampled_from(ATOMS)),
        }
    return draw(st.sampled_from(ATOMS))


class Calls:
    """The API's document, call by call, as strategies of paths, headers and bodies."""

    def __init__(self, document: Json, sender: Sender) -> None:
        self._document = document
        self._sender = sender
        self.all = [
            (method.upper(), path, operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        ]

    def body(self, operation: Json) -> st.SearchStrategy[bytes]:
        content = operation.get("requestBody", {}).get("content", {})
        schema = next((each["schema"] for each in content.values()), None)
        if schema is None:
            return st.sampled_from([b"", b"{}", *RAW])
        return broken(allowed(schema, self._document), self._sender.known)

    def _path(self, draw: st.DrawFn, path: str, operation: Json) -> str:
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "path":
                name = parameter["name"]
                known = self._sender.known.get(name)
                real = st.sampled_from(known) if known else st.uuids().map(str)
                value = draw(real) if draw(st.integers(0, 5)) else draw(WORDS)
                path = path.replace("{" + name + "}", value)
        # One of them is odd and the others are left out: what is refused for one thing says nothing about another.
        queries = [parameter["name"] for parameter in operation.get("parameters", []) if parameter["in"] == "query"]
        odd = draw(st.sampled_from([None, *queries]))
        query = [f"{quote(odd)}={draw(WORDS)}"] if odd else []
        if draw(st.integers(0, 9)) == 0:
            query.append(f"{draw(WORDS)}={draw(WORDS)}")
        return path + ("?" + "&".join(query) if query else "")

    def path(self, path: str, operation: Json) -> st.SearchStrategy[str]:
        return st.composite(lambda draw: self._path(draw, path, operation))()

    def headers(self) -> st.SearchStrategy[dict[str, str]]:
        """A usable key mostly; sometimes none, or what is none."""
        usable = st.uuids().map(lambda key: {"Idempotency-Key": str(key)})
        odd = st.sampled_from([{}, {"Authorization": "Bearer ra_0_0"}, {"Authorization": ""}, {"If-Match": "x"}])
        strange = TEXTS.map(lambda text: {"Idempotency-Key": text.encode("latin-1", "replace").decode("latin-1")})
        return st.integers(0, 5).flatmap(lambda number: {4: odd, 5: strange}.get(number, usable))

    def medium(self, operation: Json) -> st.SearchStrategy[str]:
        content = list(operation.get("requestBody", {}).get("content", {})) or ["application/json"]
        return st.sampled_from([content[0]] * 16 + ["text/plain", "application/xml", "", "a/b; c"])


def _send(sender: Sender, method: str, drawn: st.SearchStrategy[Any], count: int, number: int) -> None:
    """So many of one call's; the same number draws the same."""

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(drawn)
    def one(case: tuple[str, bytes, dict[str, str], str]) -> None:
        place, body, headers, media = case
        sender.try_one(method, place, b"" if method == "GET" else body, headers, media)

    one()


def work(args: dict[str, Any], report: int, control: int) -> None:
    """The role: so many inputs, spread over all calls of the document."""
    from resumeapp.api import api

    line = Line(report, control)
    # Rows change by what is sent here, and by nothing that goes on beside it.
    django.RESUMEAPP_HINTS = False
    sender = Sender(args["key"], args["email"])
    sender.furnish()
    calls = Calls(json.loads(json.dumps(api.get_openapi_schema(), default=str)), sender)
    console = pages.Pages(sender.tenant.slug, sender.known)
    share = -(-args["count"] // (len(calls.all) + len(console.all)))
    for number, (method, path, operation) in enumerate(calls.all):
        drawn = st.tuples(calls.path(path, operation), calls.body(operation), calls.headers(), calls.medium(operation))
        _send(sender, method, drawn, share, args["seed"] * 1_000 + number)
    for number, (method, text) in enumerate(console.all, len(calls.all)):
        media = st.sampled_from([pages.FORM] * 16 + ["application/json", "text/plain", ""])
        drawn = st.tuples(console.path(method, text), console.form(method), console.headers(), media)
        _send(sender, method, drawn, share, args["seed"] * 1_000 + number)
    taken = round(time.process_time())
    sent = sum(sender.counted[f"{hundreds}xx"] for hundreds in range(1, 6))
    line.say(
        "done",
        sent=sent,
        counted={**sender.counted, "seconds of CPU": taken},
        failures=[text[:600] for text in sender.failures[:5]],
    )
