"""The inbox and the card in a real browser, with and without JavaScript."""

import pytest

from tests.browser.conftest import Opened
from tests.ui.asking import address, ask
from tests.world import World

pytestmark = pytest.mark.browser


def test_look(world: World, open_page: Opened) -> None:
    request = ask(world, order={"total_minor": 4200, "status": "paid", "customer": "Eve"})
    for width in (1440, 360):
        for dark in (False, True):
            page = open_page(world.alice, width=width, dark=dark)
            for name, url in (("inbox", f"/t/{world.tenant.slug}/inbox/"), ("card", address(world, request))):
                page.goto(url)
                page.screenshot(
                    path=f"/tmp/desk-shots/{name}-{width}-{'dark' if dark else 'light'}.png", full_page=True
                )
