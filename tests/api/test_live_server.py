"""The first calls of the documents, and the coarsest refusals, over real sockets to the real server."""

from __future__ import annotations

import json
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

from tests.api.server import serving
from tests.world import World


def test_60_megabytes_get_a_clean_413_and_the_next_call_its_answer(world: World, tmp_path: Path) -> None:
    headers = {"Authorization": f"Bearer {world.secret}", "Content-Type": "application/json", "Idempotency-Key": "k"}
    with serving(tmp_path) as port:
        with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as asked:
            asked.request("POST", "/api/v1/runs", b'{"state":"' + b"x" * 60_000_000 + b'"}', headers)
            response = asked.getresponse()
            assert response.status == 413 and json.loads(response.read())["code"] == "too-large"
        with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as asked:
            asked.request("GET", "/api/v1/runs", headers=headers)
            assert json.loads(asked.getresponse().read()) == {"runs": [], "next": ""}
