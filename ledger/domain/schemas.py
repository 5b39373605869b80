"""How much work a state's JSON Schema can make: its subschemas, expanded as a validator meets them. No clock, no I/O.

A schema of a few lines may ask for more looks than there are atoms: ten `$ref`s to one definition, which has ten to the next; or two to itself, one
level further down. So what is bounded is how many subschemas can come to be looked at in one place of a state, over all places that a state can have.
It is counted level by level: `looks(S, 0)` are S and what it applies in place (`allOf`, `$ref`, …), and `looks(S, d)` the largest sum of
`looks(T, d - 1)` over the subschemas T that S, with what it applies in place, has for one and the same property or item.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ledger.domain.canonical import DEEPEST
from ledger.domain.errors import LedgerError

MOST_LOOKS = 1_000
"""Subschemas in one place of a state."""
MOST_STEPS = 2_000_000
"""Steps that counting may take; a schema that needs more is too large as well."""
STANDARDS = ("https://json-schema.org/", "http://json-schema.org/")
LOOKS_OF_A_STANDARD = 100
"""What a reference to the standard's own schema of schemas counts for."""
LOOKS_AGAIN = 3
"""How often what is applied in place is looked at beside `unevaluatedProperties` or `unevaluatedItems`: for itself, and for what it has evaluated.
Measured with jsonschema-rs: eighteen of them within one another took nineteen seconds, four fewer a third of one."""

_IN_PLACE_ONE = ("not", "if", "then", "else")
_IN_PLACE_LIST = ("allOf", "anyOf", "oneOf")
_IN_PLACE_MAP = ("dependentSchemas", "dependencies")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_OTHER_PROPERTIES = ("additionalProperties", "unevaluatedProperties")
_OTHER_ITEMS = ("items", "additionalItems", "unevaluatedItems")
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
_NO_SCHEMAS = frozenset({"const", "enum", "default", "examples"})
_ANYTHING: Mapping[str, Any] = {}
_ESCAPED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")

Schema = Mapping[str, Any]
Place = tuple[str, str | int | None]
"""Where a subschema applies one level down: in an object, its names or an array, at a name or index; None stands for all of them."""


def check(schema: Schema) -> None:
    """Refuse a schema that could take a validator for ever. Raises LedgerError `invalid`."""
    _Count(_Document(schema)).check(schema)


class _Document:
    """A schema with its resources and anchors, for resolving references. Source: JSON Schema 2020-12, core, sections 8.2 and 9.

    Addresses aren't joined: a resource is known by its `$id` as written, and a reference means each resource whose address may be the same. That
    can count one too many and never one too few.
    """

    def __init__(self, schema: Schema) -> None:
        self.whole = schema
        self.resources: list[tuple[str, Schema]] = []
        self.anchors: dict[str, list[Schema]] = {}
        self.owners: dict[int, Schema] = {}
        waiting: list[tuple[Any, Schema]] = [(schema, schema)]
        while waiting:
            node, owner = waiting.pop()
            if isinstance(node, dict):
                owner = self._enter(node, owner)
                waiting += [(value, owner) for name, value in node.items() if name not in _NO_SCHEMAS]
            elif isinstance(node, list):
                waiting += [(value, owner) for value in node]

    def _enter(self, node: Schema, owner: Schema) -> Schema:
        if isinstance(name := node.get("$id"), str):
            self.resources.append((name.rstrip("#"), node))
            owner = node
        for anchor in {node.get("$anchor"), node.get("$dynamicAnchor")} - {None}:
            self.anchors.setdefault(str(anchor), []).append(node)
        self.owners[id(node)] = owner
        return owner

    def named(self, node: Schema, reference: str) -> list[Schema] | None:
        """What a reference in `node` may name, None for the standard's own. Raises LedgerError `invalid` where there is no such subschema."""
        address, _, fragment = reference.partition("#")
        within = [self.owners.get(id(node), self.whole)] if not address else self._addressed(address)
        if not within and address.startswith(STANDARDS):
            return None
        found: list[Any]
        if fragment and not fragment.startswith("/"):
            found = self.anchors.get(_unescaped(fragment), []) if within else []
        else:
            found = [_point(resource, _unescaped(fragment)) for resource in within]
        known = [_ANYTHING if isinstance(each, bool) else each for each in found if isinstance(each, dict | bool)]
        if not known:
            raise _bad("it refers to a subschema that it doesn't have", "Refer to a subschema of the same document.")
        return known

    def _addressed(self, address: str) -> list[Schema]:
        return [node for name, node in self.resources if _may_be(name, address) or _may_be(address, name)]


def _may_be(address: str, relative: str) -> bool:
    end = relative.lstrip("./")
    return address == relative or (bool(end) and address.endswith(f"/{end}"))


def _unescaped(text: str) -> str:
    """Source: RFC 3986 section 2.1."""
    return _ESCAPED.sub(lambda found: bytes.fromhex(found[0].replace("%", "")).decode(errors="replace"), text)


