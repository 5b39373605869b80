"""Who asks for rows of every tenant at once is named here, with a reason. What is due comes by `facts.read`, whose rows name their tenant."""

from __future__ import annotations

import ast
from collections import Counter

from tests.conventions import sources

ACROSS = frozenset({"across_tenants", "plain", "_base_manager"})
"""What answers rows without being told a tenant."""
ALLOWED = {
    "approvals/services/decisions.py": (1, "a request is found by its id among what the person may see, in whichever tenant"),
    "approvals/services/requests.py": (1, "the sweep's pass over overdue requests, which the engine calls by a hook"),
    "approvals/views/access.py": (1, "which tenants a person who just signed in belongs to"),
    "ledger/services/authority.py": (1, "a grant is found by its id; who may not see its run is told that it isn't there"),
    "ledger/services/identity.py": (1, "a person is deactivated in each of their tenants"),
    "ledger/services/verifications.py": (4, "checks are advanced by the queue, which knows their ids alone"),
    "ledger/services/permissions.py": (2, "a person's rights and memberships, which callers narrow to a tenant"),
}  # fmt: skip


def uses(source: str) -> list[int]:
    """Lines at which rows are asked for without a tenant: `across_tenants`, or a manager that doesn't refuse."""
    return sorted(
        node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute) and _across(node)
    )


def _across(node: ast.Attribute) -> bool:
    # Models are classes: `canonical.plain` is a function of that name.
    of_a_model = ast.unparse(node.value).rsplit(".", 1)[-1][0].isupper()
    return node.attr in ACROSS and (node.attr != "plain" or of_a_model)


def test_each_way_of_asking_without_a_tenant_is_found() -> None:
    ways = [
        "Run.objects.across_tenants().filter(pk=1)",
        "rows = Run.objects.all().across_tenants",
        "Run.plain.filter(pk=1)",
        "rows = Run.plain",
        "models.Run.plain.get()",
        "Run._base_manager.all()",
        "type(row)._base_manager",
    ]
    assert [way for way in ways if not uses(way)] == []


def test_what_names_its_tenant_is_left_alone() -> None:
    assert [line for line in ("Run.objects.of(tenant)", "plain(row)", "canonical.plain(row)") if uses(line)] == []


def test_only_who_is_named_asks_for_every_tenants_rows() -> None:
    found = Counter(
        {str(path): len(lines) for path in sources.product_modules() if (lines := uses(sources.read(path)))}
    )
    allowed = Counter({path: count for path, (count, _) in ALLOWED.items()})
    assert found == allowed, "say .of(tenant); or give the reason here, and take away what is no longer asked"
