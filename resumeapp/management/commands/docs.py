"""`manage.py docs`: write what the documents take from the code. `--check` says which of them are stale."""

from __future__ import annotations

import pkgutil
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

import approvals.domain.requests
import approvals.services
import ledger.engine
import ledger.services
from ledger.domain import authority, effects, handoffs, runs, waits, wakes
from ledger.domain.machines import Machine
from ledger.models.tables import tables
from ledger.services.contracts import Contract, contracts
from resumeapp.settings import env

COMMAND: Final = "python manage.py docs"
BELOW: Final = f"<!-- What follows is written by `{COMMAND}`. -->\n"

MACHINES: Final[Sequence[tuple[str, Machine[Any], str]]] = (
    (
        "Run",
        runs.MACHINE,
        "Beside the state a run has an intent (`none`, `cancel`, `fail`). `blocked` means that it has an open handoff.",
    ),
    (
        "Effect",
        effects.MACHINE,
        "`unknown` may have happened: nothing is sent again out of it. `committed` is final; what contradicts it sets the flag *disputed*, until "
        "a person says which account holds (`held`).",
    ),
    ("Wait", waits.SET, "A set of members, `any` or `all` of which it waits for, with a deadline and an action."),
    ("Wait member", waits.MEMBER, "`met` and `closed` carry an outcome where there is one."),
    ("Wake", wakes.MACHINE, "A run has one open wake at most; its attempts are counted before the work."),
    ("Handoff", handoffs.MACHINE, "Opened by the engine; owned and closed by people."),
    (
        "Grant",
        authority.GRANT,
        "Leave for one subject. A used one covers further attempts until its use-by, or until its effect is asked for again.",
    ),
    ("Request", approvals.domain.requests.MACHINE, "A revision opens when the subject or what policy requires moved."),
)

IN_THE_JOURNAL: Final = """## In the journal
Each line of an entry is about one row. Where the row has a machine, the line says `from` where the rule that wrote it had read it to stand, also
where it stays there, and `to` where it stands now, where that was set. A row that is opened comes from nowhere: its line has no `from`. What else
moves in a row (a run's intent and fence, an effect's dispute) stands among the `fields` as it is now; what it was is in the entries before.
Verification replays a chain and names every line whose `from` isn't where the entries before it left the row (`from-differs`, `from-missing`), and
every one whose `to` isn't what it sets (`to-differs`).

These are the columns that say where a row stands:"""

ELSEWHERE: Final = {
    "RESUMEAPP_VAR": "`var` beside `manage.py`",
    "RESUMEAPP_ALLOWED_HOSTS": "none; loopback in `demo` and `test`",
    "RESUMEAPP_SECRET_KEY": "required; kept in the data directory in `demo` and `test`",
    "RESUMEAPP_HTTPS": "`true`; `false` in `demo` and `test`",
}
"""Defaults that aren't the same on every machine or in every mode."""

_PACKAGES: Final = (ledger.services, ledger.engine, approvals.services)


def state_machines(_: str) -> str:
    """The page of every machine."""
    parts = [
        "# State machines",
        f"Written by `{COMMAND}` from the tables in the code. What isn't listed is refused with `wrong-state`.",
    ]
    for title, machine, note in MACHINES:
        parts.append(f"## {title}\n{note}")
        rows = [
            (f"`{state}`", f"`{event}`", ", ".join(f"`{to}`" for to in targets))
            for state, moves in machine.table.items()
            for event, targets in moves.items()
        ]
        parts.append(table(("state", "event", "leads to"), rows))
        parts.append("Final: " + ", ".join(f"`{state}`" for state in machine.table if state in machine.final) + ".")
    parts.append(IN_THE_JOURNAL)
    columns = ((f"`{record}`", f"`{one.machine}`") for record, one in sorted(tables().items()) if one.machine)
    parts.append(table(("table", "column"), columns))
    return "\n\n".join(parts) + "\n"


def concurrency(text: str) -> str:
    """The page with the promises of every writing function below what is written by hand."""
    above = text.partition(BELOW)[0]
    pieces = [BELOW.rstrip()]
    for module, found in groupby(promises(), key=lambda contract: contract.module):
        rows = [(f"`{one.name}`", one.moves, one.twice, one.dies) for one in found]
        pieces.append(f"### `{module}`")
        pieces.append(table(("function", "moves", "if it runs twice", "if we die right after it"), rows))
    return above + "\n\n".join(pieces) + "\n"


def operations(text: str) -> str:
    """The page with every setting below what is written by hand."""
    above = text.partition(BELOW)[0]
    rows = [
        (f"`{one.name}`", one.kind, ELSEWHERE.get(one.name) or (f"`{one.default}`" if one.default else "–"), one.help)
        for one in env.settings.values()
    ]
    return above + "\n".join([BELOW, table(("variable", "kind", "default", "what it does"), rows)]) + "\n"


PAGES: Final[Mapping[str, Callable[[str], str]]] = {
    "docs/state-machines.md": state_machines,
    "docs/concurrency.md": concurrency,
    "docs/operations.md": operations,
}


def promises() -> Iterable[Contract]:
    """The promises of every module of the writing layers, module by module."""
    names = [
        found.name for package in _PACKAGES for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    order = [*names, "approvals.looks"]
    for name in order:
        import_module(name)
    return sorted((one for one in contracts() if one.module in order), key=lambda one: order.index(one.module))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def stale() -> list[Path]:
    """The pages that aren't as the code says."""
    return [path for path, text in _pages() if not path.exists() or path.read_text() != text]


def _pages() -> Iterable[tuple[Path, str]]:
    for name, write in PAGES.items():
        path = Path(settings.BASE_DIR) / name
        yield path, write(path.read_text() if path.exists() else "")


class Command(BaseCommand):
    help = "Write the documents that are made from the code: state machines, concurrency, settings."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="write nothing; fail when a page is stale")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["check"]:
            if found := stale():
                raise CommandError(f"stale: {', '.join(path.name for path in found)}. Run `{COMMAND}`.")
            return
        for path, text in _pages():
            path.write_text(text)
            self.stdout.write(str(path.relative_to(settings.BASE_DIR)))
