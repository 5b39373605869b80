"""Roles of storms' processes: any role in another database, and web, timer and worker with their boundaries watched."""

import importlib
import json
import os
import re
from typing import Any
from uuid import UUID

import httpx2 as httpx
from resumeapp_client import Client, Worker

from tests.crash import agents
from tests.crash.points import Line
from tests.crash.scene import call
from tests.crash.workers import Api, Target, acknowledged
from tests.storms.boundaries import Boundaries

_RUN = re.compile(r"/runs/([^/]+)/")


def enter(args: dict[str, Any], report: int, control: int) -> None:
    """Be the `role` in the `database` at the `port`."""
    from django.db import connections

    connections.settings["default"] |= {"NAME": args["database"], "PORT": args["port"]}
    module, _, function = str(args["role"]).partition(":")
    getattr(importlib.import_module(module), function)(args["args"], report, control)


def web(args: dict[str, Any], report: int, control: int) -> None:
    """The web process."""
    from django.db.backends.signals import connection_created

    from resumeapp.wsgi import application
    from tests.crash.servers import serve

    line = Line(report, control)
    boundaries = Boundaries(line, args["strike"])
    connection_created.connect(boundaries.on_connection, weak=False)
    boundaries.watch_http(scoped=False)
    serve(args["port"], args["threads"], boundaries.around(application), line)


def timer(args: dict[str, Any], report: int, control: int) -> None:
    """The timer process; a wake is counted from the statement that takes it to the one after that which decides it."""
    from django.core.management import call_command
    from django.db.backends.signals import connection_created

    line = Line(report, control)
    boundaries = Boundaries(line, args["strike"])

    def on_connection(connection: Any, **_: Any) -> None:
        connection.execute_wrappers.append(_wake_scope(boundaries))
        boundaries.on_connection(connection)

    connection_created.connect(on_connection, weak=False)
    boundaries.watch_http(scoped=False)
    line.say("started")
    call_command("timer")


def _wake_scope(boundaries: Boundaries) -> Any:
    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not boundaries.within and "UPDATE ledger_wake " in sql:
            boundaries.begin("wake")
        decides = boundaries.within and "INSERT INTO ledger_decision" in sql
        try:
            return execute(sql, params, many, context)
        finally:
            if decides:
                boundaries.end()

    return wrapper


class _Deaf(Line):
    """A line that, once blocked at, lets no heartbeat through: who goes on from there doesn't know that it was replaced."""

    def __init__(self, report: int, control: int, deaf: bool) -> None:
        super().__init__(report, control)
        self._deaf = deaf
        self.deaf = False

    def block(self, point: str, **fields: Any) -> None:
        self.deaf = self._deaf
        super().block(point, **fields)


class _Unheard(Api):
    """To the server, without what its line doesn't let through."""

    def __init__(self, line: _Deaf, point: str) -> None:
        super().__init__(line, point)
        self._hearing = line

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self._hearing.deaf and request.url.path.endswith("/heartbeat"):
            raise httpx.ConnectError("nobody hears")
        return super().handle_request(request)


def worker(args: dict[str, Any], report: int, control: int) -> None:
    """An agent's worker as in the crash trials, with its sends and receives watched; `point` as there. `deaf` hears no heartbeat after it."""
    line = _Deaf(report, control, args.get("deaf", False))
    Boundaries(line, args["strike"]).watch_http(scoped=True)
    flow = agents.FLOWS[args["flow"]]
    line.say("started", digest=flow.code_digest(), version=flow.version, session=os.getsid(0))
    point = args["point"]
    with Client(args["server"], args["key"], transport=_Unheard(line, point), patience=30.0) as client:
        Worker(
            client,
            [flow],
            lease_seconds=args["lease"],
            wait_seconds=1,
            name=f"storm:{os.getpid()}",
            targets={"payments": args["payments"]},
            target_transport=lambda: Target(line, point),
        ).run()


class _Told(Api):
    """An API transport whose reports name the run."""

    def __init__(self, line: Line) -> None:
        super().__init__(line, "")
        self._runs: dict[str, str] = {}

    def _report(self, path: str, asked: Any, reply: httpx.Response) -> None:
        if reply.status_code >= 400:
            return
        answer = json.loads(reply.content) if reply.content else {}
        for ack in acknowledged(path, asked, answer):
            found = _RUN.search(path)
            run_id = found.group(1) if found else self._runs.get(ack.get("effect", ""), "")
            if ack["kind"] == "effect":
                self._runs[ack["effect"]] = run_id
            self._line.say("ack", run=run_id, ack=ack)


