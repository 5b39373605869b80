"""State schemas: JSON Schema by jsonschema-rs, compiled once per schema digest and process.

A schema comes from an agent: what it refers to outside of itself, an address or a file of this machine, is never fetched.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jsonschema_rs
import orjson

from ledger.domain import schemas as rules
from ledger.domain.errors import LedgerError

_SHOWN = 3


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse what isn't a JSON Schema (2020-12), and one that could take for ever to check a state against. Raises LedgerError `invalid`."""
    rules.check(schema)
    try:
        jsonschema_rs.validator_for(dict(schema), offline=True)
    except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        raise LedgerError(
            "invalid",
            f"state_schema isn't a JSON Schema: {str(error).splitlines()[0][:200]}",
            "Register a valid JSON Schema (2020-12).",
        ) from None


@lru_cache(maxsize=256)
def _compiled(digest: bytes, schema: bytes) -> Any:
    return jsonschema_rs.validator_for(orjson.loads(schema), offline=True)


def check_state(digest: bytes, schema: Mapping[str, Any], state: Any) -> None:
    """Refuse a state that its version's schema refuses, naming paths and rules but never values. Raises `schema-mismatch`."""
    validator = _compiled(digest, orjson.dumps(schema))
    if validator.is_valid(state):
        return
    faults = []
    for error in validator.iter_errors(state):
        path = "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path)
        rule = "/".join(str(step) for step in error.schema_path)
        faults.append(f"{path[:120]} breaks {rule[:120]}")
        if len(faults) == _SHOWN:
            break
    raise LedgerError(
        "schema-mismatch",
        "the state doesn't fit its schema: " + "; ".join(faults),
        "Fix the state, or register a new version.",
    )
