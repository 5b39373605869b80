"""Register workflow versions and read them."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Path, Router

from ledger.api import auth
from ledger.api.answers import answer
from ledger.api.parsing import check_size
from ledger.api.shapes.workflows import (
    VersionBody,
    VersionJSON,
    VersionPage,
    WorkflowPage,
    version_json,
    workflow_json,
)
from ledger.domain.workflows import NAME, VERSION
from ledger.services import reads, workflows

router = Router(tags=["workflows"])
WorkflowName = Annotated[str, Path(pattern=f"^{NAME.pattern}$")]
VersionName = Annotated[str, Path(pattern=f"^{VERSION.pattern}$")]


@router.put(
    "/workflows/{workflow}/versions/{version}", auth=auth.REGISTER, response={201: VersionJSON, 200: VersionJSON}
)
def register_version(
    request: HttpRequest, workflow: WorkflowName, version: VersionName, body: VersionBody
) -> HttpResponse:
    """Register a version: immutable. The same content again is answered with 200, other content with 409."""
    check_size("state_schema", body.state_schema)
    made = workflows.register(auth.caller(request), workflow, version, body.spec())
    document = {"workflow": made.workflow, "version": made.version, "digest": made.digest}
    return answer(document, 201 if made.created else 200)


@router.get("/workflows", auth=auth.READ, response=WorkflowPage)
def list_workflows(request: HttpRequest) -> HttpResponse:
    """The workflows that this key may see."""
    rows = reads.workflows(auth.caller(request)).order_by("name")[: reads.MOST_PER_PARENT]
    return answer({"workflows": [workflow_json(row) for row in rows]})


@router.get("/workflows/{workflow}/versions", auth=auth.READ, response=VersionPage)
def list_versions(request: HttpRequest, workflow: WorkflowName) -> HttpResponse:
    """A workflow's versions, newest first."""
    rows = reads.versions(auth.caller(request), workflow)
    return answer({"versions": [version_json(workflow, row) for row in rows]})
