from django.urls import reverse
from tests.clock import Clock
from tests.ui.asking import ask, client_of
from tests.ui.scenes import approved, completed, handed_over, lost
from tests.world import World


def test_all(world: World, clock: Clock) -> None:
    ask(world)
    completed(world)
    h = handed_over(world, clock)
    e = lost(world, clock)
    c = client_of(world.charlie)
    approved(world)
    s = world.tenant.slug
    for name, args in [
        ("runs", []),
        ("run", [e.run_id]),
        ("run", [h.run_id]),
        ("reconcile", []),
        ("effect", [e.pk]),
        ("handoffs", []),
        ("handoff", [h.pk]),
    ]:
        r = c.get(reverse(name, args=[s, *args]))
        assert r.status_code == 200, (name, r.content[:2000])
    r = client_of(world.dora).get(reverse("history", args=[s]))
    assert r.status_code == 200
