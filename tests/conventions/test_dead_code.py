"""What is defined is used. Tests alone are no use: what only they call is what the product doesn't need.

Names are compared, not bindings: a name that is also used for something else isn't found here. What is left is certain, and what stays in spite of it
is named with a reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.conventions import sources

CALLED_BY_FRAMEWORKS = re.compile(
    r"(?:Command|add_arguments|urlpatterns|handler\d+|application|(?:Ledger|Approvals|Resumeapp)Config|do_[A-Z]+|__\w+__)"
)
OFFERED = ("client/src/", "approvals/renderers/", "ledger/services/identity.py", "resumeapp/settings.py")
"""What users of the product call: the client, what a renderer may use, and administration, which has no pages yet."""
KEPT = {
    "handle_error": "examples/sandbox: of http.server",
    "version_string": "examples/sandbox: of http.server",
    "log_message": "examples/sandbox: of http.server",
    "daemon_threads": "examples/sandbox: of socketserver",
    "read_requests": "examples/sandbox: the witness that crash trials and their judge read",
    "parse_body": "of django-ninja's parser",
    "render_page": "of django-ninja's pages",
    "get_openapi_url": "of django-ninja's pages",
    "get_openapi_operation_id": "of django-ninja",
    "get_by_natural_key": "of Django's sign-in",
    "TenantHead": "a table that facts and the writer reach by its record's name",
    "EventDelivery": "a table that facts and the writer reach by its record's name",
}
KEPT_MEMBERS = {
    "CheckpointKind.MIGRATION": "the record's format; migrations aren't built",
    "DecisionKind.COMPENSATE": "the record's format; compensation isn't built",
    "DecisionKind.MIGRATE": "the record's format; migrations aren't built",
    "DecisionKind.CANCEL": "the record's format; cancelling over the API isn't built",
    "DecisionKind.EXPIRE": "the record's format; a deadline's action is a wake with an intent",
    "Verb.BREAK_GLASS": "a right that can be given; break-glass isn't built",
}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(sources.read(path))


def using() -> list[Path]:
    """Whose use counts: the product, its migrations and what measures it, but no test."""
    return [path for path in sources.written_by_us() if path.suffix == ".py" and "tests" not in path.parts]


def names(source: ast.AST) -> Iterator[str]:
    """Every name that is read, and every word of a string that is no docstring: dotted names, columns, SQL."""
    prose = {id(node.value) for node in ast.walk(source) if isinstance(node, ast.Expr)}
    for node in ast.walk(source):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield from re.findall(r"\w+", node.value)


def used() -> set[str]:
    found = {name for path in using() for name in names(tree(path))}
    return found | {name for path in templates() for name in re.findall(r"\w+", sources.read(path))}


def templates() -> list[Path]:
    return [path for path in sources.written_by_us() if path.suffix == ".html"]


def registered(node: ast.stmt) -> bool:
    """Whether a decorator gives it to somebody who calls it: a route, a transition, a signal."""
    return any(isinstance(one, ast.Call) or "." in ast.unparse(one) for one in getattr(node, "decorator_list", ()))


def defined(source: ast.Module) -> Iterator[str]:
    """Functions, classes and constants of a module, and methods of its classes."""
    bodies = [source.body, *(node.body for node in source.body if isinstance(node, ast.ClassDef))]
    for node in (one for body in bodies for one in body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if not registered(node) or any(ast.unparse(one).startswith("writes(") for one in node.decorator_list):
                yield node.name
        elif isinstance(node, ast.Assign) and node in source.body:
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def unused(source: ast.Module, use: set[str]) -> set[str]:
    return {name for name in defined(source) if name not in use and not CALLED_BY_FRAMEWORKS.fullmatch(name)}


def members(source: ast.Module) -> Iterator[str]:
    """`Class.MEMBER` of every enum of a module."""
    for node in ast.walk(source):
        if isinstance(node, ast.ClassDef) and any("Enum" in ast.unparse(base) for base in node.bases):
            for one in node.body:
                if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
                    yield f"{node.name}.{one.targets[0].id}"


def meant(source: ast.AST) -> set[str]:
    """`Class.MEMBER` wherever a member is named."""
    found = set()
    for node in ast.walk(source):
        if isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value).rsplit(".", 1)[-1]
            found.add(f"{owner}.{node.attr}")
    return found


def test_what_nobody_uses_is_found() -> None:
    source = ast.parse(
        "LIMIT = 3\n"
        "def idle(): return idle_twice\n"
        "@router.get('/x')\ndef served(): pass\n"
        "@writes(moves='A.')\ndef written(): pass\n"
        "class Row:\n    def told(self): pass\n"
    )
    assert unused(source, {"Row"}) == {"LIMIT", "idle", "written", "told"}
    assert set(members(ast.parse("class Hue(StrEnum):\n    RED = 'red'\n"))) == {"Hue.RED"}


def test_what_is_defined_is_used() -> None:
    use = used()
    dead = {
        f"{path}: {name}"
        for path in sources.product_modules()
        if not str(path).startswith(OFFERED)
        for name in unused(tree(path), use) - set(KEPT)
    }
    assert not dead, "delete it, or use it"


def test_every_member_of_an_enum_is_used() -> None:
    use = {name for path in using() for name in meant(tree(path))}
    dead = {name for path in sources.product_modules() for name in members(tree(path))} - use
    assert dead == set(KEPT_MEMBERS)


def test_every_template_is_shown() -> None:
    text = {path: sources.read(path) for path in [*using(), *templates()]}
    by_django = {"templates/403.html", "templates/500.html"}
    dead = [
        str(path)
        for path in templates()
        if str(path) not in by_django
        and not any(str(path.relative_to("templates")) in words for other, words in text.items() if other != path)
    ]
    assert not dead


def test_every_class_of_the_style_sheets_is_worn() -> None:
    scripts = [path for path in sources.written_by_us() if path.suffix == ".js"]
    worn = " ".join(sources.read(path) for path in [*using(), *templates(), *scripts])
    sheets = [path for path in sources.written_by_us() if path.suffix == ".css"]
    rules = " ".join(re.sub(r"/\*.*?\*/|url\([^)]*\)", "", sources.read(path), flags=re.DOTALL) for path in sheets)
    words = set(re.findall(r"[\w-]+", worn))
    classes = set(re.findall(r"\.([a-z][\w-]*)", rules)) - {"htmx-request"}
    # `s-…` is put together from a state's name.
    assert sheets and {name for name in classes if name.removeprefix("s-") not in words} == set()


def test_every_picture_is_shown() -> None:
    shown = " ".join(sources.read(path) for path in sources.written_by_us() if path.suffix in {".html", ".css", ".py"})
    pictures = [path for path in (sources.ROOT / "static" / "img").iterdir() if path.is_file()]
    assert pictures and [path.name for path in pictures if path.name not in shown] == []
