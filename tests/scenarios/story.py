"""A refund as everybody lives it: agents over HTTP, people on the page, the payment service in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

from django.http import HttpResponse

from approvals.models import ApprovalRequest
from ledger.domain.handoffs import Outcome
from ledger.engine import sweep, wakes
from ledger.models import Handoff, User
from ledger.services import handoffs, targets
from ledger.services.targets import TargetSpec
from tests.api.conftest import Http, commit_body
from tests.documents import LOOKUP, OBSERVE
from tests.sandbox.process import Answer, Caller, Sandbox
from tests.ui.asking import address, client_of, form_of, receipt_of
from tests.world import World

PAY: dict[str, Any] = {
    "name": "pay",
    "tool": "payments.refund",
    "target": "payments",
    "resource": "order/17",
    "request": {"amount_minor": 1500, "currency": "EUR", "order": "17", "reason": "broken on arrival"},
}
APPROVAL = {"kind": "approval", "effect": "pay"}
Json = dict[str, Any]


def waiting(*members: Mapping[str, Any], then: str = "issue", **fields: Any) -> Json:
    """The next step: wait for any of these, for a day unless told otherwise."""
    wait = {"mode": "any", "members": list(members), "deadline_seconds": 86_400, "on_deadline": "wake", **fields}
    return {"kind": "wait", "transition": then, "wait": wait}


class Story:
    """One tenant, one run at a time, order 17 over 120.00 EUR at the payment service."""

    def __init__(self, world: World, service: Sandbox) -> None:
        self.world, self.service = world, service
        self.http = Http(world.secret)
        self.shop: Caller = service.caller()
        self.shop.control("reset")
        assert self.shop.order().status == 201
        self.register_target()
        self.run_id = UUID(int=0)
        self.packet: Json = {}

    def register_target(self, **changes: Any) -> None:
        """Register the payment service, these parts of it otherwise."""
        spec = TargetSpec(
            "payments",
            f"http://{self.service.host}",
            keyed=True,
            private=True,
            key_retention=86_400,
            freshness=300,
            call_limit=5,
            visibility_delay=1,
            lookup=LOOKUP,
            observe=OBSERVE,
        )
        targets.register(self.world.admin, replace(spec, **changes))

    # The agent ---------------------------------------------------------------------------------

    def begin(self, version: str = "1", **lease: Any) -> Json:
        """Start a run and claim it."""
        self.run_id = self.http.start(version=version)
        return self.claim(version, **lease)

    def claim(self, *versions: str, **lease: Any) -> Json:
        """The run's packet in the hands of a worker that has these versions."""
        self.packet = self.http.claim(*versions, **lease)
        assert self.packet["run"]["id"] == str(self.run_id)
        return self.packet

    def post(self, path: str, body: Json, *, key: str | None = None, status: int | None = None) -> Json:
        """POST that must be answered with this status (or with success); its document."""
        response: Any = self.http.post(path, body, key=key or str(uuid4()))
        assert response.status_code in ((status,) if status else (200, 201, 202, 204)), response.content
        return dict(json.loads(response.content)) if response.content else {}

    def commit(self, step: Json | str, *, status: int | None = None, packet: Json | None = None, **fields: Any) -> Json:
        """Commit the next step (or an end) as the packet's holder."""
        packet = packet or self.packet
        following = {"kind": step} if isinstance(step, str) else step
        body = {**commit_body(packet, next=following), "expect_seq": self.run()["seq"], **fields}
        return self.post(f"/runs/{self.run_id}/checkpoints", body, status=status)

    def ask(self, step: Json | None = None, version: str = "1", **changes: Any) -> Json:
        """A run that proposed the refund and waits for leave; its effect."""
        self.begin(version)
        made = self.commit(step or waiting(APPROVAL), propose=[{**PAY, **changes}])
        assert made["status"] == "waiting" and made["fence"] is None
        effect: Json = made["effects"]["pay"]
        return effect

    def permit(self, effect_id: str, *, packet: Json | None = None, status: int = 200) -> Json:
        return self.post(f"/effects/{effect_id}/permit", {"fence": (packet or self.packet)["fence"]}, status=status)

    def settle(self, effect_id: str, outcome: str, *, packet: Json | None = None, **fields: Any) -> Json:
        body = {"fence": (packet or self.packet)["fence"], "attempt": 1, "outcome": outcome, **fields}
        return self.post(f"/effects/{effect_id}/settle", body)

    # The world ---------------------------------------------------------------------------------

    def pay(self, permit: Json, caller: Caller | None = None) -> Answer:
        """The worker's call: the permitted bytes, key and precondition."""
        caller = caller or self.service.caller()
        headers = {"Idempotency-Key": permit["key"]}
        if permit["precondition"]:
            headers["If-Match"] = permit["precondition"]
        caller.connection.request("POST", "/refunds", json.dumps(permit["request"]).encode(), headers)
        return caller.read()

    def move_order(self, amount_minor: int = 11_000) -> None:
        answer = self.shop.call("PATCH", "/orders/17", {"amount_minor": amount_minor})
        assert answer.status == 200, answer

    def counted(self, key: str) -> tuple[int, int]:
        """(mutating requests, applied refunds) of a key, by the service's own log."""
        found = self.shop.counted(key)
        return found["mutating"], found["applied"]

    def wake(self) -> str:
        """Wake the run; what was decided."""
        return str(wakes.run(self.run_id))

    def sweep(self) -> None:
        sweep.sweep(10_000)

    def event(self, **fields: Any) -> Json:
        body = {"specversion": "1.0", "id": str(uuid4()), "source": "/shop", "type": "shipped", **fields}
        response = self.http.send("POST", "/events", body, media="application/cloudevents+json")
        assert response.status_code == 202, response.content
        answer: Json = response.json()
        return answer

    # People ------------------------------------------------------------------------------------

    @property
    def request(self) -> ApprovalRequest:
        found: ApprovalRequest = ApprovalRequest.objects.of(self.world.tenant).filter(run_id=self.run_id).latest("id")
        return found

    def card(self, user: User) -> str:
        """The approval's page as this person sees it."""
        page: str = client_of(user).get(address(self.world, self.request)).content.decode()
        return page

    def decide(self, user: User, decision: str, reason: str = "", page: str | None = None) -> HttpResponse:
        """Send the form of the card (that was opened before, or is now)."""
        data = {**form_of(page or self.card(user)), "decision": decision, "reason": reason}
        answer: HttpResponse = client_of(user).post(address(self.world, self.request, "approval_decide"), data)
        return answer

    def approve(self, user: User | None = None) -> None:
        assert self.decide(user or self.world.alice, "approve").status_code == 302

    def judge(self, effect_id: str, verdict: str, reference: str = "", status: int = 302) -> str:
        """An operator's word on an effect, sent from its page; the page afterwards."""
        answer = self.operate(effect_id, "verdict", self.page(effect_id), verdict=verdict, reference=reference)
        assert answer.status_code == status, answer.content.decode()
        return self.page(effect_id)

    def operate(self, effect_id: str, what: str, page: str, **typed: str) -> HttpResponse:
        """Send a form of an effect's page, as it was opened, with evidence: `verdict`, or `ask` to ask the target again."""
        sent = {"evidence": "the statement of the account", **typed, **receipt_of(page)}
        address = f"/t/{self.world.tenant.slug}/reconcile/{effect_id}/{what}/"
        answer: HttpResponse = client_of(self.world.charlie).post(address, sent)
        return answer

    def page(self, effect_id: str) -> str:
        """An effect's page as an operator sees it."""
        address = f"/t/{self.world.tenant.slug}/reconcile/{effect_id}/"
        told: str = client_of(self.world.charlie).get(address).content.decode()
        return told

    def close_handoff(self, outcome: str) -> None:
        """An operator closes the run's handoff."""
        operator = replace(self.world.caller, person_id=self.world.charlie.pk, actor=f"person:{self.world.charlie.pk}")
        open_one = Handoff.objects.of(self.world.tenant).get(run_id=self.run_id, state__in=["open", "accepted"])
        handoffs.close(operator, open_one.pk, Outcome(outcome), "looked into it")

    # The record --------------------------------------------------------------------------------

    def run(self) -> Json:
        found: Json = self.http.get(f"/runs/{self.run_id}").json()["run"]
        return found

    def effect(self, name: str = "pay") -> Json:
        """The newest effect of this name."""
        rows = self.http.get(f"/effects?run={self.run_id}").json()["effects"]
        found: Json = next(row for row in rows if row["name"] == name)
        return found

    def last_wait(self) -> Json:
        found: Json = self.http.get(f"/runs/{self.run_id}/waits").json()["waits"][0]
        return found

    def intact(self) -> bool:
        return self.http.get(f"/runs/{self.run_id}/verify").json()["intact"] is True
