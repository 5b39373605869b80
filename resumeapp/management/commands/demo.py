"""`manage.py demo`: the whole product with a payment service and three workers, in one foreground tree."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import httpx2 as httpx
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import close_old_connections

from ledger import schedules
from ledger.domain.errors import LedgerError
from ledger.models import Tenant, WorkflowVersion
from resumeapp import demonstration, supervisor
from resumeapp.processes import Child, Program, Tree

WORKERS: Final = (("worker-v1", "refunds", "1"), ("worker-v2", "refunds", "2"), ("worker-wires", "wires", "1"))
LEASE_SECONDS: Final = 10
READY_WITHIN: Final = 60.0


class Command(BaseCommand):
    help = "Run the demonstration until Ctrl-C; a second start goes on where the first stopped."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="the console's port, or the next free one")
        parser.add_argument(
            "--sandbox-port", type=int, default=8090, help="the payment service's port, or the next free one"
        )
        parser.add_argument("--ready-file", help="write the addresses, process ids and sign-ins to this file as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        with alone(settings.VAR):
            self._run(options)

    def _run(self, options: Mapping[str, Any]) -> None:
        self._say("Migrating the database …")
        call_command("migrate", verbosity=0)
        schedules.ensure()
        port, sandbox_port = free_ports(options["port"], options["sandbox_port"])
        for wanted, found in ((options["port"], port), (options["sandbox_port"], sandbox_port)):
            if wanted != found:
                self._say(f"Port {wanted} is taken; using {found}.")
        tree = Tree(settings.VAR / "logs", say=self._say)
        with tree.starting():
            scene = self._start(tree, port, sandbox_port)
            self._welcome(scene)
            if options["ready_file"]:
                Path(options["ready_file"]).write_text(json.dumps(scene, indent=1, default=asdict))
        tree.run()
        self._say("Stopped. The data stays in var/; `make run` goes on from here.")

    def _start(self, tree: Tree, port: int, sandbox_port: int) -> dict[str, Any]:
        console, payments = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{sandbox_port}"
        children = [tree.start(_sandbox(sandbox_port))]
        await_answer(f"{payments}/orders", children[0])
        fill_sandbox(payments)
        try:
            kept = demonstration.seed(settings.VAR, payments)
        except LedgerError as refusal:
            raise CommandError(f"{refusal.reason}. {what_helps(refusal)}") from refusal
        key_file = _key_file(kept.key)
        children.append(tree.start(supervisor.web("127.0.0.1", port)))
        children += [tree.start(supervisor.cluster()), tree.start(supervisor.timer())]
        await_answer(f"{console}/healthz", children[1])
        children += [
            tree.start(_worker(name, flow, version, console, payments, key_file)) for name, flow, version in WORKERS
        ]
        self._await_workflows()
        (settings.VAR / "addresses").write_text(f"RESUMEAPP={console}\nPAYMENTS={payments}\n")
        lose_the_wires_answers(payments)
        demonstration.start_runs()
        waiting = demonstration.waiting()
        return {
            "console": console,
            "payments": payments,
            "tenant": demonstration.SLUG,
            "waiting": waiting,
            "processes": {child.program.name: child.pid for child in children},
            "sign_ins": [{"role": s.role, "email": s.email, "password": s.password} for s in kept.sign_ins],
        }

    def _await_workflows(self) -> None:
        deadline = time.monotonic() + READY_WITHIN
        tenant = Tenant.objects.get(slug=demonstration.SLUG)
        while WorkflowVersion.objects.of(tenant).count() < len(WORKERS):
            if time.monotonic() > deadline:
                raise CommandError("the workers didn't register their workflows; see var/logs/worker-*.log")
            time.sleep(0.2)
            close_old_connections()

    def _welcome(self, scene: dict[str, Any]) -> None:
        console, sandbox, pids = scene["console"], scene["payments"], scene["processes"]
        lines = [
            "",
            f"  resumeapp console   {console}/",
            f"  payment service     {sandbox}/   (the other side: orders and payments)",
            "",
            "  sign in as",
            *(f"    {one['role']:<9} {one['email']:<26} {one['password']}" for one in scene["sign_ins"]),
            "",
            "  processes           " + "  ".join(f"{name} {pid}" for name, pid in pids.items()),
            f"  logs                {settings.VAR / 'logs'}",
            "",
            *to_try(pids, scene["waiting"]),
            "  Then sign in as auditor: History says who approved what, and each line leads to what they decided on.",
            "",
            f"  Ctrl-C stops everything and keeps the data; to start over, remove {settings.VAR}.",
            "",
        ]
        for line in lines:
            self._say(line)

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def to_try(pids: Mapping[str, int], waiting: demonstration.Waiting) -> list[str]:
    """What there is to try, as far as it hasn't been: a refund to decide, one to lose a worker over, and a wire whose answer was lost."""
    refund = ["Sign in as approver, open a refund in the inbox, read it, approve it. Watch the run complete."]
    kill = [
        "Approve another, see on the run's page which worker has it, and kill that one within the payment's six seconds:",
        f"kill -9 {pids['worker-v1']} is worker-v1, {pids['worker-v2']} is worker-v2. A worker takes over after ten; there is one refund.",
    ]
    wire = [
        "Sign in as operator, open Reconcile: the answers of wires were lost, and their bank can't be asked.",
        "Look at the payment service, then say what happened, with your evidence.",
    ]
    left = [refund] * (waiting.refunds > 0) + [kill] * (waiting.refunds > 1) + [wire] * (waiting.wires > 0)
    if not left:
        return [
            "  All that was there to try has been tried. Start a run of your own (README, An agent in Python),",
            f"  or stop, remove {settings.VAR} and start over.",
        ]
    lines = [f"  {('One thing', 'Two things', 'Three things')[len(left) - 1]} to try"]
    for number, (first, *more) in enumerate(left, 1):
        lines += [f"  {number}. {first}", *(f"     {line}" for line in more)]
    return lines


