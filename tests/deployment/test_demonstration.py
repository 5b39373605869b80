"""The demonstration: its tenant is whole or not there at all, its services get ports of their own, and what it can't do says what helps."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management.base import CommandError
from django.db import connection

from ledger.domain.errors import LedgerError
from ledger.domain.identity import Verb
from ledger.models import Tenant, User
from ledger.services import permissions
from resumeapp import demonstration
from resumeapp.management.commands import demo
from resumeapp.processes import Tree


class Killed(Exception):
    """The process ends here."""


def killed_at_the_key(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
    if "ledger_api_key" in sql and "INSERT" in sql:
        raise Killed
    return execute(sql, params, many, context)


def rights_of(kept: demonstration.Kept, role: str) -> list[Verb]:
    """What a sign-in that was written down may do in the demonstration."""
    (one,) = [one for one in kept.sign_ins if one.role == role]
    person = User.objects.get(email=one.email)
    assert person.check_password(one.password)
    return [verb for verb in Verb if permissions.can(person, verb, Tenant.objects.get(slug=demonstration.SLUG))]


def test_who_is_killed_while_it_is_made_starts_again_and_finds_it_the_third_time(
    committed: None, settings: LazySettings, tmp_path: Path
) -> None:
    with pytest.raises(Killed), connection.execute_wrapper(killed_at_the_key):
        demonstration.seed(tmp_path, "http://127.0.0.1:9")
    assert not Tenant.objects.filter(slug=demonstration.SLUG).exists()
    assert not User.objects.filter(email__endswith="@harbour.example").exists()
    made = demonstration.seed(tmp_path, "http://127.0.0.1:9")
    assert demonstration.seed(tmp_path, "http://127.0.0.1:9") == made
    assert json.loads((tmp_path / "demonstration.json").read_text())["key"] == made.key
    assert rights_of(made, "auditor") == [Verb.SEE, Verb.SEE_PAYLOADS, Verb.AUDIT], "and changes nothing"
    (tmp_path / "demonstration.json").unlink()
    settings.VAR = tmp_path
    tree = Tree(tmp_path / "logs", say=lambda line: None)
    try:
        with pytest.raises(
            CommandError, match=r"passwords in demonstration\.json aren't\. Put the file back, or start over"
        ):
            demo.Command()._start(tree, *demo.free_ports(8000, 8090))
    finally:
        tree.stop()


def test_a_console_that_takes_the_next_port_leaves_another_one_to_the_payment_service() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        wanted = taken.getsockname()[1]
        for sandbox in (wanted, wanted + 1):
            console_port, sandbox_port = demo.free_ports(wanted, sandbox)
            assert wanted < console_port and wanted < sandbox_port and console_port != sandbox_port


def test_a_payment_service_with_calls_out_is_told_to_keep_its_port() -> None:
    assert "--sandbox-port" in demo.what_helps(LedgerError("target-in-use", "calls are out", "Settle them first."))
    assert demo.what_helps(LedgerError("invalid", "no", "Start over.")) == "Start over."


def test_a_second_start_on_the_same_data_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    environ = {**os.environ, "RESUMEAPP_VAR": str(tmp_path), "DATABASE_URL": ""}
    argv = [sys.executable, "manage.py", "demo", "--port", "18400", "--sandbox-port", "18490"]
    with demo.alone(tmp_path):
        second = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert (
        second.returncode == 1
        and f"already, as process {os.getpid()}" in second.stderr
        and "RESUMEAPP_VAR" in second.stderr
    )
    assert not list(tmp_path.glob("*.sqlite3")) and not (tmp_path / "addresses").exists()
    with demo.alone(tmp_path):
        assert (tmp_path / "demonstration.lock").read_text() == str(os.getpid()), "whoever ended has let go of it"


def test_only_what_is_left_to_try_is_offered() -> None:
    pids = {"worker-v1": 11, "worker-v2": 12}

    def offered(refunds: int, wires: int) -> str:
        return "\n".join(demo.to_try(pids, demonstration.Waiting(refunds, wires)))

    every = offered(4, 2)
    assert "Three things to try" in every and "kill -9 11 is worker-v1, 12 is worker-v2" in every and "  3. " in every
    assert "Two things to try" in offered(1, 2) and "kill -9" not in offered(1, 2)
    assert "One thing to try" in offered(0, 1) and "Reconcile" in offered(0, 1) and "inbox" not in offered(0, 1)
    assert "has been tried" in offered(0, 0) and "  1. " not in offered(0, 0)
