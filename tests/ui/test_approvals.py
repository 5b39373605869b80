"""The approval card: who sees what, what every refusal says and keeps, and what a decision does."""

from tests.ui.asking import address, ask, client_of, decide, form_of, votes
from tests.world import World


def test_the_card_is_shown_and_approved(world: World) -> None:
    request = ask(world, order={"total": 4200, "status": "paid"})
    alice = client_of(world.alice)
    page = alice.get(address(world, request)).content.decode()
    assert "Refund 42.00 EUR to the customer of order 17 at payments" in page
    assert form_of(page)
    answer = decide(alice, world, request, "approve", "fine", htmx=True)
    assert answer.status_code == 200, answer.content.decode()[:3000]
    assert votes(request) == [(world.alice.pk, "approve")]
    assert client_of(world.alice).get(address(world, request)).status_code == 200
    inbox = alice.get(f"/t/{world.tenant.slug}/inbox/")
    assert inbox.status_code == 200
