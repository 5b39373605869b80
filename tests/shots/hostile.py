"""A tenant in which outsiders send the worst text that they can."""

from __future__ import annotations

from ledger.domain.effects import LookAnswer
from ledger.services import effects, leases
from ledger.services.effects import Looked
from tests.shots.scenes import WORST, Story, state


def hostile(story: Story) -> None:
    """The same pages with the worst text that outsiders can send."""
    house = story.house
    story.shop.put("H-1", **{"order": "H-1", "note": WORST, "W" * 60: "x" * 400, "total_minor": 2**53 - 1})
    wanted = {**state("H-1", 4_200, WORST, WORST), "W" * 60: {"deep": [WORST, {"deeper": WORST}]}}
    story.at(3)
    run_id = house.ask(WORST, wanted, **{"text": WORST * 12, "W" * 40: WORST[:200]})
    story.runs["pending"] = run_id
    story.at(2.5)
    lost = house.ask(f"{WORST} 2", wanted)
    story.later(1)
    house.decide(lost, house.mara, "approve", WORST)
    house.wake(lost)
    packet = house.claim(lost, "w" * 80, "7")
    effects.permit(house.caller, house.effect(lost).pk, packet.fence)
    story.later(2)
    leases.lapse(lost)
    evidence = ('{"answer":"' + "<script>alert(2)</script>" * 40 + '"}').encode()
    effect = house.effect(lost)
    found = Looked(LookAnswer.DIFFERS, story.clock.now(), effect.attempt, "r" * 120, "amount", evidence)
    effects.look(effect.pk, found)
    story.runs["blocked"] = lost
    story.at(0.01)
    story.clock.set(0)
