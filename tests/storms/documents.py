"""Values that a JSON schema of the API's document allows, as strategies. Formats and patterns are left to chance, on purpose."""

from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]
DEEPEST = 6
_NAMES = st.sampled_from(["a", "order", "n", "ключ", "x-y"])


def anything() -> st.SearchStrategy[Any]:
    """A small JSON value of any kind."""
    leaf = (
        st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e6, 1e6) | st.text(max_size=12)
    )
    return st.recursive(
        leaf, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3), max_leaves=6
    )


def allowed(schema: Any, document: Json, depth: int = 0) -> st.SearchStrategy[Any]:
    """What `schema` allows; `document` holds what it refers to. What refers to itself ends as anything at all."""
    if not isinstance(schema, dict) or depth > DEEPEST:
        return anything()
    if "$ref" in schema:
        return allowed(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document, depth + 1)
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    for either in ("anyOf", "oneOf"):
        if either in schema:
            return st.one_of([allowed(each, document, depth + 1) for each in schema[either]])
    if "allOf" in schema:
        return allowed(schema["allOf"][0], document, depth + 1)
    kind = schema.get("type")
    if isinstance(kind, list):
        return st.one_of([allowed({**schema, "type": each}, document, depth) for each in kind])
    return _of_kind(kind, schema, document, depth)


def _of_kind(kind: Any, schema: Json, document: Json, depth: int) -> st.SearchStrategy[Any]:
    match kind:
        case "object":
            return _object(schema, document, depth)
        case "array":
            most = min(schema.get("maxItems", 3), 3)
            items = allowed(schema.get("items"), document, depth + 1)
            return st.lists(items, min_size=min(schema.get("minItems", 0), most), max_size=most)
        case "string":
            return _string(schema)
        case "integer":
            return st.integers(schema.get("minimum", -(2**31)), schema.get("maximum", 2**31))
        case "number":
            return st.floats(-1e9, 1e9)
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case _:
            return anything()


def _object(schema: Json, document: Json, depth: int) -> st.SearchStrategy[Any]:
    properties = {name: allowed(each, document, depth + 1) for name, each in schema.get("properties", {}).items()}
    required = {name: each for name, each in properties.items() if name in schema.get("required", ())}
    optional = {name: each for name, each in properties.items() if name not in required}
    if not properties:
        return st.dictionaries(_NAMES, allowed(schema.get("additionalProperties"), document, depth + 1), max_size=3)
    return st.fixed_dictionaries(required, optional=optional)


def _string(schema: Json) -> st.SearchStrategy[Any]:
    least, most = schema.get("minLength", 0), min(schema.get("maxLength", 24), 24)
    text = st.text(min_size=min(least, most), max_size=most)
    if schema.get("format") == "uuid":
        return st.uuids().map(str)
    if schema.get("format") == "date-time":
        return st.datetimes().map(lambda moment: moment.isoformat() + "Z")
    return text | st.sampled_from(["a", "refunds", "goodwill", "pay", "payments", "1", "0.1"])
