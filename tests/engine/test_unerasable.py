"""Whatever people, agents and targets word as they like is kept in rows, which can be erased, and stands in no entry of the journal, which can't."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from approvals.domain.decisions import EntryPoint, Receipt
from approvals.labels import VERBS
from approvals.models import ApprovalRequest
from approvals.services.decisions import decide
from ledger.domain.effects import EffectState
from ledger.domain.handoffs import Outcome
from ledger.domain.identity import ALL, Caller, Emit, Verb
from ledger.engine import wakes
from ledger.models import Checkpoint, Effect, Handoff, JournalEntry, RunHead, TenantHead, WakeCheck
from ledger.models.tables import tables
from ledger.services import authority, effects, facts, handoffs, identity, verify
from ledger.services.facts import Part
from tests.api.conftest import Http, claim_body, commit_body, start_body
from tests.documents import SCHEMA, STATE, TRANSITIONS
from tests.shop import Shop, register
from tests.world import EVERYTHING, World

TEAM = "zebra-team"
CARD = b"\x01" * 32
"""The digest of the card that was decided on: whoever guesses all that stood on it can compute it."""


@dataclass
class Marks:
    """Texts that are found again wherever they are kept."""

    given: list[str] = field(default_factory=list)

    def mark(self, where: str) -> str:
        self.given.append(f"ZEBRA {where}, Ada Lovelace")
        return self.given[-1]

    def word(self, where: str) -> str:
        """One without spaces, for keys and headers."""
        self.given.append(f"ZEBRA-{where}")
        return self.given[-1]


class Told:
    """A run whose every text is marked, told through the doors that agents and people use."""

    def __init__(self, world: World, shop: Shop) -> None:
        self.world, self.marks = world, Marks()
        shop.version = self.marks.word("etag")
        register(world, shop, "payments")
        self.http = Http(self._office())
        self._workflow()
        self.run_id, self.packet = UUID(int=0), dict[str, Any]()

    def _office(self) -> str:
        """Names and labels that an administrator chose; a key's secret."""
        world, mark = self.world, self.marks.mark
        team = identity.add_team(world.admin, TEAM, "ZEBRA people")
        identity.add_to_team(world.admin, team, world.alice)
        for verb in (Verb.SEE, Verb.APPROVE):
            identity.grant_permission(world.admin, team, verb, world.workflow)
        asks = {"tool": "payments.*", "verdict": "approve", "group": TEAM, "quorum": 1}
        authority.publish_policy(world.admin, [{**asks, "decide_by": 86_400, "use_by": 3_600}])
        self.marks.given.append(TEAM)
        self.agent_id = identity.add_agent(world.admin, mark("agent"), world.dora)
        emits = [Emit(ALL, self.marks.word("emits") + "*"), Emit(ALL, "/shop of ZEBRA*")]
        issued = identity.issue_key(
            world.admin, mark("label"), EVERYTHING, agent_id=self.agent_id, workflows=[ALL], emits=emits
        )
        return issued.secret

    def _workflow(self) -> None:
        body = {
            "state_schema": {**SCHEMA, "description": self.marks.mark("schema")},
            "initial": "assess",
            "transitions": TRANSITIONS,
            "dependencies": {"model": self.marks.mark("dependency")},
            "own_events": True,
        }
        answer = self.http.send("PUT", "/workflows/refund/versions/zoo.1", body)
        assert answer.status_code in (200, 201), answer.content

    def post(self, path: str, body: Any, key: str | None = None) -> dict[str, Any]:
        answer = self.http.post(path, body, key=key or str(uuid4()))
        assert answer.status_code in (200, 201, 202), answer.content
        return dict(json.loads(answer.content)) if answer.content else {}

    def begin(self) -> None:
        mark = self.marks.mark
        said = {"task": mark("task"), "text": mark("text"), "attributes": {"who": mark("attribute")}}
        body = start_body(version="zoo.1", **said)
        body["state"] = {**STATE, "order": mark("state")}
        started = self.post("/runs", body, self.marks.word("run-key"))
        self.run_id = UUID(started["run"]["id"])
        self.claim()

    def claim(self) -> None:
        worker = {"id": str(uuid4()), "name": "ZEBRA worker", "code_digest": "ZEBRA code"}
        answer = self.post("/runs/claim", {**claim_body("zoo.1"), "worker": worker})
        (self.packet,) = answer["packets"]

    def commit(self, following: dict[str, Any], **more: Any) -> None:
        body = {**commit_body(self.packet), "next": following, "code_version": self.marks.word("code"), **more}
        self.post(f"/runs/{self.run_id}/checkpoints", body, self.marks.word(f"commit-key-{len(self.marks.given)}"))

    def propose_and_wait(self) -> None:
        mark = self.marks.mark
        self.event = {"source": "/shop of ZEBRA", "type": mark("type"), "subject": mark("subject")}
        members = [{"kind": "approval", "effect": "pay"}, {"kind": "event", **self.event}]
        wait = {"mode": "all", "members": members, "deadline_seconds": 86_400, "on_deadline": "wake"}
        pay = {
            "name": "pay",
            "tool": "payments.refund",
            "tool_digest": mark("tool digest"),
            "target": "payments",
            "resource": self.marks.word("resource"),
            "request": {"reason": mark("request")},
        }
        self.commit({"kind": "wait", "transition": "issue", "wait": wait}, propose=[pay])

    def decide_and_emit(self) -> None:
        request = ApprovalRequest.objects.of(self.world.tenant).get(run_id=self.run_id)
        receipt = Receipt(CARD, self.marks.mark("renderer"))
        said = (request.pk, "approve", self.marks.mark("reason"), bytes(request.digest), request.revision)
        decide(self.world.alice, *said, EntryPoint.PAGE, receipt)
        event = {"specversion": "1.0", "id": self.marks.mark("event"), "data": self.marks.mark("data"), **self.event}
        answer = self.http.send("POST", "/events", event, media="application/cloudevents+json")
        assert answer.json()["status"] == "matched", answer.content

    def call(self) -> UUID:
        assert str(wakes.run(self.run_id)) == "resume"
        self.claim()
        effect_id = UUID(self.packet["effects"]["pay"]["id"])
        permit = self.post(f"/effects/{effect_id}/permit", {"fence": self.packet["fence"]})
        assert permit["permit"]["precondition"].strip('"') == "ZEBRA-etag"
        report = {"fence": self.packet["fence"], "attempt": 1, "outcome": "unknown"}
        report |= {"reference": self.marks.mark("reference"), "result": self.marks.mark("result")}
        self.post(f"/effects/{effect_id}/settle", report)
        return effect_id

    def judge_and_close(self, effect_id: UUID) -> None:
        """A person says what happened; another thing comes to a person, who says why it ends."""
        judged = (EffectState.COMMITTED, "", self.marks.mark("evidence"), self.marks.mark("their reference"))
        effects.verdict(self.operator, effect_id, *judged, read=effects.read_now(effect_id))
        self.commit({"kind": "give_back", "transition": "think"}, state={**STATE, "order": self.marks.mark("later")})
        identity.deactivate_agent(self.world.admin, self.agent_id)
        assert str(wakes.run(self.run_id)) == "hand_off"
        handoff = Handoff.objects.of(self.world.tenant).get(run_id=self.run_id, state="open")
        handoffs.close(self.operator, handoff.pk, Outcome.CANCEL, self.marks.mark("closing"))

    @property
    def operator(self) -> Caller:
        person = self.world.charlie.pk
        return replace(self.world.caller, person_id=person, actor=f"person:{person}")

    def kept(self) -> str:
        """All that rows of the tenant hold, the journal's apart."""
        found: list[str] = []
        for record in tables().keys() - {"journal_entry"}:
            read = facts.read(rows=Part(record, "t.tenant_id = %s", (self.world.tenant.pk,), many=True)).many("rows")
            values = [value for row in read for value in row.values() if value is not None]
            found += [value.decode(errors="replace") if isinstance(value, bytes) else str(value) for value in values]
        return "\n".join(found)


