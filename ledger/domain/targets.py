"""Targets: what they guarantee, and how their answers are read. Declared as data; no clock, no I/O."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ledger.domain.canonical import canonical, parse
from ledger.domain.effects import LookAnswer
from ledger.domain.errors import LedgerError

LONGEST_CALL = 600
LARGEST_REPLY = 1_048_576
NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,79}")
BASE_URL = re.compile(r"https?://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?(?:/[^\s?#]*)?")
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
MISSING = object()
"""What a pointer names that a document hasn't: equal to nothing."""
MOST_MATERIAL = 20
_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)*")


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """A target as registered. Times in seconds; `lookup`, `observe` and `material` as their checks below describe."""

    name: str
    base_url: str
    keyed: bool
    first_result_replayed: bool = False
    key_retention: int = 0
    visibility_delay: int = 0
    freshness: int = 300
    call_limit: int = 30
    private: bool = False
    lookup: dict[str, Any] | None = None
    observe: dict[str, Any] | None = None
    material: tuple[str, ...] = ()
    kind: str = "http"


@dataclass(frozen=True, slots=True)
class Reply:
    """What a target answered: status, lower-case header names, and the whole body."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True, slots=True)
class Reading:
    """A reply read as an answer to a look-up. `cause` says why it can't be told; `result` is canonical JSON of what was found applied."""

    answer: LookAnswer
    reference: str = ""
    cause: str = ""
    differs: Sequence[str] = field(default_factory=tuple)
    result: bytes | None = None


def bad(reason: str) -> LedgerError:
    """A refusal of a target's declaration."""
    return LedgerError("invalid", f"the target's declaration is not right: {reason}", "Correct it and register again.")


def check(spec: TargetSpec) -> None:
    """Refuse a declaration that could not be acted on. Raises LedgerError `invalid`."""
    if not NAME.fullmatch(spec.name):
        raise bad("the name has 1 to 80 of a-z, 0-9, '_', '.', '-'")
    if spec.kind != "http":
        raise bad("the kind is http")
    _check_url(spec.base_url)
    for name, low, high in (
        ("key_retention", 0, 10 * 365 * 86_400),
        ("visibility_delay", 0, 86_400),
        ("freshness", 1, 86_400),
        ("call_limit", 1, LONGEST_CALL),
    ):
        if not low <= getattr(spec, name) <= high:
            raise bad(f"{name} is between {low} and {high} seconds")
    if spec.keyed != (spec.key_retention > 0):
        raise bad("a keyed target says how long it remembers keys (key_retention); another one says 0")
    if spec.first_result_replayed and not spec.keyed:
        raise bad("only a keyed target can answer the first result again")
    if spec.lookup is not None:
        check_lookup(spec.lookup, spec)
    if spec.observe is not None:
        check_observe(spec.observe)
    check_material(spec.material, spec.observe)


def _check_url(url: str) -> None:
    port = BASE_URL.fullmatch(url)
    if len(url) > 300 or port is None or not 0 < int(port[1] or 1) < 65_536:
        raise bad(
            "base_url is an http or https address of at most 300 characters, without credentials, query or fragment"
        )


def _check_path(path: object, names: frozenset[str], needed: bool = True) -> None:
    if not isinstance(path, str) or not path.startswith("/") or path.startswith("//") or len(path) > 500:
        raise bad("a path starts with one '/'")
    found = set(re.findall(r"\{([^{}]*)\}", path))
    if not found <= names or (needed and not found):
        raise bad(f"the path {path[:80]!r} names {', '.join(sorted(f'{{{name}}}' for name in names))}")


def _only(document: Mapping[str, Any], needed: frozenset[str], allowed: frozenset[str]) -> None:
    missing, unknown = needed - document.keys(), document.keys() - needed - allowed
    if missing or unknown:
        raise bad(f"missing {sorted(missing)}, unknown {sorted(unknown)}")


