"""Decision forms as tests send them, and what must come back with a refusal."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.ui.asking import address
from tests.world import World

TYPED = "because <of> the photos"
WAYS = pytest.mark.parametrize("htmx", [True, False], ids=["htmx", "page"])


def text_of(answer: Any) -> str:
    text: str = answer.content.decode()
    return text


def post(client: Client, world: World, request: Any, data: dict[str, str], htmx: bool) -> Any:
    headers = {"HX-Request": "true"} if htmx else {}
    return client.post(address(world, request, "approval_decide"), data, headers=headers)


def assert_kept(answer: Any) -> None:
    assert "because &lt;of&gt; the photos</textarea>" in text_of(answer)
