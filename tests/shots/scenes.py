"""What happened in the pictures' tenants, as the product itself brings it about, on a clock that begins two days ago."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import EffectState, LookAnswer, ProposalSpec, Settled, SettleSpec
from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.engine import reconcile
from ledger.services import effects, handoffs, leases
from ledger.services.authority import revoke_grant
from ledger.services.effects import Looked
from tests.clock import Clock
from tests.shop import Shop
from tests.shots.house import House

HOUR = 3_600
WORST = "<img src=x onerror=alert(1)> {{ 7|add:7 }} " + "W" * 180 + " \u202egnp.exe\u0007 ภาษาไทย مرحبا"


@dataclass
class Story:
    """The rows that pages are opened for, by name."""

    house: House
    shop: Shop
    clock: Clock
    runs: dict[str, UUID] = field(default_factory=dict)

    def at(self, hours_ago: float) -> None:
        self.clock.set(-hours_ago * HOUR)

    def later(self, minutes: float) -> None:
        self.clock.shift(minutes * 60)


def state(
    order: str, minor: int, customer: str = "Ines Morel", reason: str = "the vase arrived chipped"
) -> dict[str, Any]:
    return {"order": order, "customer": customer, "amount_minor": minor, "currency": "EUR", "reason": reason}


def told(story: Story) -> None:
    """Everything that a full console shows."""
    for act in (
        _completed,
        _denied_then_asked,
        _expired,
        _handed_over,
        _closed_handoff,
        _settled_handoff,
        _moved,
        _wire,
        _unknown,
        _doubted,
        _given_up,
        _events,
        _inbox,
        _given,
        _silent,
        _running,
        _ready,
        _unclaimed,
    ):
        act(story)
    story.clock.set(0)


def _order(story: Story, number: str, total: int, **more: Any) -> None:
    story.shop.put(
        number, order=number, customer="Ines Morel", total_minor=total, currency="EUR", refunded_minor=0, **more
    )


def _completed(story: Story) -> None:
    """A long run that ended well: two workers, newer code, a note and a refund."""
    house = story.house
    _order(story, "A-20417", 8_900, status="delivered", items=3)
    story.at(46)
    run_id = house.start(
        "Refund order A-20417 for Ines Morel",
        {"order": "A-20417", "customer": "Ines Morel"},
        "The vase arrived chipped; she keeps it and asks for half.",
        channel="mail",
    )
    story.later(0.4)
    packet = house.claim(run_id)
    found = {**state("A-20417", 4_450), "photos": 3}
    story.later(0.7)
    note = ProposalSpec(
        "note", "notes.add", "notes", "", b'{"text":"Half is fair: the photos show a chip on the rim."}'
    )
    packet = house.go_on(packet, "weigh", found)
    found |= {"risk": "low", "share": "half"}
    story.later(0.5)
    packet = house.go_on(packet, "weigh", found)
    story.later(0.5)
    house.propose(packet, found, 20, "payments.refund", note)
    story.later(44)
    house.decide(run_id, house.mara, "approve", "The photos show it.")
    house.wake(run_id)
    packet = house.claim(run_id, "harbour-3", "7")
    effects.permit(house.caller, house.effect(run_id, "note").pk, packet.fence)
    effects.settle(
        house.caller,
        house.effect(run_id, "note").pk,
        SettleSpec(1, Settled.COMMITTED, reference="note_881"),
        packet.fence,
    )
    effects.permit(house.caller, house.effect(run_id).pk, packet.fence)
    story.later(0.05)
    done = SettleSpec(
        1, Settled.COMMITTED, reference="re_5512", result=b'{"id":"re_5512","status":"settled","amount_minor":4450}'
    )
    effects.settle(house.caller, house.effect(run_id).pk, done, packet.fence)
    receipt = {"id": "re_5512", "amount_minor": 4_450}
    house.commit(packet, Next(NextKind.COMPLETE), {**found, "receipt": receipt}, code="b82d51e6c904")
    story.runs["completed"] = run_id


def _denied_then_asked(story: Story) -> None:
    """Denied with a reason; the agent asks again for less."""
    house = story.house
    _order(story, "A-20431", 22_000, status="delivered")
    story.at(30)
    wanted = state("A-20431", 22_000, "Teo Almeida", "the chair never came")
    run_id = house.ask("Refund order A-20431 for Teo Almeida", wanted, hours=40)
    story.later(50)
    house.decide(run_id, house.ivo, "deny", "Half of it was delivered and used. Ask for the missing chair only.")
    house.wake(run_id)
    packet = house.claim(run_id, "harbour-2", "7")
    story.later(1)
    house.commit(packet, Next(NextKind.GIVE_BACK, "assess"), {**wanted, "amount_minor": 11_000})
    house.wake(run_id)
    packet = house.claim(run_id, "harbour-2", "7")
    house.propose(packet, {**wanted, "amount_minor": 11_000, "reason": "one chair of two never came"}, hours=36)
    story.runs["denied"] = run_id


def _expired(story: Story) -> None:
    house = story.house
    _order(story, "A-20388", 1_200)
    story.at(28)
    run_id = house.ask("Refund order A-20388 for Ruth Okafor", state("A-20388", 1_200, "Ruth Okafor"), hours=6)
    story.runs["expired"] = run_id
    story.later(6 * 60 + 2)
    from ledger.engine import sweep

    sweep.sweep()
    house.wake(run_id)


def _lost(story: Story, task: str, number: str, minor: int, customer: str) -> UUID:
    house = story.house
    _order(story, number, minor)
    run_id = house.ask(task, state(number, minor, customer))
    story.later(12)
    house.decide(run_id, house.mara, "approve")
    house.wake(run_id)
    packet = house.claim(run_id, "harbour-2", "7")
    effects.permit(house.caller, house.effect(run_id).pk, packet.fence)
    story.later(2)
    assert leases.lapse(run_id)
    return run_id


def _look(story: Story, run_id: UUID, answer: LookAnswer, **more: Any) -> None:
    effect = story.house.effect(run_id)
    effects.look(effect.pk, Looked(answer, story.clock.now(), effect.attempt, **more))


def _handed_over(story: Story) -> None:
    """The payment service has something else under the key."""
    story.at(20)
    run_id = _lost(story, "Refund order A-20366 for Jonas Weber", "A-20366", 6_400, "Jonas Weber")
    _look(story, run_id, LookAnswer.CANNOT_TELL, cause="http-503")
    story.later(1)
    _look(
        story,
        run_id,
        LookAnswer.DIFFERS,
        cause="amount",
        evidence=b'{"id":"re_5498","amount_minor":9900,"status":"settled"}',
    )
    story.runs["blocked"] = run_id


def _settled_by_hand(story: Story, task: str, number: str, minor: int, customer: str) -> UUID:
    """A person took the handoff, and found out what became of the call."""
    house = story.house
    run_id = _lost(story, task, number, minor, customer)
    _look(story, run_id, LookAnswer.DIFFERS, cause="amount", evidence=b'{"id":"re_5480","amount_minor":310}')
    story.later(25)
    caller = house.person(house.noor)
    handoffs.own(caller, house.handoff(run_id).pk)
    effects.verdict(
        caller,
        house.effect(run_id).pk,
        EffectState.FAILED,
        "rejected",
        "The provider’s desk voided re_5480 by phone.",
        read=effects.read_now(house.effect(run_id).pk),
    )
    return run_id


def _settled_handoff(story: Story) -> None:
    story.at(15)
    story.runs["settled"] = _settled_by_hand(
        story, "Refund order A-20352 for Omar Diallo", "A-20352", 2_250, "Omar Diallo"
    )


def _closed_handoff(story: Story) -> None:
    house = story.house
    story.at(17)
    run_id = _settled_by_hand(story, "Refund order A-20340 for Lena Fischer", "A-20340", 3_100, "Lena Fischer")
    caller = house.person(house.noor)
    handoffs.close(
        caller, house.handoff(run_id).pk, handoffs.Outcome.CANCEL, "Paid by hand from the till; ticket D-118."
    )
    house.wake(run_id)
    story.runs["cancelled"] = run_id


def _moved(story: Story) -> None:
    """Approved, but the order moved before the wake: asked again."""
    house = story.house
    _order(story, "A-20455", 7_800, status="delivered", note="leave at the door")
    story.at(9)
    run_id = house.ask("Refund order A-20455 for Amal Haddad", state("A-20455", 7_800, "Amal Haddad"), hours=30)
    story.later(70)
    house.decide(run_id, house.mara, "approve", "Agreed on the phone.")
    story.shop.put("A-20455", status="returned", refunded_minor=3_000)
    house.wake(run_id)
    story.runs["moved"] = run_id


def _wire(story: Story) -> None:
    """A wire at a bank that can't be asked."""
    house = story.house
    story.at(7)
    run_id = house.start("Pay invoice 7741 of Brandt & Sons", state("7741", 128_000, "Brandt & Sons", "invoice 7741"))
    packet = house.claim(run_id, "harbour-2")
    request = b'{"amount_minor":128000,"currency":"EUR","iban":"DE02 1203 0000 0000 2020 51","invoice":"7741"}'
    wire = ProposalSpec("wire", "wires.send", "wires", "", request)
    packet = house.go_on(packet, "issue", state("7741", 128_000), wire)
    effects.permit(house.caller, house.effect(run_id, "wire").pk, packet.fence)
    effects.settle(house.caller, house.effect(run_id, "wire").pk, SettleSpec(1, Settled.UNKNOWN), packet.fence)
    story.runs["wire"] = run_id


