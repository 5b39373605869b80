"""The contact sheet: one row a page and state, its pictures beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from tests.shots.stage import THEMES, WIDTHS

STYLE = (
    "body{font:14px system-ui;margin:24px;background:#888} section{margin-bottom:40px} h2{margin:0 0 8px}"
    ".row{display:flex;gap:12px;align-items:flex-start} img{border:1px solid #444;max-height:900px;object-fit:cover;object-position:top}"
    "img.w1920{width:720px} img.w1440{width:540px} img.w360{width:220px} nav{columns:5}"
)


def write(folder: Path, names: Sequence[str]) -> None:
    """Write `index.html` beside the pictures."""
    contents = "".join(f'<a href="#{escape(name)}">{escape(name)}</a><br>' for name in names)
    rows = "".join(_row(name) for name in names)
    (folder / "index.html").write_text(
        f"<!doctype html><meta charset=utf-8><title>Every page</title><style>{STYLE}</style><nav>{contents}</nav>{rows}",
        encoding="utf-8",
    )


def picture(name: str, theme: str, width: int) -> str:
    """The file name of one picture."""
    return f"{name}-{theme}-{width}.png"


def _row(name: str) -> str:
    files = [(picture(name, theme, width), width) for theme in THEMES for width in WIDTHS]
    images = "".join(
        f'<a href="{file}"><img class=w{width} loading=lazy src="{file}" alt="{file}"></a>' for file, width in files
    )
    return f'<section id="{escape(name)}"><h2>{escape(name)}</h2><div class=row>{images}</div></section>'
