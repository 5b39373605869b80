"""The API as one: every router, its errors, and its OpenAPI document."""

from __future__ import annotations

from typing import Any

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation
from pydantic import BaseModel, Field

from approvals import api as approvals
from ledger.api import checkpoints, effects, events, journal, leases, problems, runs, waits, wakes, workflows
from ledger.api.parsing import StrictParser
from ledger.api.problems import MEDIA, TYPE
from ledger.api.shapes.events import EventBody
from resumeapp.reference import OwnPage

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


def build() -> NinjaAPI:
    """The API under /api/v1/."""
    api = LedgerAPI(
        title="resumeapp",
        version="1",
        description=(
            "The system of record for agents that pause. [Conventions, an agent that pays, and every refusal](/api/v1/docs/conventions)."
        ),
        urls_namespace="api",
        parser=StrictParser(),
        docs=OwnPage(),
    )
    problems.install(api)
    for router in ROUTERS:
        api.add_router("", router)
    return api


api = build()