def _unknown(story: Story) -> None:
    story.at(2)
    run_id = _lost(story, "Refund order A-20472 for Priya Nair", "A-20472", 5_650, "Priya Nair")
    for cause in ("http-503", "http-503", "timeout"):
        story.later(1.2)
        _look(story, run_id, LookAnswer.CANNOT_TELL, cause=cause)
    leases_gone = story.house.head(run_id)
    if leases_gone.status == "waking":
        story.house.wake(run_id)
    story.runs["unknown"] = run_id


def _doubted(story: Story) -> None:
    """The target says that it was done, and a person that it was not."""
    house = story.house
    story.at(1.9)
    run_id = _lost(story, "Refund order A-20474 for Tomas Lind", "A-20474", 2_990, "Tomas Lind")
    _look(story, run_id, LookAnswer.APPLIED, reference="re_7731")
    effect, story.runs["doubted"] = house.effect(run_id), run_id
    found = "The bank’s list of 30 November has no such line."
    read = effects.read_now(effect.pk)
    effects.verdict(house.person(house.noor), effect.pk, EffectState.FAILED, "confirmed_absent", found, read=read)


def _given_up(story: Story) -> None:
    """Three workers were lost over it, and its approval still holds."""
    house = story.house
    story.at(1.8)
    _order(story, "A-20476", 500)
    run_id = house.ask("Refund order A-20476 for Eva Sand", state("A-20476", 500, "Eva Sand"))
    house.decide(run_id, house.mara, "approve")
    for worker in ("harbour-1", "harbour-2", "harbour-1"):
        if house.head(run_id).status == "waking":
            house.wake(run_id)
        house.claim(run_id, worker, "7", seconds=15)
        story.later(1)
        assert leases.lapse(run_id)
    story.runs["given-up"] = run_id


