"""What an effect's result is when its answer was lost: what the call itself would have answered, and always JSON."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from ledger.engine import reconcile, wakes
from ledger.services import targets
from ledger.services.targets import TargetSpec
from tests.api.conftest import Http, claim_body
from tests.clock import Clock
from tests.documents import LOOKUP
from tests.engine.scenes import Payments, evidence, proposal
from tests.services.issuing import ANYTHING, lapse, paying, state
from tests.world import World


@contextmanager
def answering(content: bytes, media: str) -> Iterator[str]:
    """A service that answers every POST with these bytes; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("Content-Type", media)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("target", ["payments", "notes"], ids=["by-key", "by-replay"])
def test_a_result_that_was_looked_up_is_what_the_call_answered(payments: Payments, clock: Clock, target: str) -> None:
    packet, effect_id, given = payments.permitted(proposal(target))
    answered = payments.pay(given)
    payments.lapse(clock, packet.run.id)
    clock.shift(10)
    assert payments.look(effect_id)[1].state == "committed"
    result = Http(payments.world.secret).get(f"/effects/{effect_id}").json()["result"]
    assert result["id"] == answered.body["id"] and set(result) == set(answered.body)
    if target == "payments":
        assert any("refunds" in reply for reply in evidence(payments, effect_id)), "the whole reply is evidence"


def test_a_target_may_say_where_in_the_found_item_the_result_is(payments: Payments, clock: Clock) -> None:
    common: dict[str, Any] = {"private": True, "keyed": True, "key_retention": 86_400, "call_limit": 5}
    declared = {**LOOKUP, "result": "/id"}
    targets.register(payments.world.admin, TargetSpec("payments", payments.url, lookup=declared, **common))
    packet, effect_id, given = payments.permitted()
    answered = payments.pay(given)
    payments.lapse(clock, packet.run.id)
    clock.shift(10)
    payments.look(effect_id)
    assert Http(payments.world.secret).get(f"/effects/{effect_id}").json()["result"] == answered.body["id"]


@pytest.mark.parametrize("content", [b"OK", b'{"id": 1, "id": 2}', b"\xff\xfe"], ids=["text", "double-key", "bytes"])
def test_a_reply_that_is_no_json_breaks_no_answer(world: World, clock: Clock, content: bytes) -> None:
    replay = {"by": "replay", "path": "/x", "key_header": "Idempotency-Key"}
    replay |= {"cases": [{"status": [200], "answer": "applied"}]}
    with answering(content, "text/plain") as url:
        world.policy(ANYTHING)
        spec = TargetSpec("payments", url, True, True, key_retention=86_400, private=True, lookup=replay)
        targets.register(world.admin, spec)
        packet, effect, _ = paying(world)
        lapse(world, clock, packet.run.id)
        reconcile.reconcile(effect.pk)
    assert state(world, effect) == "committed"
    http = Http(world.secret)
    kept = {"data_base64": base64.b64encode(content).decode(), "media": "text/plain"}
    assert http.get(f"/effects/{effect.pk}").json()["result"] == kept
    wakes.run(packet.run.id)
    [claimed] = http.post("/runs/claim", claim_body()).json()["packets"]
    assert claimed["effects"]["pay"]["result"] == kept, "the next holder can read its packet"
