"""`make shots` takes each picture of its manifest, and says which page, rule and element axe-core refuses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.urls import reverse
from playwright.sync_api import Browser, Page

from tests.conventions import sources
from tests.shots import sheet, stage
from tests.shots.catalogue import Shot
from tests.shots.taking import take

pytestmark = pytest.mark.browser


def spoiled(page: Page) -> None:
    """A field whose label is gone."""
    page.evaluate("document.querySelector('label[for=id_password]').remove()")


def widened(page: Page) -> None:
    """Something on the page that is too wide for a phone."""
    page.evaluate(
        "document.querySelector('main').insertAdjacentHTML('beforeend', '<svg id=wide width=900 height=1></svg>')"
    )
    page.evaluate("document.getElementById('wide').style.maxWidth = 'none'")


def test_what_axe_refuses_and_what_is_too_wide_is_told_with_page_rule_and_element(
    chromium: Browser, server: str, committed: None, tmp_path: Path
) -> None:
    context, sign_in = stage.window(chromium, server), reverse("sign_in")
    assert not take(context, Shot("sign-in", "empty", sign_in, None), server, tmp_path)
    told = take(context, Shot("sign-in", "spoiled", sign_in, None, spoiled), server, tmp_path)
    assert len(told) == len(stage.THEMES) * len(stage.CHECKED)
    assert all(": label: #id_password <input" in line and line.startswith("sign-in-spoiled-") for line in told)
    told = take(context, Shot("sign-in", "wide", sign_in, None, widened), server, tmp_path)
    context.close()
    assert told and all("-360.png: scrolls sideways" in line for line in told)


def test_every_page_and_state_of_the_manifest_is_staged_and_pictured_in_each_theme_and_width(tmp_path: Path) -> None:
    settings = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    asked = [sys.executable, "-m", "tests.shots", "--only", "card-deciding", "--to", str(tmp_path)]
    told = subprocess.run(asked, cwd=sources.ROOT, env=settings, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    wanted = {sheet.picture("card-deciding", theme, width) for theme in stage.THEMES for width in stage.WIDTHS}
    assert {path.name for path in tmp_path.iterdir()} == wanted
