"""The first calls of the documents, and the coarsest refusals, over real sockets to the real server."""

from __future__ import annotations

import json
import re
import subprocess
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

from tests.api.server import serving
from tests.conventions.sources import ROOT
from tests.world import World


def test_the_documents_first_calls_run_as_written(world: World, tmp_path: Path) -> None:
    shell = "\n".join(re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "api.md").read_text(), re.DOTALL))
    calls = [call.strip() for call in re.split(r"\n\n|\n(?=curl)", shell) if call.strip()]
    with serving(tmp_path) as port:
        known = {"RESUMEAPP": f"http://127.0.0.1:{port}", "KEY": world.secret, "RUN": "", "PATH": "/usr/bin:/bin"}
        answers = []
        for call in calls:
            call = call.replace("/refund/", "/doc/").replace('"refund"', '"doc"')
            done = subprocess.run(["sh", "-c", call], env=known, capture_output=True, text=True, check=True)
            answers.append(json.loads(done.stdout))
            known["RUN"] = answers[-1].get("run", {}).get("id", known["RUN"])
    registered, started, claimed, committed = answers
    assert registered["version"] == "1" and started["run"]["status"] == "ready"
    assert claimed["packets"][0]["run"]["id"] == started["run"]["id"]
    assert committed["status"] == "completed"


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