def _point(document: Any, pointer: str) -> Any:
    """Source: RFC 6901 section 4."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, Mapping):
            document = document.get(key)
        elif isinstance(document, list) and key.isdecimal() and int(key) < len(document):
            document = document[int(key)]
        else:
            return None
    return document


@dataclass(slots=True)
class _Node:
    """A subschema: what it applies in place, how often (`weight` is for itself and the standard's), and what it applies one level down."""

    weight: int
    times: int
    in_place: list[Schema]
    below: dict[Place, list[tuple[Schema, int]]] = field(default_factory=dict)


class _Count:
    """Counts the looks of a document's subschemas, level by level."""

    def __init__(self, document: _Document) -> None:
        self.document = document
        self.nodes: dict[int, _Node] = {}
        self.steps = 0

    def check(self, schema: Schema) -> None:
        """Raises LedgerError `invalid`."""
        self._gather(schema)
        order = self._in_place_order()
        level = self._first(order)
        for _ in range(DEEPEST):
            following = self._next(order, level)
            if following == level or not any(following.values()):
                return
            level = following

    def _gather(self, schema: Schema) -> None:
        waiting = [schema]
        while waiting:
            node = waiting.pop()
            if id(node) in self.nodes:
                continue
            self._step()
            times = LOOKS_AGAIN if any(name in node for name in _UNEVALUATED) else 1
            made = self.nodes[id(node)] = _Node(1, times, [], dict(_below(node)))
            for keyword in (name for name in _REFERENCES if isinstance(node.get(name), str)):
                found = self.document.named(node, node[keyword])
                made.weight += LOOKS_OF_A_STANDARD if found is None else 0
                made.in_place += found or []
            made.in_place += _in_place(node)
            waiting += [*made.in_place, *(below for found in made.below.values() for below, _ in found)]

    def _in_place_order(self) -> list[int]:
        """Every subschema after those that it applies in place. Raises LedgerError `invalid` for one that applies itself."""
        order: list[int] = []
        done: dict[int, bool] = {}
        for start in self.nodes:
            path: list[tuple[int, Iterator[Schema]]] = []
            if start not in done:
                done[start] = False
                path.append((start, iter(self.nodes[start].in_place)))
            while path:
                key, rest = path[-1]
                child = next(rest, None)
                if child is None:
                    path.pop()
                    done[key] = True
                    order.append(key)
                elif id(child) not in done:
                    done[id(child)] = False
                    path.append((id(child), iter(self.nodes[id(child)].in_place)))
                elif not done[id(child)]:
                    raise _bad(
                        "a subschema refers to itself for the very same place",
                        "Refer to it from a property or an item, one level further down.",
                    )
        return order

    def _first(self, order: list[int]) -> dict[int, int]:
        level: dict[int, int] = {}
        for key in order:
            node = self.nodes[key]
            level[key] = self._bounded(node.weight + node.times * sum(level[id(child)] for child in node.in_place))
        return level

    def _next(self, order: list[int], level: Mapping[int, int]) -> dict[int, int]:
        """One level further down. What a subschema has for a place is its own and that of all that it applies in place."""
        sums: dict[int, dict[Place, int]] = {}
        following = {}
        for key in order:
            node = self.nodes[key]
            total: dict[Place, int] = {}
            for place, found in node.below.items():
                total[place] = sum(times * level[id(below)] for below, times in found)
                self._step(len(found))
            for child in node.in_place:
                for place, looks in sums[id(child)].items():
                    total[place] = total.get(place, 0) + node.times * looks
                    self._step()
            sums[key] = total
            following[key] = self._bounded(_most(total))
        return following

    def _step(self, count: int = 1) -> None:
        self.steps += count
        if self.steps > MOST_STEPS:
            raise _bad("it is too large to be counted", "Register a smaller schema.")

    def _bounded(self, looks: int) -> int:
        if looks > MOST_LOOKS:
            raise _bad(
                f"expanded, it has more than {MOST_LOOKS} subschemas for one place of a state",
                "Repeat less: let definitions refer to one another once, and let a recursive one come back by one way for each property.",
            )
        return looks


def _most(total: Mapping[Place, int]) -> int:
    """The largest sum for one place: what is said for all of its kind counts for each."""
    most = 0
    for kind in ("object", "name", "array"):
        every = total.get((kind, None), 0)
        named = [looks for place, looks in total.items() if place[0] == kind and place[1] is not None]
        most = max(most, every, every + max(named, default=0))
    return most


def _in_place(node: Schema) -> list[Schema]:
    found = [node[name] for name in _IN_PLACE_ONE if name in node]
    found += [one for name in _IN_PLACE_LIST for one in _listed(node.get(name))]
    found += [one for name in _IN_PLACE_MAP for one in _mapped(node.get(name)).values()]
    return [one for one in found if isinstance(one, dict)]


def _below(node: Schema) -> Iterator[tuple[Place, list[tuple[Schema, int]]]]:
    """What applies one level down. Other properties and items are those that aren't named beside: there they count back."""
    properties, prefix = _mapped(node.get("properties")), _listed(node.get("prefixItems"))
    if isinstance(node.get("items"), list):
        prefix = node["items"]
    others = [node[name] for name in _OTHER_PROPERTIES if isinstance(node.get(name), dict)]
    patterns = [one for one in _mapped(node.get("patternProperties")).values() if isinstance(one, dict)]
    rest = [node[name] for name in _OTHER_ITEMS if isinstance(node.get(name), dict)]
    names = [node["propertyNames"]] if isinstance(node.get("propertyNames"), dict) else []
    contains = [node["contains"]] if isinstance(node.get("contains"), dict) else []
    yield ("object", None), [(one, 1) for one in [*others, *patterns]]
    yield ("name", None), [(one, 1) for one in names]
    yield ("array", None), [(one, 1) for one in [*rest, *contains]]
    for kind, named, back in (("object", properties, others), ("array", dict(enumerate(prefix)), rest)):
        for name, one in named.items():
            yield (kind, name), [*((one, 1) for one in [one] if isinstance(one, dict)), *((each, -1) for each in back)]


def _mapped(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _bad(reason: str, remedy: str) -> LedgerError:
    return LedgerError("invalid", f"state_schema makes too much work: {reason}", remedy)