@pytest.fixture
def told(world: World, shop: Shop) -> Told:
    run = Told(world, shop)
    run.begin()
    run.propose_and_wait()
    run.decide_and_emit()
    run.judge_and_close(run.call())
    return run


def test_no_text_that_anybody_worded_stands_in_an_entry(told: Told, world: World) -> None:
    entries = JournalEntry.objects.of(world.tenant)
    verbs = {verb for verb, content in entries.values_list("verb", "content") if b"zebra" in bytes(content).lower()}
    assert not verbs, "these entries hold a text in clear"
    assert {"run", "tenant", "event"} == set(entries.values_list("kind", flat=True))
    kept = told.kept()
    lost = [mark for mark in told.marks.given if mark not in kept]
    assert not lost, "what was said is kept where it can be erased"
    assert set(entries.values_list("verb", flat=True)) <= VERBS.keys()


def test_what_stands_there_instead_verifies(told: Told, world: World) -> None:
    assert verify.run(told.run_id).faults == []
    assert verify.tenant(world.tenant.pk).faults == []


def _lines(told: Told) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """What the run's entries list: their sequence, the table, and the fields."""
    for entry in JournalEntry.objects.of(told.world.tenant).filter(stream_id=told.run_id).order_by("seq"):
        for line in json.loads(bytes(entry.content))["changes"]:
            yield entry.seq, line["object"].partition(":")[0], line["fields"]


def _first(told: Told, table: str) -> tuple[int, dict[str, Any]]:
    return next((seq, fields) for seq, name, fields in _lines(told) if name == table)


def _digest(mark: str, fields: Mapping[str, Any]) -> str:
    """The record's digests, by nothing of ours."""
    content = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(f"{mark}\x00{content}".encode()).hexdigest()


