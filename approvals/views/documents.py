"""Documents of others as rows that a person can read: money in whole units beside what is really there, nothing hidden without saying so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from approvals.renderers import amount
from approvals.services.sightings import Seen
from approvals.templatetags.console import visible_text

MOST_ROWS = 40
LONGEST_VALUE = 300


def money(document: Any, key: str) -> str:
    """What a field `…_minor` of a document with a `currency` amounts to: "42.00 EUR"; '' for any other field."""
    if not isinstance(document, Mapping) or not key.endswith("_minor"):
        return ""
    return amount(document.get(key), document.get("currency"))


def argument_rows(arguments: Any) -> list[dict[str, Any]]:
    """The final arguments, key by key. What is too long for a row says so; the whole of it stands below."""
    if not isinstance(arguments, dict):
        return []
    shown = list(arguments.items())[:MOST_ROWS]
    rows = [{"label": visible_text(key), **_value(value, money(arguments, key))} for key, value in shown]
    if len(arguments) > MOST_ROWS:
        rows.append({"label": "…", "value": f"{len(arguments) - MOST_ROWS} more, all in the text below"})
    return rows


def _value(value: Any, amounts_to: str) -> dict[str, Any]:
    text = visible_text(value) if isinstance(value, str) else pretty(value)
    if amounts_to:
        return {"value": amounts_to, "note": f"sent as {text}, in minor units"}
    if text == "":
        return {"value": '""', "note": "empty text"}
    if len(text) > LONGEST_VALUE:
        return {"value": text[:LONGEST_VALUE] + "…", "note": f"{len(text)} characters, all in the text below"}
    return {"value": text, "mono": not isinstance(value, str)}


def pretty(value: Any) -> str:
    """A parsed JSON value as readable text."""
    return visible_text(json.dumps(value, indent=2, ensure_ascii=False))


def diff(before: Seen, after: Seen) -> list[dict[str, Any]]:
    """Field by field, what was seen before and what was seen last; what changed comes first, and what is left out says so."""
    return compare(before.state, after.state)


def compare(before: Any, after: Any) -> list[dict[str, Any]]:
    """Two documents field by field, as rows of `partials/_diff.html`."""
    old, new = _fields(before), _fields(after)
    keys = sorted(dict.fromkeys([*old, *new]), key=lambda key: old.get(key) == new.get(key))
    rows: list[dict[str, Any]] = [
        {
            "field": visible_text(key),
            "before": _cut(old[key]) if key in old else None,
            "after": _cut(new[key]) if key in new else None,
            "changed": old.get(key) != new.get(key),
        }
        for key in keys[:MOST_ROWS]
    ]
    if rest := keys[MOST_ROWS:]:
        changed = sum(old.get(key) != new.get(key) for key in rest)
        told = f"{len(rest)} more fields, {changed} of them changed"
        rows.append({"field": "…", "before": told, "after": told, "changed": bool(changed)})
    return rows


def _fields(document: Any) -> dict[str, str]:
    if document is None:
        return {}
    if not isinstance(document, dict):
        return {"state": str(document)}
    return {key: _field(document, key) for key in document}


def _field(document: dict[str, Any], key: str) -> str:
    value = document[key]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"{amounts_to} ({text})" if (amounts_to := money(document, key)) else text


def _cut(text: str) -> str:
    shown = visible_text(text[:LONGEST_VALUE])
    return shown if len(text) <= LONGEST_VALUE else f"{shown}… ({len(text)} characters)"