def _check_pointers(*pointers: object) -> None:
    for pointer in pointers:
        if not isinstance(pointer, str) or not _POINTER.fullmatch(pointer) or len(pointer) > 200:
            raise bad("a pointer is a JSON pointer (RFC 6901), such as /refunds")


def _check_compare(document: Mapping[str, Any]) -> None:
    compare = document.get("compare", [])
    if not isinstance(compare, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in compare):
        raise bad("compare lists pairs of pointers: into the request, into the found item")
    for pair in compare:
        _check_pointers(*pair)
    _check_pointers(document.get("reference", ""), document.get("result", ""))


ASKED_BY = (
    "kind",
    "base_url",
    "keyed",
    "first_result_replayed",
    "key_retention",
    "visibility_delay",
    "lookup",
)
"""What a look-up of a call rests on: where the target is, how it is asked, and what its silence means."""

APPROVED_ON = (
    "kind",
    "base_url",
    "private",
    "keyed",
    "first_result_replayed",
    "key_retention",
    "lookup",
    "observe",
    "material",
)
"""What leave for a call rests on: where it goes, whether it can be repeated, found again and watched. It is asked for anew when that changes."""


def check_not_in_use(changed: Collection[str], open_calls: int) -> None:
    """A call that may have happened is looked up where and as it was made: asked elsewhere it would be found absent, and made a second time.

    `changed` are names of a target's fields. Raises LedgerError `target-in-use`.
    """
    asked = sorted(set(changed) & set(ASKED_BY))
    if asked and open_calls:
        raise LedgerError(
            "target-in-use",
            f"{open_calls} calls to this target are in flight or unknown, and are looked up by its {', '.join(asked)}",
            "Settle them first (Reconcile lists those that are unknown or overdue; the others have yet to answer), or register the other address"
            " under a name of its own.",
            effects=open_calls,
            fields=asked,
        )


def check_lookup(document: Mapping[str, Any], spec: TargetSpec) -> None:
    """Two forms. Raises LedgerError `invalid`.

    `{"by": "key", "path": "/refunds?key={key}", "list": "/refunds", "status": "/status", "answers": {"settled": "applied"}, "compare":
    [["/amount", "/amount"]], "reference": "/id", "by_reference": "/refunds/{reference}"}`: an empty list is `absent`.

    `{"by": "replay", "path": "/refunds", "key_header": "Idempotency-Key", "cases": [{"status": [200, 201], "answer": "applied"}, {"status": [422],
    "pointer": "/error", "values": ["refused"], "answer": "refused"}], "compare": [], "reference": "/id"}`: the first case that fits is the answer.

    In both, `result` points into the found item (for a replay: into the reply) at what the call's own result would have been; without it that is the
    whole item. A reply to a replay that isn't JSON becomes `{"data_base64": …, "media": …}`.
    """
    by = document.get("by")
    if by == "key":
        _check_by_key(document)
    elif by == "replay":
        if not spec.first_result_replayed:
            raise bad("a look-up by replay needs a target that declares first_result_replayed")
        _check_by_replay(document)
    else:
        raise bad("lookup.by is key or replay")
    _check_compare(document)


def _check_by_key(document: Mapping[str, Any]) -> None:
    _only(
        document,
        frozenset({"by", "path", "list", "status", "answers"}),
        frozenset({"compare", "reference", "by_reference", "result"}),
    )
    _check_path(document["path"], frozenset({"key"}))
    _check_pointers(document["list"], document["status"])
    if "by_reference" in document:
        _check_path(document["by_reference"], frozenset({"reference"}))
    answers = document["answers"]
    told = frozenset({LookAnswer.APPLIED, LookAnswer.REFUSED, LookAnswer.IN_PROGRESS})
    if not isinstance(answers, dict) or not answers or not all(answer in told for answer in answers.values()):
        raise bad("answers maps the service's statuses to applied, refused or in_progress")


