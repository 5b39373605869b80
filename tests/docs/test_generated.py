"""What the documents take from the code is as the code says."""

from __future__ import annotations

import gc
import re
from importlib import import_module

import pytest
from django.core.management import CommandError, call_command

from ledger.domain.machines import Machine
from resumeapp.management.commands import docs
from resumeapp.settings import env
from tests.conventions import sources


def test_no_page_is_stale() -> None:
    assert docs.stale() == [], f"run: RESUMEAPP_MODE=test {docs.COMMAND}"


def test_a_stale_page_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs, "PAGES", {"docs/state-machines.md": lambda text: text + "one more line\n"})
    with pytest.raises(CommandError, match=r"state-machines\.md"):
        call_command("docs", check=True)


def test_every_machine_is_on_the_page() -> None:
    for path in sources.product_modules():
        if "domain" in path.parts and "Machine(" in sources.read(path):
            import_module(".".join(path.with_suffix("").parts))
    known = {id(machine) for _, machine, _ in docs.MACHINES}
    missing = [one.noun for one in gc.get_objects() if type(one) is Machine and id(one) not in known]
    assert missing == [], "add it to MACHINES of the docs command"


def test_every_setting_is_in_the_table() -> None:
    told = set(re.findall(r"^\| `(\w+)` \|", sources.read(sources.Path("docs/operations.md")), re.MULTILINE))
    assert told == set(env.settings)


def test_no_setting_is_read_past_the_reader() -> None:
    direct = re.compile(r"os\.environ|getenv\(")
    allowed = {"resumeapp/env.py", "manage.py", "resumeapp/wsgi.py", "resumeapp/asgi.py", "resumeapp/processes.py"}
    found = [
        str(path)
        for path in sources.product_modules()
        if path.parts[0] in {"resumeapp", "ledger", "approvals", "manage.py"} and direct.search(sources.read(path))
    ]
    assert set(found) <= allowed
