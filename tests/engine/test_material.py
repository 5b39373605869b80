"""Targets that say which fields of a resource matter: another version voids what a person approved only where one of these moved."""

from __future__ import annotations

import pytest

from approvals.models import ApprovalRequest
from ledger.domain.effects import SeenVersion
from ledger.domain.errors import LedgerError
from ledger.engine import observe, proposals
from ledger.models import Effect, Permit
from ledger.services import effects, verify
from ledger.services.packets import Packet
from ledger.services.views import run_view
from tests.clock import Clock
from tests.engine.waking import approval, asking, check, claim, commit, pay, say, wake
from tests.shop import Shop, register
from tests.world import World

ORDER = {"amount_minor": 1500, "to": "Ada", "note": "leave at the door"}


@pytest.fixture
def shop(world: World, shop: Shop) -> Shop:
    """A shop in whose orders amount and receiver matter."""
    shop.order = dict(ORDER)
    register(world, shop, "payments", ("/amount_minor", "/to"))
    return shop


def moves(shop: Shop, version: str, **fields: object) -> None:
    """Somebody edits every order."""
    shop.version, shop.order = version, {**shop.order, **fields}


def approved(world: World) -> Effect:
    """A payment on the order, with leave of a person."""
    run_id = asking(world, proposal=pay("payments"))
    say(world, world.alice, run_id)
    return world.effect(run_id)


def test_an_edit_that_does_not_matter_voids_nothing_and_the_call_is_bound_to_the_version_after_it(
    world: World, shop: Shop, clock: Clock
) -> None:
    effect = approved(world)
    moves(shop, "2", note="ring twice")
    decision = wake(world, effect.run_id)
    found = check(world, decision, "target")
    assert (decision.decision, found.answer, found.reason) == ("resume", "pass", "immaterial")
    assert (found.recorded, found.observed) == ('"1"', '"2"')
    packet = claim(world, effect.run_id)
    assert proposals.permit(world.caller, effect.pk, packet.fence).precondition == '"2"'
    assert Permit.objects.of(world.tenant).get(effect=effect).precondition == '"2"'
    after = world.effect(effect.run_id)
    assert (after.observed_version, bytes(after.subject_digest)) == ('"1"', bytes(effect.subject_digest))


def test_an_edit_that_matters_is_named_and_asked_about_again(world: World, shop: Shop) -> None:
    effect = approved(world)
    moves(shop, "2", amount_minor=1600, note="ring twice")
    decision = wake(world, effect.run_id)
    found = check(world, decision, "target")
    assert (decision.decision, found.answer, found.observed) == ("ask_again", "changed", '"2" /amount_minor')
    assert world.effect(effect.run_id).observed_version == '"2"'
    assert ApprovalRequest.objects.of(world.tenant).get(run=effect.run_id).revision == 2


def cleared(world: World) -> tuple[Effect, Packet]:
    """The same, with its run in a worker's hands."""
    effect = approved(world)
    assert wake(world, effect.run_id).decision == "resume"
    return effect, claim(world, effect.run_id)


def looked(effect: Effect) -> SeenVersion:
    """How the order looks now."""
    seen = observe.seen_version(run_view(effect.run_id).targets[effect.target_id], effect.resource)
    assert seen is not None
    return seen


def test_a_permit_tells_both_kinds_of_edit_apart_too(world: World, shop: Shop, clock: Clock) -> None:
    kept, voided = [cleared(world) for _ in range(2)]
    clock.shift(1)
    moves(shop, "2", note="ring twice")
    assert effects.permit(world.caller, kept[0].pk, kept[1].fence, looked(kept[0])).precondition == '"2"'
    moves(shop, "3", to="Bob")
    with pytest.raises(LedgerError, match="changed") as refused:
        effects.permit(world.caller, voided[0].pk, voided[1].fence, looked(voided[0]))
    assert refused.value.facts["fields"] == ["/to"]
    assert world.head(voided[0].run_id).status == "waking"
    assert verify.run(kept[0].run_id).intact and verify.run(voided[0].run_id).intact


def test_an_order_without_the_fields_that_matter_is_not_taken_for_seen(world: World, shop: Shop) -> None:
    effect = approved(world)
    shop.version, shop.order = "2", {"note": "moved to the archive"}
    decision = wake(world, effect.run_id)
    assert (decision.decision, check(world, decision, "target").reason) == ("retry_later", "no-material")
    with pytest.raises(LedgerError, match="target-unreachable"):
        commit(world, world.claimed_run(), approval(), pay("payments"))


def test_every_version_counts_again_once_the_target_names_no_fields(world: World, shop: Shop) -> None:
    effect = approved(world)
    register(world, shop, "payments")
    moves(shop, "2", note="ring twice")
    assert wake(world, effect.run_id).decision == "ask_again"
