"""The measured verbs, in process and over HTTP: generators that act once at each step, on items that were loaded for them.

In process a verb is what its view calls, from the bytes of a request on. Every act checks its answer: a refusal ends the measurement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any
from uuid import UUID, uuid4

import orjson

from approvals.domain.decisions import EntryPoint, Receipt
from approvals.models import ApprovalRequest
from approvals.services.decisions import decide
from benchmarks.scene import EVENT_TYPE, PAYLOAD, VERSION, WORKFLOW, Seat, document
from benchmarks.wire import Sender
from ledger.api.shapes.checkpoints import CommitBody
from ledger.api.shapes.events import event_spec
from ledger.domain.canonical import parse
from ledger.domain.effects import Settled, SettleSpec
from ledger.domain.identity import Caller
from ledger.domain.leases import Offer
from ledger.domain.runs import Fence
from ledger.engine import proposals, wakes
from ledger.models import Effect, RunHead, User
from ledger.services import effects, events, keys, leases

STRUCTURED = {"Content-Type": "application/cloudevents+json"}


@dataclass(frozen=True, slots=True)
class Item:
    """One loaded run, with the word that its event's subject is."""

    run_id: UUID
    word: str


Acts = Iterator[None]
Inside = Callable[[Seat, Sequence[Item], int], Acts]
OverHttp = Callable[[Seat, Sequence[Item], int, Sender, Sender], Acts]


def caller_of(seat: Seat) -> Caller:
    return keys.authenticate(f"Bearer {seat.secret}")


def expect(answer: tuple[int, bytes], *statuses: int) -> bytes:
    """The body of an answer that has one of these statuses. Raises AssertionError with what came instead."""
    if answer[0] not in statuses:
        raise AssertionError(f"answered {answer[0]}: {answer[1][:300]!r}")
    return answer[1]


# Bodies -----------------------------------------------------------------------------------------


