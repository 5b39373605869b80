"""Targets: what may be declared, and how answers are read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain import material, targets
from ledger.domain.canonical import Body
from ledger.domain.effects import LookAnswer
from ledger.domain.errors import LedgerError
from ledger.domain.targets import Reply, TargetSpec, check, resource_path
from tests.documents import LOOKUP, OBSERVE, REPLAY

SPEC = TargetSpec("payments", "http://127.0.0.1:8000", keyed=True, key_retention=86_400, lookup=LOOKUP, observe=OBSERVE)
REQUEST = b'{"amount_minor":1500,"order":"17"}'
ITEM = {"id": "rf_1", "key": "k", "order": "17", "amount_minor": 1500, "status": "settled"}


def reply(body: Any, status: int = 200, **headers: str) -> Reply:
    return Reply(status, headers, body if isinstance(body, bytes) else json.dumps(body).encode())


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "Bad Name"},
        {"base_url": "ftp://host"},
        {"base_url": "http://user:secret@host"},
        {"base_url": "http://host/?q=1"},
        {"kind": "smtp"},
        {"key_retention": 0},
        {"keyed": False},
        {"freshness": 0},
        {"call_limit": 601},
        {"lookup": {"by": "magic"}},
        {"lookup": {**LOOKUP, "path": "/refunds"}},
        {"lookup": {**LOOKUP, "path": "//elsewhere/{key}"}},
        {"lookup": {**LOOKUP, "extra": 1}},
        {"lookup": {**LOOKUP, "answers": {"settled": "absent"}}},
        {"lookup": {**LOOKUP, "compare": [["/a"]]}},
        {"lookup": {**LOOKUP, "list": "refunds"}},
        {"lookup": REPLAY},
        {"lookup": {**REPLAY, "cases": []}, "first_result_replayed": True},
        {"lookup": {**REPLAY, "key_header": "X\r\nY"}, "first_result_replayed": True},
        {"observe": {"path": "/orders"}},
        {"observe": {"path": "/orders/{resource}", "version": "no-pointer"}},
        {"material": ("amount_minor",)},
        {"material": ("/amount~2minor",)},
        {"material": ("/" + "a" * 200,)},
        {"material": (17,)},
        {"material": ("/amount_minor", "/amount_minor")},
        {"material": tuple(f"/{number}" for number in range(21))},
        {"material": ("/amount_minor",), "observe": None},
    ],
)
def test_a_declaration_that_could_not_be_acted_on_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(LedgerError, match="invalid"):
        targets.check(replace(SPEC, **changes))


def test_the_declarations_of_the_sandbox_are_good() -> None:
    targets.check(SPEC)
    targets.check(replace(SPEC, lookup=REPLAY, first_result_replayed=True))
    targets.check(replace(SPEC, material=("/amount_minor", "/lines/0/a~1b", "")))
    targets.check(TargetSpec("wires", "https://example.org/pay", keyed=False))


@pytest.mark.parametrize(
    ("answer", "told", "cause"),
    [
        (reply({"refunds": []}), LookAnswer.ABSENT, ""),
        (reply({"refunds": [ITEM]}), LookAnswer.APPLIED, ""),
        (reply({"refunds": [{**ITEM, "status": "refused", "amount_minor": 1}]}), LookAnswer.REFUSED, ""),
        (reply({"refunds": [{**ITEM, "status": "pending"}]}), LookAnswer.IN_PROGRESS, ""),
        (reply({"refunds": [{"id": None, "status": "in_progress"}]}), LookAnswer.IN_PROGRESS, ""),
        (reply({"refunds": [{**ITEM, "amount_minor": 1499}]}), LookAnswer.DIFFERS, "other-content"),
        (reply({"refunds": [{**ITEM, "status": "pending", "amount_minor": 9}]}), LookAnswer.DIFFERS, "other-content"),
        (reply({"refunds": [ITEM, ITEM]}), LookAnswer.DIFFERS, "more-than-one"),
        (reply({"refunds": [{**ITEM, "status": "odd"}]}), LookAnswer.CANNOT_TELL, "status-unknown"),
        (reply({"refunds": [{**ITEM, "id": None}]}), LookAnswer.CANNOT_TELL, "no-reference"),
        (reply({"refunds": []}, status=503), LookAnswer.CANNOT_TELL, "http-503"),
        (reply({"refunds": []}, status=404), LookAnswer.CANNOT_TELL, "http-404"),
        (reply(b'{"refunds": [}'), LookAnswer.CANNOT_TELL, "not-understood"),
        (reply(b'{"refunds": [], "refunds": [1]}'), LookAnswer.CANNOT_TELL, "not-understood"),
        (reply({"other": []}), LookAnswer.CANNOT_TELL, "not-understood"),
        (reply([]), LookAnswer.CANNOT_TELL, "not-understood"),
    ],
)
def test_a_reply_by_key_is_read(answer: Reply, told: LookAnswer, cause: str) -> None:
    found = targets.read_by_key(LOOKUP, REQUEST, answer)
    assert (found.answer, found.cause) == (told, cause)


@given(st.binary(max_size=60), st.integers(100, 599))
def test_no_reply_that_is_not_understood_says_absent(content: bytes, status: int) -> None:
    if (found := targets.read_by_key(LOOKUP, REQUEST, Reply(status, {}, content))).answer is LookAnswer.ABSENT:
        assert status == 200 and json.loads(content) == {"refunds": []}
    assert found.answer in LookAnswer


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (reply(ITEM, status=200), LookAnswer.APPLIED),
        (reply(ITEM, status=201), LookAnswer.APPLIED),
        (reply({**ITEM, "amount_minor": 2}, status=200), LookAnswer.DIFFERS),
        (reply({"error": "in_progress"}, status=409), LookAnswer.IN_PROGRESS),
        (reply({"error": "insufficient"}, status=422), LookAnswer.REFUSED),
        (reply({"error": "idempotency_key_reused"}, status=422), LookAnswer.CANNOT_TELL),
        (reply({"error": "order_moved"}, status=412), LookAnswer.CANNOT_TELL),
        (reply(b"", status=500), LookAnswer.CANNOT_TELL),
    ],
)
def test_a_reply_to_the_identical_request_is_read(answer: Reply, told: LookAnswer) -> None:
    assert targets.read_replay(REPLAY, REQUEST, answer).answer is told


def test_a_reference_that_is_not_found_proves_nothing() -> None:
    assert targets.read_by_reference(LOOKUP, REQUEST, reply({}, status=404)).answer is LookAnswer.CANNOT_TELL
    assert targets.read_by_reference(LOOKUP, REQUEST, reply(ITEM)).answer is LookAnswer.APPLIED


@pytest.mark.parametrize(
    ("observe", "answer", "version"),
    [
        (OBSERVE, reply({}, etag='"v3"'), '"v3"'),
        (OBSERVE, reply({}), None),
        (OBSERVE, reply({}, status=404, etag='"v3"'), None),
        ({**OBSERVE, "version": "/version"}, reply({"version": 7}), "7"),
        ({**OBSERVE, "version": "/a/0"}, reply({"a": ["x"]}), "x"),
        ({**OBSERVE, "version": "/a"}, reply({"a": {}}), None),
        ({**OBSERVE, "version": "/a"}, reply(b"nonsense"), None),
        (OBSERVE, reply({}, etag="x" * 201), None),
    ],
)
def test_a_version_is_read_or_not_known(observe: dict[str, Any], answer: Reply, version: str | None) -> None:
    assert targets.version_of(observe, answer) == version


@given(st.text(max_size=30))
def test_what_fills_a_path_cannot_leave_its_place(value: str) -> None:
    try:
        path = targets.fill("/refunds?key={key}", key=value)
    except UnicodeEncodeError:
        return
    assert not set(path.removeprefix("/refunds?key=")) & set("/?#& {}\r\n")


def test_a_resource_may_have_a_prefix_of_its_own() -> None:
    assert targets.resource_path(OBSERVE, "order/17") == "/orders/17"


@pytest.mark.parametrize("resource", ["..", ".", "order/..", "order/."])
def test_a_resource_can_t_climb_out_of_its_place_in_the_path(resource: str) -> None:
    with pytest.raises(LedgerError, match="invalid"):
        resource_path({"path": "/orders/{resource}", "version": "etag", "strip": "order/"}, resource)


def test_a_port_that_doesn_t_exist_is_refused() -> None:
    with pytest.raises(LedgerError, match="invalid"):
        check(TargetSpec("payments", "http://127.0.0.1:99999", keyed=False))


ORDER = {"amount_minor": 1500, "to": "Ada", "note": "leave at the door"}


def seen(document: Any) -> Body:
    content = document if isinstance(document, bytes) else json.dumps(document).encode()
    return Body(UUID(int=1), b"salt", content)


@pytest.mark.parametrize(
    ("now", "moved"),
    [
        (ORDER, ()),
        ({**ORDER, "note": "ring twice"}, ()),
        ({"to": "Ada", "amount_minor": 1500.0}, ()),
        ({**ORDER, "amount_minor": 1501}, ("/amount_minor",)),
        ({**ORDER, "amount_minor": "1500"}, ("/amount_minor",)),
        ({**ORDER, "to": None}, ("/to",)),
        ({"amount_minor": 1500}, ("/to",)),
        ({**ORDER, "to": "Bob", "amount_minor": 1}, ("/amount_minor", "/to")),
        ({**ORDER, "hold": False}, ("/hold",)),
        ({"note": "leave at the door"}, ("/amount_minor", "/to", "/hold")),
        (b"<order/>", ("/amount_minor", "/to", "/hold")),
    ],
)
def test_only_fields_that_matter_count_as_moved(now: Any, moved: tuple[str, ...]) -> None:
    pointers = ("/amount_minor", "/to", "/hold")
    assert material.moved(pointers, seen(ORDER), seen(now)) == moved
    assert material.moved(pointers, None, seen(now)) == pointers == material.moved(pointers, seen(ORDER), None)
