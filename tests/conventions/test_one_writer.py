"""State of the record moves only as a Change through the one writer.

The rule is read from the source: no module of `ledger` or `approvals` but those named here calls
what writes a table, or holds SQL that does. An entry needs a reason: its tables aren't moved by the
journal.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.conventions import sources

ALLOWED = {
    "ledger/services/writer.py": "the one writer",
    "ledger/services/several.py": "the one writer's statement for many streams",
    "ledger/services/identity.py": "people, memberships, agents and keys: administration",
    "ledger/models/identity.py": "Django's user manager, which the framework calls",
    "ledger/models/base.py": "the manager of every table, which refuses to write without a tenant",
    "ledger/services/keys.py": "a key's last use is one UPDATE and no entry",
    "ledger/services/leases.py": "a heartbeat is one UPDATE and no entry",
    "ledger/services/workers.py": "a worker's sign of life is no row of the record",
    "ledger/services/verifications.py": "checks of the record, and how far they got, are no rows of it",
    "ledger/tasks.py": "a cluster's sign of life is no row of the record",
    "ledger/schedules.py": "the queue's own schedules",
}
ALWAYS = frozenset(
    {"save", "create", "bulk_create", "bulk_update", "get_or_create", "update_or_create"}
    | {"asave", "acreate", "abulk_create", "abulk_update", "aget_or_create", "aupdate_or_create"}
    | {"adelete", "aupdate", "_raw_delete", "_update", "_insert", "executemany", "copy"}
)
QUERYSET = frozenset(
    {"objects", "_default_manager", "_base_manager", "across_tenants", "filter", "exclude", "all"}
    | {"using", "get_queryset", "select_for_update", "order_by", "get", "first", "last"}
)
WRITING_SQL = re.compile(
    r"\b(?:INSERT\s+(?:OR\s+\w+\s+)?INTO|REPLACE\s+INTO|DELETE\s+FROM|MERGE\s+INTO)\b"
    r"|\bUPDATE\s+(?:ONLY\s+)?[^\s;]+(?:\s+(?:AS\s+)?\w+)?\s+SET\b|\bTRUNCATE\s+(?:TABLE\b|\")",
    re.IGNORECASE,
)


def chain(node: ast.expr) -> set[str]:
    """Attribute and variable names the call's receiver is made of."""
    names: set[str] = set()
    current: ast.expr = node
    while True:
        if isinstance(current, ast.Attribute):
            names.add(current.attr)
            current = current.value
        elif isinstance(current, ast.Call):
            current = current.func
        elif isinstance(current, ast.Subscript):
            current = current.value
        else:
            break
    if isinstance(current, ast.Name):
        names.add(current.id)
    return names


def writes(node: ast.Call) -> bool:
    """Whether the call writes a table. `update` of a dict or a hash takes no bare keywords."""
    if not isinstance(node.func, ast.Attribute):
        return False
    name, receiver = node.func.attr, chain(node.func.value)
    if name in {"copy", "executemany"}:
        return bool(receiver & {"cursor", "connection"})
    if name in ALWAYS:
        return True
    if name == "update":
        return bool(receiver & QUERYSET) or (bool(node.keywords) and not node.args)
    return name == "delete" and (not node.args or bool(receiver & QUERYSET))


def prose(tree: ast.Module) -> set[int]:
    """Identities of docstring nodes, which may speak of SQL."""
    return {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def text_of(node: ast.AST) -> str:
    """A string as far as the source shows it; each field of an f-string is one word."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or "field" for part in node.values)
    return ""


def found(source: str) -> Iterator[tuple[int, str]]:
    """Line and kind of each write in `source`."""
    tree = ast.parse(source)
    docstrings = prose(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and writes(node):
            yield node.lineno, ast.unparse(node.func)
        elif id(node) not in docstrings and WRITING_SQL.search(text_of(node)):
            yield node.lineno, "SQL that writes"


def guarded() -> list[Path]:
    """Modules of the ledger and the console that must not write."""
    return [
        path
        for path in sources.product_modules()
        if path.parts[0] in {"ledger", "approvals"} and not str(path).startswith(tuple(ALLOWED))
    ]


def test_each_way_of_writing_is_found() -> None:
    ways = [
        "run.save()",
        "Run.objects.create(id=1)",
        "run.checkpoints.create(seq=1)",
        "Run.objects.filter(id=1).update(status='x')",
        "Run.objects.filter(id=1).update(**fields)",
        "rows.update(status='x')",
        "run.delete()",
        "Run.objects.bulk_create(rows)",
        "cursor.execute('INSERT INTO ledger_run VALUES (1)')",
        "cursor.execute('insert or replace into ledger_run values (1)')",
        "cursor.execute(f'UPDATE {table} SET a = 1')",
        "cursor.execute('UPDATE \"ledger_run\" AS r SET a = 1')",
        "cursor.execute('DELETE FROM ledger_run')",
    ]
    assert [way for way in ways if not list(found(way))] == []


def test_what_only_looks_like_writing_is_left_alone() -> None:
    harmless = [
        "digest.update(data)",
        "facts.update({'a': 1})",
        "storage.delete(name)",
        "'SELECT 1 FROM ledger_run_head FOR UPDATE'",
        "'CREATE TRIGGER t BEFORE UPDATE OR DELETE ON ledger_run'",
        "'''INSERT INTO in a docstring'''",
        "copy.copy(value)",
    ]
    assert [line for line in harmless if list(found(line))] == []


def test_only_the_writer_writes_tables_of_the_record() -> None:
    offences = [f"{path}:{line} {what}" for path in guarded() for line, what in found(sources.read(path))]
    assert not offences, "make it a Change and give it to ledger/services/writer.py"