def _events(story: Story) -> None:
    """Waits for an event or a time."""
    house = story.house
    story.at(1.6)
    run_id = house.start("Wait for the return of order A-20480", state("A-20480", 2_300, "Olu Adeyemi"))
    packet = house.claim(run_id, "harbour-1")
    members = (
        MemberSpec(MemberKind.EVENT, type="parcel.returned", source="warehouse", subject="A-20480"),
        MemberSpec(MemberKind.TIMER, at=timedelta(hours=5)),
    )
    wait = WaitSpec(SetMode.ANY, members, timedelta(days=14), OnDeadline.HAND_OFF)
    house.commit(packet, Next(NextKind.WAIT, "weigh", wait), state("A-20480", 2_300, "Olu Adeyemi"))
    story.runs["events"] = run_id


def _inbox(story: Story) -> None:
    """More cards: one that needs two people, one nearly over, some of everyday."""
    house = story.house
    rows = (
        ("big", "A-20490", 240_000, "Sofia Rossi", 40, "big.refund"),
        ("pending", "A-20491", 3_900, "Ines Morel", 20, "payments.refund"),
        ("soon", "A-20492", 1_750, "Karl Novak", 0.85, "payments.refund"),
        ("more", "A-20493", 980, "Mei Tanaka", 12, "payments.refund"),
    )
    for number, (name, order, minor, customer, hours, tool) in enumerate(rows):
        _order(story, order, minor * (3 if name == "big" else 1))
        story.at(0.9 - number * 0.2)
        run_id = house.ask(f"Refund order {order} for {customer}", state(order, minor, customer), hours, tool)
        story.runs[name] = run_id
        if name == "big":
            story.later(4)
            house.decide(run_id, house.mara, "approve", "Checked against the contract.")