def _check_by_replay(document: Mapping[str, Any]) -> None:
    _only(document, frozenset({"by", "path", "key_header", "cases"}), frozenset({"compare", "reference", "result"}))
    _check_path(document["path"], frozenset(), needed=False)
    if not isinstance(document["key_header"], str) or not re.fullmatch(r"[A-Za-z-]{1,60}", document["key_header"]):
        raise bad("key_header is the name of a header")
    told = frozenset({LookAnswer.APPLIED, LookAnswer.REFUSED, LookAnswer.IN_PROGRESS})
    cases = document["cases"]
    if not isinstance(cases, list) or not cases or not all(isinstance(case, dict) for case in cases):
        raise bad("cases is a list of objects")
    for case in cases:
        _only(case, frozenset({"status", "answer"}), frozenset({"pointer", "values"}))
        if case["answer"] not in told or not isinstance(case["status"], list):
            raise bad("a case maps a list of statuses to applied, refused or in_progress")
        if ("pointer" in case) != ("values" in case):
            raise bad("pointer and values of a case belong together")
        _check_pointers(case.get("pointer", ""))


def replayed(lookup: Mapping[str, Any] | None) -> bool:
    """Is a call found by sending its request again?"""
    return lookup is not None and lookup["by"] == "replay"


def check_observe(document: Mapping[str, Any]) -> None:
    """`{"path": "/orders/{resource}", "version": "etag"}`, or a JSON pointer into the answer as `version`; `strip` is a prefix of resource names that
    the path leaves out. Raises LedgerError `invalid`."""
    _only(document, frozenset({"path", "version"}), frozenset({"strip"}))
    _check_path(document["path"], frozenset({"resource"}))
    if document["version"] != "etag":
        _check_pointers(document["version"])
    if not isinstance(document.get("strip", ""), str):
        raise bad("strip is a prefix")


def check_material(pointers: Sequence[str], observe: Mapping[str, Any] | None) -> None:
    """JSON pointers into what `observe` answers: the fields of a resource that matter. Where a target names some, another version of the resource in
    which all of these are as they were voids nothing; where it names none, every version counts. Raises LedgerError `invalid`."""
    _check_pointers(*pointers)
    if pointers and observe is None:
        raise bad("material names fields of what is observed, and this target isn't: declare observe")
    if len(set(pointers)) < len(pointers) or len(pointers) > MOST_MATERIAL:
        raise bad(f"material names each field once, and at most {MOST_MATERIAL}")


def escaped(text: str) -> str:
    """Percent-encoded so that it stays one path segment or query value. Source: RFC 3986 section 2."""
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in text.encode())


def fill(template: str, **values: str) -> str:
    """A path with its names filled in, each escaped as one path segment or query value."""
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", escaped(value))
    return template


def resource_path(document: Mapping[str, Any], resource: str) -> str:
    """Where a resource is observed. Raises LedgerError `invalid` for one that would climb out of its place in the path."""
    segment = resource.removeprefix(document.get("strip", ""))
    if segment in {".", ".."}:
        raise LedgerError("invalid", "the resource isn't one that the target could have", "Name the resource itself.")
    return fill(document["path"], resource=segment)