class _Armed(httpx.BaseTransport):
    """To the target: before a key's first request the fault that its order is named after is armed for it. `lost` are the faults whose first reply
    is lost as well. Connections are kept and used again, so that what is left in one would be taken for the next call's answer."""

    def __init__(self, payments: str, more: dict[str, Any], lost: list[str]) -> None:
        self._payments = payments
        self._more = more
        self._lost = lost
        self._inner = _kept.setdefault("transport", httpx.HTTPTransport(retries=0, trust_env=False, verify=False))

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        key = request.headers["idempotency-key"]
        host = self._payments.removeprefix("http://")
        if key not in _armed:
            _armed.add(key)
            # Whoever tries again may be another process: what counts is whether the target has heard of the key.
            known = call(host, "GET", f"/_control/applied?prefix={key}")["keys"]
            fault = json.loads(request.content)["order"].partition(".")[0]
            if not known.get(key):
                call(host, "POST", "/_control/faults", {"fault": fault, "key": key, **self._more.get(fault, {})})
                if fault in self._lost:
                    self._inner.handle_request(request).close()
                    raise httpx.ReadError("the reply was lost")
        return self._inner.handle_request(request)

    def close(self) -> None:
        """The next call uses it again."""


_armed: set[str] = set()
_kept: dict[str, httpx.HTTPTransport] = {}


def faulty(args: dict[str, Any], report: int, control: int) -> None:
    """A worker at a target that fails as each order's name says."""
    line = Line(report, control)
    line.say("started")
    with Client(args["server"], args["key"], transport=_Told(line), patience=30.0) as client:
        Worker(
            client,
            [agents.FLOWS["goodwill/1"], agents.FLOWS["oblivious/1"]],
            lease_seconds=args["lease"],
            wait_seconds=1,
            name=f"storm:{os.getpid()}",
            targets={"payments": args["payments"], "brief": args["payments"]},
            target_transport=lambda: _Armed(args["payments"], args["more"], args["lost"]),
        ).run()


def errand(args: dict[str, Any], report: int, control: int) -> None:
    """A worker that has some flows, and says which run each thing is about that it was answered."""
    line = Line(report, control)
    line.say("started")
    with Client(args["server"], args["key"], transport=_Told(line), patience=30.0) as client:
        Worker(
            client,
            [agents.FLOWS[name] for name in args["flows"]],
            lease_seconds=args["lease"],
            wait_seconds=1,
            name=f"storm:{os.getpid()}",
            targets={"payments": args["payments"]},
        ).run()


def furnish(args: dict[str, Any], report: int, control: int) -> None:
    """The payment service once more, as a target that keeps keys for so many seconds."""
    from tests.crash.seed import register_target

    register_target(UUID(args["tenant"]), args["payments"], args["call_limit"], 0, "brief", args["key_retention"])
    Line(report, control).say("done")


def look_again(args: dict[str, Any], report: int, control: int) -> None:
    """A person has the effects of these faults' runs asked about once more; `seen` by run: disputed, and whether somebody was handed it."""
    from ledger.engine.reconcile import reconcile
    from ledger.models import Effect, Handoff, Run

    seen = {}
    for run in Run.objects.across_tenants().all():
        if not any(f"order {fault}." in run.task for fault in args["orders"]):
            continue
        for effect in Effect.objects.across_tenants().filter(run_id=run.pk, state="committed"):
            reconcile(effect.pk)
            effect.refresh_from_db()
            handed = Handoff.objects.across_tenants().filter(effect_id=effect.pk).exists()
            seen[str(run.pk)] = [bool(effect.disputed), handed]
    Line(report, control).say("done", seen=seen)


def verify(args: dict[str, Any], report: int, control: int) -> None:
    """Verify every run and every tenant of the database; `faults` as text, at most twenty."""
    from ledger.models import Run, Tenant
    from ledger.services import verify as verifying

    faults = []
    for run_id in Run.objects.across_tenants().values_list("pk", flat=True):
        faults += [f"run {run_id}: {fault}" for fault in verifying.run(UUID(str(run_id))).faults]
    for tenant_id in Tenant.objects.values_list("pk", flat=True):
        faults += [f"tenant {tenant_id}: {fault}" for fault in verifying.tenant(tenant_id).faults]
    Line(report, control).say("done", faults=[fault[:150] for fault in faults[:20]])