def _given(story: Story) -> None:
    """Leave that nobody has used yet, leave that was taken back, and a request that nobody may decide."""
    house = story.house
    _order(story, "A-20494", 5_200)
    story.at(0.2)
    for name in ("approved", "revoked"):
        run_id = house.ask("Refund order A-20494 for Lea Kowalski", state("A-20494", 2_600, "Lea Kowalski"))
        story.later(2)
        house.decide(run_id, house.ivo, "approve", "One of the two is broken.")
        story.runs[name] = run_id
    revoke_grant(house.ivo, house.grant(run_id))
    wanted = state("A-20495", 900_000, "Arne Dahl", "the whole order is lost")
    _order(story, "A-20495", 900_000)
    story.runs["impossible"] = house.ask("Refund order A-20495 for Arne Dahl", wanted, 8, "board.refund")


def _silent(story: Story) -> None:
    """Its worker is silent past its lease, and no sweep has looked yet."""
    story.at(0.3)
    run_id = story.house.start("Refund order A-20496 for Hugo Laurent", state("A-20496", 4_100, "Hugo Laurent"))
    story.house.claim(run_id, "harbour-2")
    story.runs["silent"] = run_id


def _running(story: Story) -> None:
    story.at(0.02)
    run_id = story.house.start("Refund order A-20497 for Nils Berg", state("A-20497", 2_650, "Nils Berg"))
    packet = story.house.claim(run_id, "harbour-3", "7", seconds=300)
    story.later(0.5)
    story.house.commit(
        packet,
        Next(NextKind.GO_ON, "weigh"),
        {**state("A-20497", 2_650, "Nils Berg"), "photos": 2},
        code="b82d51e6c904",
    )
    story.runs["running"] = run_id


def _ready(story: Story) -> None:
    story.at(0.01)
    story.runs["ready"] = story.house.start("Refund order A-20498 for Ada Silva", state("A-20498", 1_100, "Ada Silva"))


def _unclaimed(story: Story) -> None:
    """Cleared half an hour ago, and no worker has come."""
    story.at(0.5)
    wanted = state("A-20499", 3_300, "Rosa Blum")
    story.runs["unclaimed"] = story.house.start("Refund order A-20499 for Rosa Blum", wanted)


def asked(effect_id: UUID) -> None:
    """Ask the target now, as the reconciler does."""
    reconcile.reconcile(effect_id)
