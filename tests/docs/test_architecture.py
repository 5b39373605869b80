"""What the hand-written documents name is there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.conventions import sources

DOCS = [path for path in sources.written_by_us() if path.suffix == ".md" and path.parts[0] in {"docs", "README.md"}]
ROOTS = {"domain", "models", "services", "engine", "api", "views"}
MOST_LINES = 250


def page() -> str:
    return sources.read(Path("docs/ARCHITECTURE.md"))


def test_it_can_be_read_in_one_sitting() -> None:
    assert len(page().splitlines()) <= MOST_LINES


def test_every_named_test_exists() -> None:
    tests = "\n".join(
        sources.read(path)
        for path in sources.tracked()
        if path.parts[0] in {"tests", "client"} and path.suffix == ".py"
    )
    named = {name for path in DOCS for name in re.findall(r"`(test_\w+)`", sources.read(path))}
    assert named and {name for name in named if f"def {name}(" not in tests} == set()


def test_every_invariant_names_a_test() -> None:
    section = page().split("## Invariants")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if re.match(r"\d+\. ", line)]
    assert len(lines) == 12 and all("`test_" in line for line in lines)


def test_every_named_path_exists() -> None:
    named = {
        (path, name)
        for path in DOCS
        for name in re.findall(
            r"`((?:approvals|ledger|resumeapp|client|examples|tests|docs)/[\w./-]*)`", sources.read(path)
        )
    }
    assert {(str(path), name) for path, name in named if not (sources.ROOT / name).exists()} == set()


def test_every_cell_of_the_area_table_is_a_file_of_its_layer() -> None:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page().splitlines() if line[:2] == "| "]
    head = next(row for row in rows if row[0] == "area")
    areas = rows[rows.index(head) + 2 : rows.index(head) + 14]
    assert {"identity", "checkpoint", "artifact", "effect", "wait", "authority"} < {row[0] for row in areas}
    missing = []
    for row in areas:
        for layer, cell in zip(head[1:], row[1:], strict=True):
            base = Path("approvals/views") if layer == "views" else Path("ledger") / layer
            for name in re.findall(r"`([^`]+)`", cell):
                path = Path(name) if name.startswith("approvals/") else base / name
                missing += [] if (sources.ROOT / path).exists() else [str(path)]
    assert missing == []


def test_every_link_between_documents_leads_somewhere() -> None:
    dead = [
        f"{path}: {target}"
        for path in DOCS
        for target in re.findall(r"\]\(([^)#:]+)\)", sources.read(path))
        if not (sources.ROOT / path.parent / target).exists()
    ]
    assert dead == []