def commit_body(head: RunHead, seq: int, size: int, following: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A commit as a worker sends it."""
    return {
        "fence": f"{head.fence_epoch}.{head.fence_count}",
        "expect_seq": seq,
        "state": document(size),
        "code_version": "bench",
        "version": VERSION,
        "next": following,
        **more,
    }


def going_on(head: RunHead, size: int) -> Iterator[dict[str, Any]]:
    """Commits of one run, each on the one before."""
    for seq in count(head.checkpoint_seq):
        yield commit_body(head, seq, size, {"kind": "go_on", "transition": "step"})


def whole(head: RunHead, item: Item, size: int) -> dict[str, Any]:
    """A commit that proposes an effect and waits for an event."""
    member = {"kind": "event", "type": EVENT_TYPE, "subject": item.word}
    wait = {"mode": "any", "members": [member], "deadline_seconds": 86_400, "on_deadline": "wake"}
    effect = {"name": "note", "tool": "notes.add", "target": "notes", "request": orjson.loads(PAYLOAD)}
    following = {"kind": "wait", "transition": "step", "wait": wait}
    return commit_body(head, head.checkpoint_seq, size, following, propose=[effect])


def claim_body(worker: UUID, **more: Any) -> dict[str, Any]:
    """A claim of one run."""
    return {
        "worker": {"id": str(worker), "name": "bench", "code_digest": "bench"},
        "offers": [{"workflow": WORKFLOW, "versions": [VERSION]}],
        "lease_seconds": 3600,
        **more,
    }


def event_body(item: Item, size: int) -> dict[str, Any]:
    """The event that the item's run waits for."""
    return {
        "specversion": "1.0",
        "id": uuid4().hex,
        "source": "/bench",
        "type": EVENT_TYPE,
        "subject": item.word,
        "data": document(size),
    }


def heads(seat: Seat, items: Sequence[Item]) -> dict[UUID, RunHead]:
    rows = RunHead.objects.of(seat.tenant_id).filter(run_id__in=[item.run_id for item in items])
    return {row.run_id: row for row in rows}


def effects_of(seat: Seat, items: Sequence[Item]) -> list[UUID]:
    by_run = dict(
        Effect.objects.of(seat.tenant_id).filter(run_id__in=[item.run_id for item in items]).values_list("run_id", "id")
    )
    return [by_run[item.run_id] for item in items]


def requests_of(seat: Seat, items: Sequence[Item]) -> list[ApprovalRequest]:
    rows = ApprovalRequest.objects.of(seat.tenant_id).filter(run_id__in=[item.run_id for item in items])
    return list(rows.order_by("pk"))


# In process -------------------------------------------------------------------------------------


def commit(seat: Seat, items: Sequence[Item], size: int) -> Acts:
    caller, head = caller_of(seat), heads(seat, items[:1])[items[0].run_id]
    for body in going_on(head, size):
        _committed(caller, head.run_id, orjson.dumps(body))
        yield


def commit_whole(seat: Seat, items: Sequence[Item], size: int) -> Acts:
    caller, known = caller_of(seat), heads(seat, items)
    for item in items:
        _committed(caller, item.run_id, orjson.dumps(whole(known[item.run_id], item, size)))
        yield


def _committed(caller: Caller, run_id: UUID, raw: bytes) -> None:
    sent = parse(raw)
    made, repeated = proposals.commit(caller, run_id, CommitBody(**sent).spec(uuid4().hex, sent))
    assert not repeated and made.status in {"running", "waiting"}, made


def claim(seat: Seat, items: Sequence[Item], size: int) -> Acts:
    caller = caller_of(seat)
    offer = Offer(uuid4(), "bench", "bench", {WORKFLOW: (VERSION,)}, 1, 3600)
    while leases.claim(caller, offer):
        yield


def permit(seat: Seat, items: Sequence[Item], size: int) -> Acts:
    caller, head = caller_of(seat), heads(seat, items[:1])[items[0].run_id]
    fence = Fence(head.fence_epoch, head.fence_count)
    for effect_id in effects_of(seat, items):
        given = proposals.permit(caller, effect_id, fence)
        said = SettleSpec(given.attempt, Settled.COMMITTED, reference="n-1", result=PAYLOAD)
        assert effects.settle(caller, effect_id, said, fence).counted
        yield


def event(seat: Seat, items: Sequence[Item], size: int) -> Acts:
    caller = caller_of(seat)
    for item in items:
        raw = orjson.dumps(event_body(item, size))
        assert events.receive(caller, event_spec(parse(raw))).deliveries == 1
        yield


def wake(seat: Seat, items: Sequence[Item], size: int) -> Acts:
    for item in items:
        assert str(wakes.run(item.run_id)) == "resume"
        yield


def decided(seat: Seat, items: Sequence[Item], size: int) -> Acts:
    person = User.objects.get(pk=seat.person_id)
    for request in requests_of(seat, items):
        digest = bytes(request.digest)
        made = decide(person, request.pk, "approve", "", digest, 1, EntryPoint.API, Receipt(digest, "api/1"))
        assert made.grant_id is not None
        yield


# Over HTTP --------------------------------------------------------------------------------------


def http_commit(seat: Seat, items: Sequence[Item], size: int, agent: Sender, person: Sender) -> Acts:
    head = heads(seat, items[:1])[items[0].run_id]
    for body in going_on(head, size):
        _post_commit(agent, head.run_id, body)
        yield


def http_commit_whole(seat: Seat, items: Sequence[Item], size: int, agent: Sender, person: Sender) -> Acts:
    known = heads(seat, items)
    for item in items:
        _post_commit(agent, item.run_id, whole(known[item.run_id], item, size))
        yield


def _post_commit(agent: Sender, run_id: UUID, body: dict[str, Any]) -> None:
    expect(agent.send("POST", f"/api/v1/runs/{run_id}/checkpoints", body, {"Idempotency-Key": uuid4().hex}), 201)


def http_claim(seat: Seat, items: Sequence[Item], size: int, agent: Sender, person: Sender) -> Acts:
    body = claim_body(uuid4())
    while expect(agent.send("POST", "/api/v1/runs/claim", body), 200, 204):
        yield


def http_permit(seat: Seat, items: Sequence[Item], size: int, agent: Sender, person: Sender) -> Acts:
    head = heads(seat, items[:1])[items[0].run_id]
    fence = {"fence": f"{head.fence_epoch}.{head.fence_count}"}
    said = {**fence, "attempt": 1, "outcome": "committed", "reference": "n-1", "result": orjson.loads(PAYLOAD)}
    for effect_id in effects_of(seat, items):
        expect(agent.send("POST", f"/api/v1/effects/{effect_id}/permit", fence), 200)
        expect(agent.send("POST", f"/api/v1/effects/{effect_id}/settle", said), 200)
        yield


def http_event(seat: Seat, items: Sequence[Item], size: int, agent: Sender, person: Sender) -> Acts:
    for item in items:
        answer = expect(agent.send("POST", "/api/v1/events", event_body(item, size), STRUCTURED), 202)
        assert orjson.loads(answer)["deliveries"] == 1, answer
        yield


def http_decide(seat: Seat, items: Sequence[Item], size: int, agent: Sender, person: Sender) -> Acts:
    for request in requests_of(seat, items):
        body = {"decision": "approve", "revision": 1, "digest": bytes(request.digest).hex()}
        answer = expect(person.send("POST", f"/api/v1/approvals/{request.pk}/decision", body), 200)
        assert orjson.loads(answer)["state"] == "approved", answer
        yield


@dataclass(frozen=True, slots=True)
class Verb:
    """What is measured under a name: from which golden run, in process and over HTTP (a wake has no request of its own)."""

    golden: str
    inside: Inside
    over_http: OverHttp | None
    one_run: bool = False
    """All acts of a client are on one run."""
    most: int = 1_000
    """How many a second there may be: so many runs are loaded. A measurement whose runs are used up ends early."""


VERBS = {
    "commit": Verb("running", commit, http_commit, one_run=True),
    "commit with effect and wait": Verb("running", commit_whole, http_commit_whole),
    "claim": Verb("ready", claim, http_claim),
    "permit + settle": Verb("proposed", permit, http_permit),
    "permit + settle of an approved call": Verb("approved", permit, http_permit),
    "event": Verb("waiting", event, http_event),
    "wake": Verb("waking", wake, None),
    "wake after an approval": Verb("voted", wake, None),
    "decide": Verb("asked", decided, http_decide, most=400),
}
