"""The API as one: every router, its errors, its OpenAPI document and a page that shows it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from ninja import NinjaAPI
from ninja.openapi.docs import DocsBase
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation
from pydantic import BaseModel, Field

from approvals import api as approvals
from ledger.api import checkpoints, effects, events, journal, leases, problems, runs, waits, wakes, workflows
from ledger.api.parsing import StrictParser
from ledger.api.problems import MEDIA, TYPE
from ledger.api.shapes.events import EventBody

ROUTERS = (
    workflows.router,
    leases.router,
    runs.router,
    checkpoints.router,
    effects.router,
    events.router,
    waits.router,
    wakes.router,
    journal.router,
    approvals.router,
)


class ProblemJSON(BaseModel):
    """RFC 9457. `code` is stable; `facts` are ids, codes, versions and times."""

    type: str = Field(examples=[TYPE + "stale-fence"])
    title: str
    status: int
    code: str
    detail: str
    remedy: str
    facts: dict[str, Any]


class OwnPage(DocsBase):
    """The document as a plain page of our own: no script, no other host."""

    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: Any) -> HttpResponse:
        """Every call with its parameters, body and answers."""
        document = api.get_openapi_schema(path_params=kwargs)
        return render(
            request, "api/docs.html", {"info": document["info"], "calls": _calls(document), "shapes": _shapes(document)}
        )

    def get_openapi_url(self, api: NinjaAPI, path_params: dict[str, Any]) -> str:
        """Where the document is."""
        return "openapi.json"


class LedgerAPI(NinjaAPI):
    """Its document says of every call that it may be refused, and how refusals look."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        """A call is named after its view."""
        return operation.view_func.__name__

    def get_openapi_schema(self, **kwargs: Any) -> OpenAPISchema:
        """The OpenAPI 3.1 document."""
        document = super().get_openapi_schema(**kwargs)
        # These two come in or go out past the framework's own models.
        document["components"]["schemas"]["Problem"] = ProblemJSON.model_json_schema()
        document["components"]["schemas"]["EventBody"] = EventBody.model_json_schema()
        refusal = {"description": "A refusal", "content": {MEDIA: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
        for methods in document["paths"].values():
            for call in methods.values():
                answers = {str(status): answered for status, answered in call["responses"].items()}
                call["responses"] = {**answers, "default": refusal}
        return document


def _calls(document: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for path, methods in document["paths"].items():
        for method, call in methods.items():
            body = call.get("requestBody", {}).get("content", {})
            found.append(
                {
                    "id": call["operationId"],
                    "tag": call["tags"][0],
                    "method": method.upper(),
                    "path": path,
                    "summary": call["summary"],
                    "description": call.get("description", ""),
                    "parameters": call.get("parameters", []),
                    "body": next((_name(each["schema"]) for each in body.values()), ""),
                    "answers": {status: _answered(answer) for status, answer in call["responses"].items()},
                }
            )
    return found


def _shapes(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "description": schema.get("description", ""),
            "fields": [
                {"name": field, "type": _type(described), "description": described.get("description", "")}
                for field, described in schema.get("properties", {}).items()
            ],
        }
        for name, schema in document["components"]["schemas"].items()
    ]


def _type(described: dict[str, Any]) -> str:
    if "anyOf" in described:
        return " or ".join(_type(each) for each in described["anyOf"])
    return str(described.get("type", "")) or _name(described)


def _answered(answer: dict[str, Any]) -> str:
    content = answer.get("content", {})
    return next((_name(each["schema"]) for each in content.values()), "")


def _name(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", schema.get("title", ""))).rsplit("/", 1)[-1]


def build() -> NinjaAPI:
    """The API under /api/v1/."""
    api = LedgerAPI(
        title="resumeapp",
        version="1",
        description="The system of record for agents that pause. Conventions and errors: docs/api.md.",
        urls_namespace="api",
        parser=StrictParser(),
        docs=OwnPage(),
    )
    problems.install(api)
    for router in ROUTERS:
        api.add_router("", router)
    return api


api = build()
