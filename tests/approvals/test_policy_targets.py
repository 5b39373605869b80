"""A tool's name is the agent's own word: a rule may name the target that is acted on, whatever the agent calls its tool."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.domain.authority import PolicyRow, Verdict, read_rules, requirement
from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import ProposalSpec
from ledger.domain.errors import LedgerError
from ledger.engine import wakes
from ledger.models import Permit
from ledger.services import authority, effects
from tests.documents import REQUEST
from tests.domain.effect_facts import uid
from tests.world import World

MONEY: dict[str, Any] = {"tool": "*", "target": "payments", "verdict": "approve", "group": "approvers"}
NOTES: dict[str, Any] = {"tool": "notes.*", "verdict": "allow"}


def policy(*rules: dict[str, Any]) -> PolicyRow:
    return PolicyRow(uid(1), 1, list(rules), bytes(32))


def test_a_payment_under_the_name_of_a_harmless_tool_still_needs_a_person(world: World) -> None:
    authority.publish_policy(world.admin, [MONEY, NOTES])
    packet = world.claimed_run()
    disguised = ProposalSpec("note", "notes.add", "payments", "", REQUEST)
    world.commit(packet, Next(NextKind.GO_ON, "issue"), propose=(disguised,))
    wakes.run(packet.run.id)
    assert world.head(packet.run.id).status == "waiting"
    effect = world.effect(packet.run.id, "note")
    with pytest.raises(LedgerError):
        effects.permit(world.caller, effect.pk, packet.fence)
    assert not Permit.objects.of(world.tenant).filter(effect_id=effect.pk).exists()


def test_a_rule_with_a_target_matches_that_target_alone_and_one_without_any() -> None:
    rules = policy(MONEY, NOTES)
    assert requirement(rules, "notes.add", "payments").verdict is Verdict.APPROVE
    assert requirement(rules, "notes.add", "notes").verdict is Verdict.ALLOW
    assert requirement(rules, "wires.send", "wires").verdict is Verdict.DENY
    denied = policy({"tool": "*", "target": "pay*", "verdict": "deny"}, {"tool": "*", "verdict": "allow"})
    assert requirement(denied, "anything", "payments").verdict is Verdict.DENY


@pytest.mark.parametrize("target", ["", 7, None, "x" * 81])
def test_a_rule_s_target_is_a_name_or_a_pattern(target: object) -> None:
    with pytest.raises(LedgerError, match="invalid"):
        read_rules([{"tool": "*", "verdict": "allow", "target": target}])


def test_a_rule_that_was_stored_before_rules_knew_targets_matches_all_of_them() -> None:
    assert requirement(policy(NOTES), "notes.add", "payments").verdict is Verdict.ALLOW
