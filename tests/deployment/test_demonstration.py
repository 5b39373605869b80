"""The demonstration's tenant: whole or not there at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from ledger.domain.errors import LedgerError
from ledger.models import Tenant, User
from resumeapp import demonstration


class Killed(Exception):
    """The process ends here."""


def killed_at_the_key(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
    if "ledger_api_key" in sql and "INSERT" in sql:
        raise Killed
    return execute(sql, params, many, context)


def test_who_is_killed_while_it_is_made_starts_again_and_finds_it_the_third_time(
    committed: None, tmp_path: Path
) -> None:
    with pytest.raises(Killed), connection.execute_wrapper(killed_at_the_key):
        demonstration.seed(tmp_path, "http://127.0.0.1:9")
    assert not Tenant.objects.filter(slug=demonstration.SLUG).exists()
    assert not User.objects.filter(email__endswith="@harbour.example").exists()
    made = demonstration.seed(tmp_path, "http://127.0.0.1:9")
    assert demonstration.seed(tmp_path, "http://127.0.0.1:9") == made
    assert json.loads((tmp_path / "demonstration.json").read_text())["key"] == made.key
    (tmp_path / "demonstration.json").unlink()
    with pytest.raises(LedgerError, match="passwords"):
        demonstration.seed(tmp_path, "http://127.0.0.1:9")
