"""The design system's promises that can be computed from its files."""

import hashlib
import itertools
import json
import re
from pathlib import Path

import pytest
from django.conf import settings

from tests.conventions import sources

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "static"
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
TOKENS = (STATIC / "css/tokens.css").read_text()
TONES = ("neutral", "blue", "teal", "green", "amber", "red", "violet")
GROUNDS = ("bg", "surface", "raised", "sunken", "hover")
TEXT_PAIRS = [
    *itertools.product(("ink", "ink-2", "ink-3", "accent"), GROUNDS),
    *itertools.product(TONES, ("surface", "raised", "hover")),
    *((text, f"{tone}-bg") for tone in TONES for text in (tone, "ink", "ink-2")),
    *(("on-fill", fill) for fill in ("accent-fill", "accent-fill-hover")),
]
EDGE_PAIRS = list(itertools.product(("line-strong", "focus"), ("bg", "surface", "sunken")))


def themes() -> list[dict[str, str]]:
    """Colour tokens by name, once for light and once for dark."""
    found = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", TOKENS)
    return [{"on-fill": "#ffffff"} | {row[0]: row[i] for row in found} for i in (1, 2)]


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2.2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast ratio as WCAG 2.2 defines it, 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", themes(), ids=("light", "dark"))
def test_text_below_the_contrast_of_wcag_aa_is_refused_in_both_themes(theme: dict[str, str]) -> None:
    low = [pair for pair in TEXT_PAIRS if contrast(theme[pair[0]], theme[pair[1]]) < 4.5]
    assert not low, f"contrast under 4.5:1: {low}"
    low = [pair for pair in EDGE_PAIRS if contrast(theme[pair[0]], theme[pair[1]]) < 3]
    assert not low, f"contrast of an edge or focus ring under 3:1: {low}"


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_with_inline_script_style_or_handler_is_refused(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style\b|\sstyle=|\son\w+=\"|javascript:|\|safe\b", text)


def test_the_htmx_configuration_parses_and_says_what_each_status_does() -> None:
    text = (ROOT / "templates/partials/_htmx_config.html").read_text()
    match = re.search(r"content='([^']*)'", text)
    assert match
    config = json.loads(match[1])
    for switch in ("allowEval", "allowScriptTags", "includeIndicatorStyles"):
        assert config[switch] is False
    assert config["selfRequestsOnly"] is True
    assert config["historyCacheSize"] == 0

    def swaps(status: int) -> bool:
        rule = next(rule for rule in config["responseHandling"] if re.search(rule["code"], str(status)))
        return bool(rule["swap"])

    assert [s for s in (204, 401, 429, 500, 503) if swaps(s)] == []
    assert all(swaps(s) for s in (200, 403, 404, 409, 410, 412, 422, 428))


def test_the_script_that_sends_forms_reads_the_cookie_that_the_settings_name() -> None:
    assert settings.CSRF_COOKIE_NAME in (STATIC / "js/csrf.js").read_text()
    assert settings.CSRF_COOKIE_HTTPONLY is False


def test_every_icon_that_a_template_or_a_state_names_is_in_the_sprite() -> None:
    symbols = set(re.findall(r'<symbol id="([\w-]+)"', (STATIC / "img/icons.svg").read_text()))
    text = "".join(path.read_text() for path in TEMPLATES)
    named = set(re.findall(r'_icon\.html" with name="([\w-]+)"', text))
    states = set(re.findall(r"\.(s-\w+)", TOKENS))
    assert named | states <= symbols


def test_vendored_files_are_the_ones_their_readme_sums() -> None:
    readme = (STATIC / "vendor/README.md").read_text()
    rows = re.findall(r"^\| `([\w./-]+)`.*`([0-9a-f]{64})`", readme, re.M)
    assert rows
    for name, digest in rows:
        assert hashlib.sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == digest
    scripts = {path.name for path in (STATIC / "vendor").glob("*.js")}
    assert scripts <= {name for name, _ in rows}


def test_the_style_sheets_stay_small_enough_to_be_known_by_heart() -> None:
    sizes = {path.name: path.stat().st_size for path in (STATIC / "css").glob("*.css")}
    assert sum(sizes.values()) <= 25_600, f"share a rule instead of repeating it: {sizes}"


def test_no_style_is_kept_that_nothing_wears() -> None:
    """States are worn by their names in the record; everything else stands in a template or a script."""
    styles = "".join(path.read_text() for path in (STATIC / "css").glob("*.css"))
    worn = "".join(path.read_text() for path in (*TEMPLATES, *(STATIC / "js").glob("*.js")))
    names = set(re.findall(r"\.([a-z][\w-]*)", re.sub(r"/\*.*?\*/", "", styles, flags=re.S)))
    unworn = {name for name in names if not name.startswith("s-") and not re.search(rf"\b{re.escape(name)}\b", worn)}
    # htmx puts the first on what asks; tones are named with the colour that a piece is told.
    assert unworn <= {"htmx-request", "tone-blue", "tone-teal"}


def test_no_page_holds_a_connection_open() -> None:
    """Live parts poll: nothing breaks where a proxy blocks or buffers streams, and no tab keeps one of a browser's few connections."""
    ours = [path for path in sources.written_by_us() if path.parts[0] in {"approvals", "static", "templates"}]
    streams = re.compile(r"EventSource|WebSocket|event-stream|hx-ext|sse-connect")
    assert ours and not [str(path) for path in ours if streams.search(sources.read(path))]