@contextmanager
def alone(var: Path) -> Iterator[None]:
    """Nobody else runs the demonstration on this data meanwhile: a second one would take its targets to a payment service of its own.

    The lock ends with the process, however that ends. Raises CommandError with the id of the process that has it.
    """
    with (var / "demonstration.lock").open("a+") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.seek(0)
            raise CommandError(
                f"the demonstration runs on {var} already, as process {held.read().strip() or 'unknown'}; nothing was changed. "
                "Stop that one with Ctrl-C first, or run another one on data of its own: RESUMEAPP_VAR=<directory>."
            ) from None
        held.truncate(0)
        held.write(str(os.getpid()))
        held.flush()
        yield


def what_helps(refusal: LedgerError) -> str:
    """What to do where the demonstration's tenant is refused: calls that are out hold the payment service at the port that it had."""
    if refusal.code == "target-in-use":
        return (
            f"Start the payment service on the port that it had (--sandbox-port), or start over without {settings.VAR}."
        )
    return refusal.remedy


def free_ports(console: int, sandbox: int) -> tuple[int, int]:
    """A port for the console and another one for the payment service: those that are wanted, or the next ones that nobody listens on."""
    port = free_port(console)
    return port, free_port(sandbox, but=port)


def free_port(wanted: int, but: int | None = None) -> int:
    """This port, or the next one that nobody listens on."""
    for port in range(wanted, wanted + 200):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            if port != but:
                return port
    raise CommandError(f"no free port from {wanted} on; choose another with --port or --sandbox-port")


def _sandbox(port: int) -> Program:
    argv = [sys.executable, "-m", "examples.sandbox", "--port", str(port), "--data", str(settings.VAR / "sandbox")]
    return Program("sandbox", argv)


def _worker(name: str, workflow: str, version: str, console: str, payments: str, key_file: Path) -> Program:
    argv = [sys.executable, "-m", "examples.agents", "--workflow", workflow, "--version", version, "--server", console]
    argv += ["--payments", payments, "--key-file", str(key_file), "--lease-seconds", str(LEASE_SECONDS), "--name", name]
    return Program(name, argv, grace=15.0)


def _key_file(key: str) -> Path:
    path: Path = settings.VAR / "agent.key"
    path.touch(mode=0o600)
    path.write_text(key)
    return path


def await_answer(url: str, child: Child) -> None:
    """Wait until an address answers. Raises CommandError naming the log when its process ended or it takes too long."""
    deadline = time.monotonic() + READY_WITHIN
    while time.monotonic() < deadline and child.alive():
        try:
            httpx.get(url, timeout=2, trust_env=False)
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return
    raise CommandError(f"{child.program.name} doesn't answer at {url}; see {child.log}")


def fill_sandbox(payments: str) -> None:
    """Orders to refund and invoices to pay, as far as they aren't there yet: to write one again would make it another version."""
    for order, customer, amount, _ in (*demonstration.ORDERS, *demonstration.INVOICES):
        if httpx.get(f"{payments}/orders/{order}", timeout=10, trust_env=False).status_code != 404:
            continue
        send("PUT", f"{payments}/orders/{order}", {"customer": customer, "amount_minor": amount, "currency": "EUR"})


def lose_the_wires_answers(payments: str) -> None:
    """The next wires are paid and their answers lost on the way; refunds are slow.

    Faults don't outlive the sandbox, so they are armed at each start.
    """
    send("POST", f"{payments}/_control/faults", {"fault": "reset_mid_body", "times": 2, "path": "/wires"})
    send(
        "POST",
        f"{payments}/_control/faults",
        {"fault": "slow", "times": 1000, "method": "POST", "path": "/refunds", "seconds": 6},
    )


def send(method: str, url: str, document: dict[str, Any]) -> None:
    httpx.request(method, url, json=document, timeout=10, trust_env=False).raise_for_status()
