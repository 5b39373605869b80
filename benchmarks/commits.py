"""Commits in process: parse, schema, checkpoint, entry, effect and clearance, as an agent's call makes them, without HTTP."""

from __future__ import annotations

import time
from uuid import UUID, uuid4

import orjson
from django.db import connection, reset_queries

from benchmarks.yard import Rate, document, rate
from ledger.domain.canonical import parse
from ledger.domain.commits import Next, NextKind
from ledger.domain.identity import Caller
from ledger.domain.leases import Offer
from ledger.domain.runs import Fence
from ledger.domain.starts import StartSpec
from ledger.domain.workflows import VersionSpec
from ledger.services import administration, authority, checkpoints, identity, keys, leases, runs, workflows
from ledger.services.checkpoints import CommitSpec

SCHEMA = {
    "type": "object",
    "required": ["order", "amount_minor", "currency", "lines"],
    "properties": {
        "order": {"type": "string"},
        "amount_minor": {"type": "integer"},
        "currency": {"type": "string"},
        "lines": {"type": "array", "items": {"type": "object", "required": ["id", "amount"]}},
    },
}
SCOPES = ("workflows:register", "runs:start", "runs:work", "runs:read")


def caller() -> Caller:
    """A tenant of its own with an agent, its key and a workflow of two steps."""
    tenant = identity.open_tenant(f"bench-{uuid4().hex[:12]}", "Benchmark")
    admin = administration.command_line(tenant.pk)
    owner = identity.add_person(admin, f"{uuid4().hex}@example.org", "Owner")
    agent_id = identity.add_agent(admin, "bench", owner)
    authority.publish_policy(admin, [{"tool": "*", "verdict": "allow"}])
    key = identity.issue_key(admin, "bench", SCOPES, workflows=["*"], agent_id=agent_id)
    found = keys.authenticate(f"Bearer {key.secret}")
    workflows.register(found, "bench", "1", VersionSpec(SCHEMA, "step", {"step": {}}))
    return found


def claimed(who: Caller, size: int) -> tuple[UUID, Fence]:
    """A run in the hands of a worker."""
    spec = StartSpec("bench", "1", "benchmark", document(size), {}, "", uuid4().hex)
    runs.start(who, spec)
    packet = leases.claim(who, Offer(uuid4(), "bench", "bench", {"bench": ("1",)}, 1, 3600))[0]
    return packet.run.id, packet.fence


def commit(who: Caller, run_id: UUID, fence: Fence, seq: int, raw: bytes) -> None:
    """One durable transition from the bytes of a request."""
    state = parse(raw)
    next_ = Next(NextKind.GO_ON, "step")
    spec = CommitSpec(fence, seq, "bench", state, next_, f"{seq}", {"state": state, "seq": seq})
    checkpoints.commit_transition(who, run_id, spec)


def measure(seconds: float, size: int) -> Rate:
    """Commits of one run on one connection, for so long."""
    who = caller()
    run_id, fence = claimed(who, size)
    raw = orjson.dumps(document(size))
    times: list[float] = []
    for seq in range(1, 21):
        commit(who, run_id, fence, seq, raw)
    began, cpu = time.perf_counter(), time.process_time()
    while (now := time.perf_counter()) - began < seconds:
        commit(who, run_id, fence, 21 + len(times), raw)
        times.append(time.perf_counter() - now)
    return rate(times, time.perf_counter() - began, time.process_time() - cpu)


def trips(size: int) -> int:
    """Statements of one commit."""
    who = caller()
    run_id, fence = claimed(who, size)
    raw = orjson.dumps(document(size))
    connection.force_debug_cursor = True
    reset_queries()
    commit(who, run_id, fence, 1, raw)
    count = len(connection.queries)
    connection.force_debug_cursor = False
    return count
