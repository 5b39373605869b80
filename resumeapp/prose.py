"""Our own documents as pages. A subset of Markdown: headings, paragraphs, lists, tables, fenced code; in a line code, strong and links.

Not for texts of agents or people, which are shown as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import slugify

_SPAN = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)]+)\)")
_FENCE = re.compile(r"```(\w*)\n(.*?)\n```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One block: `kind` is h1, h2, h3, p, ul, table or code; `lines` are its text, its items or, of a table, its rows' cells."""

    kind: str
    text: str = ""
    lines: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        """The id of a heading."""
        return slugify(self.text)


def blocks(text: str) -> list[Block]:
    """A document's blocks in order."""
    found: list[Block] = []
    at = 0
    for fence in _FENCE.finditer(text):
        found += _plain(text[at : fence.start()])
        found.append(Block("code", fence[2]))
        at = fence.end()
    return [*found, *_plain(text[at:])]


def line(text: str) -> SafeString:
    """A line with its code, strong words and links; all else is escaped."""
    parts: list[SafeString] = []
    at = 0
    for span in _SPAN.finditer(text):
        parts += [format_html("{}", text[at : span.start()]), _span(span)]
        at = span.end()
    return format_html_join("", "{}", ((part,) for part in [*parts, format_html("{}", text[at:])]))


def _span(span: re.Match[str]) -> SafeString:
    code, strong, label, address = span.groups()
    if code:
        return format_html("<code>{}</code>", code)
    if strong:
        return format_html("<strong>{}</strong>", line(strong))
    if address.endswith(".md"):  # a document beside this one in the repository: nobody serves it
        return format_html("{} (<code>docs/{}</code>)", line(label), address)
    return format_html('<a href="{}">{}</a>', address, line(label))


def _plain(text: str) -> Iterator[Block]:
    for blank, group in groupby(text.split("\n"), key=lambda each: not each.strip()):
        if not blank:
            yield from _paragraph(list(group))


def _paragraph(lines: list[str]) -> Iterator[Block]:
    first = lines[0]
    if heading := re.match(r"(#{1,3}) (.*)", first):
        yield Block(f"h{len(heading[1])}", heading[2])
        if lines[1:]:
            yield from _paragraph(lines[1:])
    elif first.startswith("|"):
        rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", each)[1:-1]] for each in lines]
        yield Block("table", lines=rows[0], rows=rows[2:])
    elif first.startswith("- "):
        yield Block("ul", lines=[" ".join(item.split()) for item in re.split(r"(?m)^- ", "\n".join(lines))[1:]])
    else:
        yield Block("p", " ".join(each.strip() for each in lines))
