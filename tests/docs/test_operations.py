"""The page for operators: its first tenant is set up as written."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from approvals.renderers import Asked, Difference, registry, words_for
from ledger.domain.identity import Verb
from ledger.models import Tenant, User
from ledger.services import keys, permissions
from tests.conventions import sources


def test_the_first_tenant_is_set_up_as_written(committed: None) -> None:
    page = sources.read(Path("docs/operations.md"))
    found = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert found is not None
    exec(re.sub(r"(?m)^   ", "", found[1]), {})
    command = re.search(r"`python manage\.py (create_key [^`]*)`", page)
    assert command is not None
    out = StringIO()
    call_command(*command[1].split(), stdout=out)
    caller = keys.authenticate(f"Bearer {out.getvalue().strip()}")
    tenant = Tenant.objects.get(slug="acme")
    assert caller.tenant_id == tenant.pk
    ada = User.objects.get(email="ada@acme.example")
    asked = re.findall(r"(?m)^   python manage\.py (rights .*)$", page)
    assert len(asked) == 3
    for line in asked:
        call_command(*line.split(), stdout=out)
    assert [verb for verb in Verb if permissions.can(ada, verb, tenant)] == [Verb.APPROVE, Verb.ADMINISTER]
    assert "is given see_payloads" in out.getvalue() and "Nothing was changed" in out.getvalue()


def test_the_example_of_a_renderer_registers_and_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", [*registry._registered])
    page = sources.read(Path("docs/operations.md")).partition("## Renderers for your tools")[2]
    found = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert found is not None
    exec(found[1], {})
    told = words_for(Asked("crates.ship", "depot", "crate/9", {"crate": "9"}, {"place": "quay"}))
    assert (told.headline, told.renderer, told.note) == ("Ship crate 9 from depot", "crates.*/1", "")
    assert told.differences == (Difference("Where it stands", "quay", "on its way"),)
    assert words_for(Asked("crates.ship", "depot", "crate/9", {})).renderer == "default/1"
