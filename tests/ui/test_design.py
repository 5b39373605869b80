"""The design system's own page: who reaches it, and that it can't say anything else than the files that browsers get."""

from __future__ import annotations

import html
import re
from pathlib import Path

from django.urls import reverse

from approvals.views import design
from tests.ui.asking import client_of
from tests.world import World

STATIC = Path(__file__).resolve().parents[2] / "static"


def address(world: World) -> str:
    return reverse("design", args=[world.tenant.slug])


def test_only_members_reach_it(world: World) -> None:
    assert client_of(World().alice).get(address(world)).status_code == 404
    assert client_of(world.alice).post(address(world)).status_code == 405


def test_every_member_may_open_it_and_nobody_s_menu_offers_it(world: World) -> None:
    for person in (world.alice, world.charlie, world.dora, world.person("nobody")):
        page = client_of(person).get(reverse("inbox", args=[world.tenant.slug])).content.decode()
        assert f'href="{address(world)}"' not in page
        assert client_of(person).get(address(world)).status_code == 200


def test_it_shows_every_colour_length_icon_and_state_that_the_files_declare(world: World) -> None:
    page = html.unescape(client_of(world.alice).get(address(world)).content.decode())
    tokens = (STATIC / "css/tokens.css").read_text()
    colours = re.findall(r"--([\w-]+): light-dark\(", tokens)
    icons = re.findall(r'<symbol id="([\w-]+)"', (STATIC / "img/icons.svg").read_text())
    lengths = re.findall(r"--(t-\w+|[sr]\d): [\d.]+(?:rem|px);", tokens)
    assert len(colours) >= 28 and len(icons) > 60 and len(lengths) > 10
    for name in (*colours, *lengths):
        assert f"--{name}<" in page or f"--{name} <" in page, name
    for name in icons:
        assert f">{name}<" in page, name
    for state in (state for group in design.STATES for state in group):
        assert f'class="badge s-{state}"' in page
