"""Every verb that an entry may carry has its words for people, and no words are kept for a verb that nothing writes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from approvals.domain.requests import Choice
from approvals.labels import VERBS
from tests.conventions import sources

WRITERS = ("ledger/services/", "ledger/engine/", "approvals/services/", "approvals/looks.py")
FRAMES = frozenset({"Draft", "run_draft", "head_draft", "draft_of", "act", "_act", "_swept"})
"""What takes the verb of an entry."""
VERB = re.compile(r"[a-z]+\.[a-z_]+")
CHOSEN = {"request.": [f"request.{choice}" for choice in Choice]}
"""Verbs of which the second half is said by whoever decides, by their beginning."""


def verbs(tree: ast.AST) -> Iterator[str]:
    """The verbs that a module hands to a draft, or to a variable of that name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) in FRAMES:
            for value in (*node.args, *(keyword.value for keyword in node.keywords)):
                yield from _said(value)
        elif isinstance(node, ast.Assign) and [_name(target) for target in node.targets] == ["verb"]:
            yield from _said(node.value)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _said(value: ast.expr) -> Iterator[str]:
    if isinstance(value, ast.IfExp):
        yield from _said(value.body)
        yield from _said(value.orelse)
    elif isinstance(value, ast.Constant) and isinstance(value.value, str) and VERB.fullmatch(value.value):
        yield value.value
    elif isinstance(value, ast.JoinedStr) and isinstance(value.values[0], ast.Constant):
        yield from CHOSEN.get(str(value.values[0].value), [])


def written() -> set[str]:
    modules = [path for path in sources.product_modules() if str(path).startswith(WRITERS)]
    return {verb for path in modules for verb in verbs(ast.parse(sources.read(path)))}


def test_a_verb_is_found_wherever_it_is_handed_over() -> None:
    source = (
        "draft = run_draft(view, actor, 'a.one')\n"
        "with administration.act(caller, 'a.two') as draft: pass\n"
        "Draft(stream=s, verb='a.three', mint=m)\n"
        "verb = 'a.four' if active else 'a.five'\n"
        "head_draft(head, now, who, f'request.{choice}')\n"
        "text = 'a.word'\n"
    )
    assert set(verbs(ast.parse(source))) == {"a.one", "a.two", "a.three", "a.four", "a.five", *CHOSEN["request."]}


def test_the_verbs_that_have_words_are_those_that_are_written() -> None:
    assert written() == VERBS.keys()
