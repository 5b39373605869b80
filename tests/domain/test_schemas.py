"""A schema of a few lines that would take longer than the world lasts is refused at registration, by its expanded size; ordinary ones aren't."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ledger.domain import schemas
from ledger.domain.errors import LedgerError

INTEGER = {"type": "integer"}
DEPTH = 60


def chain(link: Any, depth: int = DEPTH) -> dict[str, Any]:
    """Definitions of which each is `link` of a reference to the next."""
    defs = {f"d{level}": link({"$ref": f"#/$defs/d{level + 1}"}) for level in range(depth)}
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{depth}": INTEGER}}


def nested(keyword: str, depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"properties": {"a": True}}
    for _ in range(depth):
        schema = {keyword: False, "anyOf": [schema]}
    return schema


ROOT = {"$ref": "#"}
EXPLODING: dict[str, dict[str, Any]] = {
    "allOf twice": chain(lambda ref: {"allOf": [ref, dict(ref)]}),
    "anyOf twice": chain(lambda ref: {"anyOf": [ref, dict(ref)]}),
    "oneOf and not": chain(lambda ref: {"oneOf": [ref], "not": dict(ref)}),
    "if, then and else": chain(lambda ref: {"if": ref, "then": dict(ref), "else": dict(ref)}),
    "dependent schemas": chain(lambda ref: {"dependentSchemas": {"a": ref, "b": dict(ref)}}),
    "one property, twice": chain(lambda ref: {"allOf": [{"properties": {"a": ref}}, {"properties": {"a": dict(ref)}}]}),
    "a property and a pattern": chain(lambda ref: {"properties": {"a": ref}, "patternProperties": {"a": dict(ref)}}),
    "items and contains": chain(lambda ref: {"items": ref, "contains": dict(ref)}),
    "names of properties": {"propertyNames": chain(lambda ref: {"allOf": [ref, dict(ref)]})["$defs"]["d0"], **chain(
        lambda ref: {"allOf": [ref, dict(ref)]})},
    "itself twice, one level down": {"properties": {"a": {"allOf": [ROOT, dict(ROOT)]}}},
    "itself in two branches": {"anyOf": [{"properties": {"a": ROOT}}, {"properties": {"a": dict(ROOT)}}]},
    "itself by another way": {"properties": {"a": {"$ref": "#/$defs/b"}}, "additionalProperties": ROOT,
        "$defs": {"b": {"properties": {"a": ROOT}, "patternProperties": {"^a": dict(ROOT)}}}},
    "by an anchor": {"$defs": {"n": {"$anchor": "n", "items": {"allOf": [{"$ref": "#n"}, {"$ref": "#n"}]}}}, "$ref": "#n"},
    "by a name": {"$id": "https://x.example/s", "items": {"allOf": [{"$ref": "s"}, {"$ref": "https://x.example/s#"}]}},
    "by a dynamic anchor": {"$dynamicAnchor": "n", "items": {"allOf": [{"$dynamicRef": "#n"}, {"$dynamicRef": "#n"}]}},
    "unevaluated in one another": nested("unevaluatedProperties", 18),
    "unevaluated items in one another": nested("unevaluatedItems", 18),
    "every level the one before it": {"$defs": {
        f"s{n}": {"properties": {"x": {"allOf": [{"$ref": f"#/$defs/s{n}"}, {"$ref": f"#/$defs/s{n + 1}"}]}}}
        for n in range(30)} | {"s30": INTEGER}, "$ref": "#/$defs/s0"},
    "a thousand alternatives": {"anyOf": [dict(INTEGER) for _ in range(1_000)]},
}  # fmt: skip


@pytest.mark.parametrize("case", EXPLODING)
def test_a_schema_that_explodes_is_refused_by_its_size_and_at_once(case: str) -> None:
    begun = time.process_time()
    with pytest.raises(LedgerError) as refusal:
        schemas.check(EXPLODING[case])
    assert refusal.value.code == "invalid" and "too much work" in refusal.value.reason and refusal.value.remedy
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"not": {"$ref": "#"}}]}}},
        {"$dynamicAnchor": "n", "oneOf": [{"$dynamicRef": "#n"}]},
    ],
)
def test_a_schema_that_refers_to_itself_without_going_down_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(LedgerError, match="very same place"):
        schemas.check(schema)


@pytest.mark.parametrize(
    "reference", ["#/$defs/b", "#b", "other", "http://[", "https://elsewhere.example/s", "#/$defs"]
)
def test_a_reference_to_what_isn_t_in_the_document_is_refused(reference: str) -> None:
    schema = {"$defs": {"a": INTEGER}, "properties": {"x": {"$ref": reference}}}
    if reference == "#/$defs":
        schemas.check(schema)  # A map of definitions is an object, and so a schema that allows everything.
        return
    with pytest.raises(LedgerError, match="too much work"):
        schemas.check(schema)


ORDINARY: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a tree": {"properties": {"left": ROOT, "right": dict(ROOT), "value": INTEGER}, "additionalProperties": False},
    "a tree of lists": {"properties": {"children": {"type": "array", "items": ROOT}}},
    "any JSON": {"anyOf": [{"type": "string"}, {"items": ROOT}, {"additionalProperties": dict(ROOT)}]},
    "named and other properties": {"properties": {"next": ROOT}, "additionalProperties": dict(ROOT)},
    "a tuple and its rest": {"prefixItems": [ROOT, dict(ROOT)], "items": dict(ROOT)},
    "shared definitions": {
        "properties": {f"p{n}": {"$ref": "#/$defs/money"} for n in range(500)},
        "$defs": {"money": {"properties": {"amount": INTEGER, "currency": {"enum": ["EUR"]}}}},
    },
    "two ways for each of sixty levels": chain(lambda ref: {"properties": {"a": ref, "b": dict(ref)}}),
    "hundreds of alternatives": {"oneOf": [{"properties": {"kind": {"const": n}}} for n in range(400)]},
    "a base and what is left over": {"allOf": [{"$ref": "#/$defs/base"}], "unevaluatedProperties": False,
        "$defs": {"base": {"properties": {"a": INTEGER}}}},
    "the standard's own": {"$ref": "https://json-schema.org/draft/2020-12/schema"},
    "what only looks like a schema": {"const": {"$ref": "#/nowhere", "allOf": []}, "enum": [{"$id": "http://["}]},
    "a reference with escapes": {"$defs": {"a/b~c d": INTEGER}, "items": {"$ref": "#/$defs/a~1b~0c%20d"}},
    "a resource within": {"$defs": {"e": {"$id": "e", "$ref": "#/$defs/i", "$defs": {"i": INTEGER}}}, "$ref": "e"},
    "a reference into a constant": {"const": {"$ref": "#/nowhere"}, "items": {"$ref": "#/enum/0"}, "enum": [{"items": {}}]},
    "yes and no": {"properties": {"a": True, "b": {"$ref": "#/$defs/no"}}, "$defs": {"no": False}},
}  # fmt: skip


@pytest.mark.parametrize("case", ORDINARY)
def test_an_ordinary_schema_is_taken(case: str) -> None:
    schemas.check(ORDINARY[case])


def test_what_is_counted_is_one_place_and_the_bound_is_exact() -> None:
    # Each level doubles: the root, and 2 + 4 + … for the references and what they name.
    size = {depth: chain(lambda ref: {"allOf": [ref, dict(ref)]}, depth) for depth in (7, 8)}
    schemas.check(size[7])
    with pytest.raises(LedgerError, match="more than 1000"):
        schemas.check(size[8])
