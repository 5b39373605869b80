"""What looks like code in a state stays a document: nothing is built, imported or run, by the server, its pages or the client."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict
from resumeapp_client import Workflow
from resumeapp_client.records import Packet
from resumeapp_client.workflows import verified

from ledger.domain.identity import Verb
from ledger.domain.workflows import VersionSpec
from ledger.services import identity, workflows
from tests.api.conftest import Http, commit_body
from tests.documents import TRANSITIONS
from tests.ui.asking import client_of
from tests.world import World

UNUSED = "this"
"""A module that prints when it is imported, and that nobody imports."""


def shapes(mark: Path) -> dict[str, Any]:
    """Documents by which loaders of other formats make objects."""
    command = f"touch {mark}"
    return {
        "constructor": {"lc": 1, "type": "constructor", "id": [UNUSED, "s"], "kwargs": {"command": command}},
        "langchain": {
            "lc": 2,
            "type": "constructor",
            "id": ["os", "system"],
            "args": [command],
            "method": [None, "run"],
        },
        "jsonpickle": {
            "py/object": f"{UNUSED}.s",
            "py/reduce": [{"py/function": "os.system"}, {"py/tuple": [command]}],
        },
        "yaml": f"!!python/object/apply:os.system ['{command}']",
        "module": {"__class__": f"{UNUSED}.s", "__module__": UNUSED, "__reduce__": ["os.system", [command]]},
        "proto": {"__proto__": {"polluted": True}, "constructor": {"prototype": {"polluted": True}}},
        "template": "{{ 7 * 7 }}{% load evil %}${{7*7}}",
    }


class Anything(BaseModel):
    model_config = ConfigDict(extra="allow")


def test_a_state_in_the_shape_of_an_object_stays_a_document_everywhere(world: World, tmp_path: Path) -> None:
    sys.modules.pop(UNUSED, None)
    mark = tmp_path / "mark"
    state = shapes(mark)
    workflows.register(world.caller, "refund", "open", VersionSpec({"type": "object"}, "assess", TRANSITIONS, ()))
    identity.grant_permission(world.admin, world.charlie, Verb.SEE_PAYLOADS, world.workflow)
    http = Http(world.secret)
    run_id = http.start(version="open", state=state)
    packet = http.claim("open")
    assert json.loads(packet["checkpoint"]["state"]["json"]) == state
    flow = Workflow("refund", "open", "assess", Anything)
    loaded = flow.load("open", verified(Packet.model_validate(packet).checkpoint.state))
    assert type(loaded) is Anything and loaded.model_dump() == state
    done = http.post(f"/runs/{run_id}/checkpoints", commit_body(packet, state=loaded.model_dump()), key="again")
    assert done.status_code == 201, done.content
    for path in ("", "/checkpoints/2", "/resume-packet", "/resume-packet.md", "/export", "/verify"):
        assert http.get(f"/runs/{run_id}{path}").status_code == 200
    page = client_of(world.charlie).get(f"/t/{world.tenant.slug}/runs/{run_id}/").content.decode()
    assert "{{ 7 * 7 }}" in page, "it is shown as it was written"
    assert not mark.exists() and UNUSED not in sys.modules
