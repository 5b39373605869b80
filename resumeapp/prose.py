"""Our own documents as pages: markdown-it renders them, in the console's pieces, and lets no HTML through.

Not for texts of agents or people, which are shown as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import slugify
from markdown_it import MarkdownIt
from markdown_it.token import Token


class Heading(NamedTuple):
    """A heading's text, and the id that leads to it."""

    text: str
    anchor: str


class Page(NamedTuple):
    """A document: its title, its parts in order, and all below the title as HTML."""

    title: str
    heads: list[Heading]
    body: SafeString


_READER: Final = MarkdownIt("commonmark", {"html": False}).enable("table")
_ATTRIBUTES: Final = {
    "table_open": ("class", "table"),
    "th_open": ("scope", "col"),
    "bullet_list_open": ("class", "stack stack-2"),
}
"""What the console's tables and lists have."""


def _pieces(tokens: Sequence[Token]) -> Iterator[Token]:
    """The same document in the console's pieces: tables and code in boxes of their own."""
    for token in tokens:
        if token.type in _ATTRIBUTES:
            token.attrSet(*_ATTRIBUTES[token.type])
        if token.type == "inline":
            token.children = list(_links(token.children or []))
        if token.type == "fence":
            yield _html(format_html('<div class="bounded"><pre>{}</pre></div>\n', token.content.rstrip("\n")))
            continue
        if token.type == "table_open":
            yield _html('<div class="table-wrap">')
        yield token
        if token.type == "table_close":
            yield _html("</div>")


def _links(tokens: Sequence[Token]) -> Iterator[Token]:
    """A line, in which a document beside this one in the repository is named: nobody serves it."""
    beside = ""
    for token in tokens:
        address = str(token.attrs.get("href", ""))
        if token.type == "link_open" and address.endswith(".md"):
            beside = address
        elif token.type == "link_close" and beside:
            yield _html(format_html(" (<code>docs/{}</code>)", beside))
            beside = ""
        else:
            yield token


def _html(content: str) -> Token:
    return Token("html_block", "", 0, content=content)


def page(text: str) -> Page:
    """A document that begins with its title."""
    tokens = list(_pieces(_READER.parse(text)))
    heads = []
    for opened, inside in pairwise(tokens):
        if opened.type == "heading_open":
            head = Heading(inside.content, slugify(inside.content))
            opened.attrSet("id", head.anchor)
            heads += [head] if opened.tag == "h2" else []
    body = _READER.renderer.render(tokens[3:], _READER.options, {})
    return Page(tokens[1].content, heads, SafeString(body))  # our own text, without HTML


def line(text: str) -> SafeString:
    """A line with its code, strong words and links; all else is escaped."""
    html = _READER.renderer.render(list(_pieces(_READER.parseInline(text))), _READER.options, {})
    return SafeString(html)  # HTML in it is escaped
