"""The reference of the API as pages of our own: every call with its shapes, and docs/api.md, which has the conventions and refusals."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe
from ninja import NinjaAPI
from ninja.openapi.docs import DocsBase

from resumeapp import prose

AREAS = {
    "workflows": "Workflows",
    "runs": "Runs, claims and waits",
    "effects": "Effects",
    "events": "Events",
    "record": "The record",
    "approvals": "Approvals",
}
"""The order in which an agent's author meets them."""
LIMITS = (
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minimum", "from {}"),
    ("maximum", "to {}"),
    ("minItems", "at least {}"),
    ("maxItems", "at most {}"),
    ("maxProperties", "at most {} fields"),
    ("pattern", "as {}"),
)
TYPES = {"string": "text", "integer": "whole number", "boolean": "true or false", "null": "null", "object": "object"}
FORMATS = {"uuid": "id (UUID)", "date-time": "time"}


class OwnPage(DocsBase):
    """The document as a plain page of our own: no script of a vendor, no other host."""

    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: Any) -> HttpResponse:
        """Every call with its parameters, body and answers."""
        document = api.get_openapi_schema(path_params=kwargs)
        calls = sorted(_calls(document), key=lambda call: list(AREAS).index(call["tag"]))
        areas = [{"name": AREAS[tag], "calls": list(those)} for tag, those in groupby(calls, lambda call: call["tag"])]
        context = {"info": document["info"], "areas": areas, "shapes": _shapes(document)}
        return render(request, "api/docs.html", context)

    def get_openapi_url(self, api: NinjaAPI, path_params: dict[str, Any]) -> str:
        """Where the document is."""
        return "openapi.json"


@require_safe
def conventions(request: HttpRequest) -> HttpResponse:
    """docs/api.md as a page: conventions, the calls of an agent that pays, and every refusal."""
    text = (settings.BASE_DIR / "docs" / "api.md").read_text()
    return render(request, "api/conventions.html", {"page": prose.page(text)})


def _calls(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "id": call["operationId"],
            "tag": call["tags"][0],
            "method": method.upper(),
            "path": path,
            "summary": call["summary"],
            "description": call.get("description", ""),
            "parameters": [_field(one["name"], one["schema"], one["required"], one["in"]) for one in call.get("parameters", [])],
            "body": next((_type(each["schema"]) for each in _contents(call.get("requestBody", {}))), ""),
            "answers": [
                {"status": status, "type": next((_type(each["schema"]) for each in _contents(answer)), "")}
                for status, answer in call["responses"].items()
            ],
        }
        for path, methods in document["paths"].items()
        for method, call in methods.items()
    ]  # fmt: skip


def _contents(part: dict[str, Any]) -> list[dict[str, Any]]:
    return list(part.get("content", {}).values())


def _shapes(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "description": schema.get("description", ""),
            "fields": [
                _field(field, described, field in schema.get("required", []))
                for field, described in schema.get("properties", {}).items()
            ],
        }
        for name, schema in document["components"]["schemas"].items()
    ]


def _field(name: str, described: dict[str, Any], required: bool, place: str = "") -> dict[str, Any]:
    """One field or parameter. In an answer a field without a default is always there, so that "needed" means the same in both."""
    default = described.get("default")
    return {
        "name": name,
        "place": "" if place in ("", "query", "path") else place,
        "type": _type(described),
        "required": required,
        "limits": ", ".join(_limits(described)),
        "default": "" if default in (None, "", [], {}) else str(default).lower(),
        "description": described.get("description", ""),
    }


def _limits(described: dict[str, Any]) -> list[str]:
    """The bounds of a value in words; those of a value that may be null are its other side's."""
    sides = [described, *(each for each in described.get("anyOf", []) if each.get("type") != "null")]
    return [words.format(side[key]) for side in sides for key, words in LIMITS if key in side and (key, side[key]) != ("minLength", 1)]  # fmt: skip


def _type(described: dict[str, Any]) -> SafeString:
    """A value's type in words: of what a list is, which words a code may be, and a link to a shape."""
    if sides := described.get("anyOf", described.get("oneOf")):
        return format_html_join(" or ", "{}", ((_type(each),) for each in sides))
    if "$ref" in described:
        name = described["$ref"].rsplit("/", 1)[-1]
        return format_html('<a href="#schema-{}"><code>{}</code></a>', name, name)
    if values := described.get("enum", [described["const"]] if "const" in described else []):
        return format_html_join(" or ", "<code>{}</code>", ((value,) for value in values if value != ""))
    kind = described.get("type", "")
    if kind == "array":
        return format_html("list of {}", _type(described.get("items", {})))
    if kind == "object" and isinstance(inner := described.get("additionalProperties"), dict):
        return format_html("object of names to {}", _type(inner))
    return format_html("{}", FORMATS.get(described.get("format", ""), TYPES.get(kind, kind or "any JSON")))
