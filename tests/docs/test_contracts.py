"""Every public function that writes says what it moves, what if it runs twice, and what if we die right after it."""

from __future__ import annotations

import ast
from pathlib import Path

from resumeapp.management.commands import docs
from tests.conventions import sources

LAYERS = ("ledger/services/", "ledger/engine/", "approvals/services/", "approvals/looks.py")
EXEMPT = {
    "ledger/services/writer.py": "it is what the promises are about",
    "ledger/services/administration.py": "the frame of the acts, each of which promises for itself",
}
WRITERS = {("writer", "apply"), ("writer", "settle"), ("administration", "act")}


def functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """The module's own functions by name."""
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def uses(node: ast.AST) -> set[tuple[str, str]]:
    """`module.name` pairs and bare names that stand anywhere in a function, nested ones included."""
    found = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            found.add((part.value.id, part.attr))
        elif isinstance(part, ast.Name):
            found.add(("", part.id))
    return found


def promised(node: ast.FunctionDef) -> bool:
    return any(
        isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "writes"
        for one in node.decorator_list
    )


def without_a_promise(source: str, writers: set[tuple[str, str]]) -> list[str]:
    """Public functions that write, by themselves or through private functions of the module, and promise nothing."""
    own = functions(ast.parse(source))
    writing = {name for name, node in own.items() if uses(node) & writers}
    grew = True
    while grew:
        private = {("", name) for name in writing if name.startswith("_")}
        more = {name for name, node in own.items() if uses(node) & private} - writing
        writing |= more
        grew = bool(more)
    return sorted(name for name in writing if not name.startswith("_") and not promised(own[name]))


def modules() -> list[Path]:
    return [path for path in sources.product_modules() if str(path).startswith(LAYERS) and str(path) not in EXEMPT]


def test_what_promises_nothing_is_found() -> None:
    source = (
        "def direct():\n    writer.apply(change)\n"
        "def through():\n    return _private()\n"
        "def _private():\n    def rule():\n        with administration.act(c) as d:\n            pass\n"
        "@writes(moves='a', twice='b', dies='c')\ndef good():\n    writer.settle(read, rule)\n"
        "def reads():\n    return facts.read()\n"
    )
    assert without_a_promise(source, WRITERS) == ["direct", "through"]


def test_every_function_that_writes_the_record_promises() -> None:
    found = {str(path): names for path in modules() if (names := without_a_promise(sources.read(path), WRITERS))}
    assert not found, "say it with @writes of ledger.services.contracts, truly"


def test_every_function_of_the_engine_that_uses_a_writing_service_promises() -> None:
    services = {
        (part, one.name)
        for one in docs.promises()
        for part in one.module.split(".")
        if one.module.startswith("ledger.services.")
    }
    found = {
        str(path): names
        for path in modules()
        if path.parts[1] == "engine" and (names := without_a_promise(sources.read(path), services))
    }
    assert not found


def test_every_promise_is_three_whole_sentences() -> None:
    for one in docs.promises():
        for sentence in (one.moves, one.twice, one.dies):
            assert sentence[0].isupper() or sentence.startswith("`"), one
            assert sentence.endswith("."), one
