"""The API's own document, asked whether an answer is as it says."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import jsonschema_rs

from resumeapp.api import api


@cache
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(api.get_openapi_schema(), default=str))
    return found


@cache
def _routes() -> list[tuple[re.Pattern[str], dict[str, Any]]]:
    paths = document()["paths"]
    return [(re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), methods) for path, methods in paths.items()]


@cache
def _validator(reference: str) -> Any:
    return jsonschema_rs.validator_for({"$ref": reference, "components": document()["components"]})


def check(method: str, path: str, response: Any) -> None:
    """The answer's status, media type and body are among those that the document names for this call."""
    media = response.get("Content-Type", "").split(";")[0]
    found = [
        methods[method.lower()] for route, methods in _routes() if route.fullmatch(path) and method.lower() in methods
    ]
    if not found:
        assert response.status_code in (404, 405)
        return
    answers = found[0]["responses"]
    answer = answers["default"] if response.status_code >= 400 else answers[str(response.status_code)]
    if response.status_code == 204:
        return
    schema = answer["content"][media]["schema"]
    if "$ref" in schema:
        _validator(schema["$ref"]).validate(json.loads(response.content))