Stand = Callable[[Mapping[str, Any], str, str], Any]
"""What stands in a digest for a text: of which line, which column, and the text itself."""


def _commitment(line: Mapping[str, Any], column: str, text: str) -> Any:
    return line[column]


def _plain(line: Mapping[str, Any], column: str, text: str) -> Any:
    return text


def _subject(told: Told, stand: Stand) -> dict[str, Any]:
    _, line = _first(told, "effect")
    row = Effect.objects.of(told.world.tenant).get(pk=line["id"])
    return {
        "tool": line["tool"],
        "tool_digest": stand(line, "tool_digest", row.tool_digest),
        "target": "payments",
        "target_id": line["target_id"],
        "resource": stand(line, "resource", row.resource),
        "observed_version": stand(line, "observed_version", row.observed_version),
        "request": line["request_commitment"],
        "key": line["key"],
    }


def _facts(told: Told, stand: Stand, tenant_seq: int) -> dict[str, Any]:
    """Of the first decision, whose run had done nothing twice and was cleared for its one version."""
    seq, decision = _first(told, "decision")
    checks = []
    for _, table, line in _lines(told):
        if table == "wake_check" and line["decision_id"] == decision["id"]:
            row = WakeCheck.objects.of(told.world.tenant).get(pk=line["id"])
            texts = [stand(line, name, getattr(row, name)) for name in ("recorded", "observed", "subject")]
            checks.append([line["name"], line["answer"], line["reason"], *texts])
    return {
        "head_seq": seq - 1,
        "tenant_seq": tenant_seq,
        "checks": checks,
        "intent": "none",
        "on_conflict": ["ask_again", ""],
        "asks": 0,
        "retries": 0,
        "replans": 0,
        "versions": ["zoo.1"],
    }


MARKS = ("1", "2")
"""The versions of each kind of digest that there ever were."""


def test_the_subject_of_leave_is_known_by_its_commitments_and_not_by_a_guess_of_its_texts(told: Told) -> None:
    digests = {
        fields[column]
        for _, table, fields in _lines(told)
        for column in ("subject_digest", "digest")
        if column in fields and table in {"effect", "grant", "approval_request", "revision"}
    }
    assert {_digest(f"effect-subject/{mark}", _subject(told, _plain)) for mark in MARKS}.isdisjoint(digests)
    assert {_digest("effect-subject/2", _subject(told, _commitment))} == digests


def test_the_facts_of_a_decision_are_known_by_their_commitments_and_not_by_a_guess_of_their_texts(told: Told) -> None:
    _, decision = _first(told, "decision")
    known = range(1, TenantHead.objects.of(told.world.tenant).get().head_seq + 1)
    guesses = {_digest(f"wake-facts/{mark}", _facts(told, _plain, seq)) for mark in MARKS for seq in known}
    assert decision["facts_digest"] not in guesses
    assert decision["facts_digest"] in {_digest("wake-facts/2", _facts(told, _commitment, seq)) for seq in known}


def test_the_card_that_was_decided_on_is_known_under_the_run_s_salt_and_not_by_a_guess_of_what_it_showed(
    told: Told,
) -> None:
    _, vote = _first(told, "vote")
    salt = RunHead.objects.of(told.world.tenant).get(pk=told.run_id).salt
    under_salt = hashlib.sha256(bytes(salt) + f'"{CARD.hex()}"'.encode()).hexdigest()
    guesses = {CARD.hex(), *(_digest(f"vote-receipt/{mark}", {"card": CARD.hex()}) for mark in MARKS)}
    assert vote["receipt_digest"] not in guesses
    assert vote["receipt_digest"] == _digest("vote-receipt/1", {"card": under_salt})


def _checkpoints(told: Told, mark: str, stand: Stand) -> Iterator[tuple[str, str]]:
    """The digest of each checkpoint as it stands in its entry, and as this makes it."""
    for _, table, line in _lines(told):
        if table != "checkpoint":
            continue
        row = Checkpoint.objects.of(told.world.tenant).get(pk=line["id"])
        fields = {
            "run": line["run_id"],
            "seq": line["seq"],
            "kind": line["kind"],
            "previous": line["previous_digest"],
            "last": line["last_transition"],
            "next": line["next_transition"],
            "instance": line["instance_id"],
            "schema": line["version"],
            "code": stand(line, "code_version", row.code_version),
            "fence": f"{line['fence_epoch']}.{line['fence_count']}",
            "state": line["state_commitment"],
            "artifacts": stand(line, "artifacts", row.artifacts),
        }
        yield line["digest"], _digest(mark, fields)


def test_a_checkpoint_is_known_by_its_commitments_and_not_by_a_guess_of_the_code_that_made_it(told: Told) -> None:
    for mark in ("checkpoint/1", "checkpoint/2"):
        assert [stands for stands, made in _checkpoints(told, mark, _plain) if stands == made] == []
    assert all(stands == made for stands, made in _checkpoints(told, "checkpoint/2", _commitment))