def point(document: Any, pointer: str) -> Any:
    """The value that a JSON pointer (RFC 6901) names, or a marker that is equal to nothing. Source: RFC 6901 section 4."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict) and key in document:
            document = document[key]
        elif isinstance(document, list) and key.isdecimal() and int(key) < len(document):
            document = document[int(key)]
        else:
            return MISSING
    return document


def version_of(document: Mapping[str, Any], reply: Reply) -> str | None:
    """The version of an observed resource, or None where the reply has none."""
    if reply.status != 200:
        return None
    if document["version"] == "etag":
        found: Any = reply.headers.get("etag")
    else:
        body = _parsed(reply)
        found = MISSING if body is MISSING else point(body, document["version"])
    if found is MISSING or found is None or isinstance(found, dict | list):
        return None
    text = found if isinstance(found, str) else canonical(found).decode()
    return text if 0 < len(text) <= 200 else None


def _parsed(reply: Reply) -> Any:
    try:
        return parse(reply.content, limit=LARGEST_REPLY)
    except LedgerError:
        return MISSING


def read_by_key(document: Mapping[str, Any], request: bytes, reply: Reply) -> Reading:
    """Read the reply to a question by key. What isn't understood can't be told."""
    items = point(_parsed(reply), document["list"]) if reply.status == 200 else MISSING
    if not isinstance(items, list):
        return Reading(
            LookAnswer.CANNOT_TELL, cause=f"http-{reply.status}" if reply.status != 200 else "not-understood"
        )
    if not items:
        return Reading(LookAnswer.ABSENT)
    if len(items) > 1:
        return Reading(LookAnswer.DIFFERS, cause="more-than-one")
    return read_item(document, request, items[0])


def read_by_reference(document: Mapping[str, Any], request: bytes, reply: Reply) -> Reading:
    """Read the reply to a question by the target's own reference. A reference that isn't found proves nothing."""
    item = _parsed(reply) if reply.status == 200 else MISSING
    if item is MISSING:
        return Reading(
            LookAnswer.CANNOT_TELL, cause=f"http-{reply.status}" if reply.status != 200 else "not-understood"
        )
    return read_item(document, request, item)


def read_item(document: Mapping[str, Any], request: bytes, item: Any) -> Reading:
    """Read one found item: its status, and whether it is what was asked for."""
    told = document["answers"].get(_text(point(item, document["status"])))
    if told is None:
        return Reading(LookAnswer.CANNOT_TELL, cause="status-unknown")
    return _compared(document, request, item, LookAnswer(told))


def read_replay(document: Mapping[str, Any], request: bytes, reply: Reply) -> Reading:
    """Read the reply to the identical request."""
    body = _parsed(reply)
    for case in document["cases"]:
        fits = "pointer" not in case or _text(point(body, case["pointer"])) in case["values"]
        if reply.status in case["status"] and fits:
            found = _compared(document, request, body, LookAnswer(case["answer"]))
            plain = found.answer is LookAnswer.APPLIED and body is MISSING
            return replace(found, result=_encoded(reply)) if plain else found
    return Reading(LookAnswer.CANNOT_TELL, cause=f"http-{reply.status}")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _compared(document: Mapping[str, Any], request: bytes, item: Any, answer: LookAnswer) -> Reading:
    """An item that was applied must be the one that was asked for; one at work is compared where it already shows the field."""
    found = point(item, document["reference"]) if document.get("reference") else MISSING
    reference = found if isinstance(found, str) else ""
    if answer is LookAnswer.REFUSED:
        return Reading(answer, reference)
    asked = parse(request)
    differs = []
    for ours, theirs in document.get("compare", []):
        shown = point(item, theirs)
        if shown is MISSING and answer is LookAnswer.IN_PROGRESS:
            continue
        if shown is MISSING or not _equal(point(asked, ours), shown):
            differs.append(theirs)
    if differs:
        return Reading(LookAnswer.DIFFERS, reference, "other-content", tuple(differs))
    if answer is LookAnswer.APPLIED and document.get("reference") and not reference:
        return Reading(LookAnswer.CANNOT_TELL, cause="no-reference")
    result = point(item, document.get("result", "")) if answer is LookAnswer.APPLIED else MISSING
    return Reading(answer, reference, result=None if result is MISSING else canonical(result))


def _encoded(reply: Reply) -> bytes:
    """A reply that isn't JSON, as JSON."""
    media = reply.headers.get("content-type", "application/octet-stream")[:80]
    return canonical({"data_base64": b64encode(reply.content).decode(), "media": media})


def _equal(ours: Any, theirs: Any) -> bool:
    return ours is not MISSING and canonical(ours) == canonical(theirs)
