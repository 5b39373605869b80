"""The server's calls, typed. One method per call of the contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote
from uuid import uuid4

import httpx2 as httpx
from pydantic import TypeAdapter

from resumeapp_client.clocks import local_deadline, server_now
from resumeapp_client.records import (
    Committed,
    Directive,
    Effect,
    EventAnswer,
    Packet,
    Permit,
    Proposed,
    Run,
    Settled,
    VersionAnswer,
)
from resumeapp_client.wire import PATIENCE_SECONDS, Wire

_PACKETS = TypeAdapter(list[Packet])
_DIRECTIVES = TypeAdapter(list[Directive])
_STATED_NOW: TypeAdapter[datetime | None] = TypeAdapter(datetime | None)


class Client:
    """A server and an agent's (or operator's) key.

    A call that creates something gets an Idempotency-Key of its own, the same on each of its retries; pass
    `idempotency_key` where a caller's own retries must meet the same answer. `transport` may wrap every exchange.
    `patience` bounds the retries of one call, in seconds. Every method raises ResumeappError as the server's problem says, with its
    `code` and `remedy`, and Unreachable where no usable reply came: what was asked may have been done then. Answers that
    aren't typed are JSON as `docs/api.md` and the server's own page (`/api/v1/docs`) describe them.
    """

    def __init__(
        self,
        base_url: str,
        key: str,
        transport: httpx.BaseTransport | None = None,
        *,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self.base_url = base_url
        self._wire = Wire(base_url, key, transport, patience)

    def __repr__(self) -> str:
        return f"Client({self.base_url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()

    # -- workflows and runs

    def register(self, workflow: str, version: str, spec: Mapping[str, Any]) -> VersionAnswer:
        """Register an immutable workflow version; the same content again is the same answer, other content `version-exists`."""
        answer = self._wire.send("PUT", f"/workflows/{_part(workflow)}/versions/{_part(version)}", body=dict(spec))
        return VersionAnswer.model_validate(answer.body)

    def start_run(
        self,
        workflow: str,
        task: str,
        state: Any,
        *,
        version: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        text: str | None = None,
        on_behalf_of: str | None = None,
        idempotency_key: str | None = None,
    ) -> Run:
        """Start a run of a registered workflow with its first state, a JSON object or a pydantic model.

        `task` is one line for people, `text` more of it; `on_behalf_of` is the id of the person it acts for. Raises
        ResumeappError `schema-mismatch`, `workflow-not-allowed`, `key-reused`, `too-large`.
        """
        state = state.model_dump(mode="json", by_alias=True) if hasattr(state, "model_dump") else state
        body = {"workflow": workflow, "task": task, "state": state}
        body |= _given(version=version, attributes=attributes, text=text, on_behalf_of=on_behalf_of)
        return Run.model_validate(self._create("/runs", body, idempotency_key)["run"])

    def run(self, run_id: str) -> Run:
        """One run with its explanation."""
        body = self._get(f"/runs/{_part(run_id)}")
        return Run.model_validate(body.get("run", body))

    def runs(self, **filters: Any) -> dict[str, Any]:
        """A page of `runs`: by status, workflow, version, task or text. Send `next`, if there is one, as `after` with the same
        filters; at most `limit` of them."""
        page: dict[str, Any] = self._get("/runs", filters)
        return page

    def claim(
        self,
        worker: Mapping[str, str],
        offers: Sequence[Mapping[str, Any]],
        *,
        limit: int = 1,
        wait_seconds: int = 0,
        lease_seconds: int | None = None,
    ) -> list[Packet]:
        """At most `limit` runs for this worker, [] when none was ready within `wait_seconds` (at most 30). A lease is
        `lease_seconds` long, or as the server has it.

        Never repeated by itself: whether a lost reply held a claim shows when its lease lapses.
        """
        body = {"worker": dict(worker), "offers": list(offers), "limit": limit, "wait_seconds": wait_seconds}
        body |= _given(lease_seconds=lease_seconds)
        answer = self._wire.send("POST", "/runs/claim", body=body, repeat=False, timeout=wait_seconds + 15.0)
        return [] if answer.status == 204 or answer.body is None else _PACKETS.validate_python(answer.body["packets"])

    def heartbeat(
        self, worker_id: str, held: Sequence[tuple[str, str]], *, timeout: float | None = None
    ) -> list[Directive]:
        """Renew the leases of all held runs, given as (run, fence); answers what to do with each. `timeout` in seconds."""
        body = {"worker": worker_id, "runs": [{"run": run, "fence": fence} for run, fence in held]}
        answer = self._wire.send("POST", "/heartbeat", body=body, repeat=False, timeout=timeout)
        return _DIRECTIVES.validate_python(answer.body["runs"])

    def release(self, run_id: str, fence: str) -> None:
        """Give the run back without a commit. Raises ResumeappError `permit-out` while a call of it isn't settled, and OwnershipLost."""
        self._wire.send("POST", f"/runs/{_part(run_id)}/release", body={"fence": fence})

    def commit(self, run_id: str, commit: Mapping[str, Any], *, idempotency_key: str | None = None) -> Committed:
        """Commit a transition: fence, expect_seq, state, code_version, version, next, and proposals, settles, withdrawals.

        Raises OwnershipLost, EffectDiffers, EffectsUnaccounted, ResumeappError `wrong-sequence`, `effects-open`, `schema-mismatch`.
        """
        path = f"/runs/{_part(run_id)}/checkpoints"
        return Committed.model_validate(self._create(path, dict(commit), idempotency_key))

    # -- effects

    def propose(
        self,
        run_id: str,
        fence: str,
        expect_seq: int,
        proposal: Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
    ) -> Proposed:
        """Propose an effect outside a commit, which is a checkpoint of its own."""
        body = {"fence": fence, "expect_seq": expect_seq, **proposal}
        return Proposed.model_validate(self._create(f"/runs/{_part(run_id)}/effects", body, idempotency_key))

    def accept(self, run_id: str, fence: str, name: str, *, idempotency_key: str | None = None) -> Proposed:
        """Take the recorded outcome of an effect as this owner's own."""
        body = {"fence": fence, "accept": name}
        return Proposed.model_validate(self._create(f"/runs/{_part(run_id)}/effects", body, idempotency_key))

    def permit(self, effect_id: str, fence: str) -> Permit:
        """Leave for one call. Its local deadlines (`send_before`, `answer_before`, of the monotonic clock) are counted from before
        this was asked, by the server's own `now`.

        Raises OwnershipLost, EffectsUnaccounted, ResumeappError `grant-missing`, `grant-void`, `policy-denies`, `changed`, `not-cleared`,
        `expired`, `wrong-state`, `busy`.
        """
        answer = self._wire.send("POST", f"/effects/{_part(effect_id)}/permit", body={"fence": fence})
        fields = answer.body["permit"]
        permit = Permit.model_validate(fields)
        now = server_now(_STATED_NOW.validate_python(fields.get("now") or answer.body.get("now")), answer.date)
        return permit.model_copy(
            update={
                "send_before": local_deadline(permit.send_by, now, answer.asked_at),
                "answer_before": local_deadline(permit.answer_by, now, answer.asked_at),
            }
        )

    def settle(self, effect_id: str, fence: str, attempt: int, outcome: str, **report: Any) -> Settled:
        """Report what a permitted call did: `committed`, `failed`, `unknown` or `accepted`.

        `report` has `cause` with failed (`not_dispatched`, `throttled`, `rejected`), `reference` and `result` with committed,
        `ask_after_seconds` with accepted. `counted` of the answer is False where it was kept as evidence only.
        """
        body = {"fence": fence, "attempt": attempt, "outcome": outcome} | _given(**report)
        return Settled.model_validate(self._wire.send("POST", f"/effects/{_part(effect_id)}/settle", body=body).body)

    def withdraw(self, effect_id: str, fence: str) -> Effect:
        """Withdraw a proposed effect. Raises OwnershipLost, ResumeappError `wrong-state` once it was permitted."""
        answer = self._wire.send("POST", f"/effects/{_part(effect_id)}/withdraw", body={"fence": fence})
        return Effect.model_validate(answer.body)

    def effect(self, effect_id: str) -> Effect:
        """One effect as recorded."""
        return Effect.model_validate(self._get(f"/effects/{_part(effect_id)}"))

    def effects(self, **filters: Any) -> dict[str, Any]:
        """A page of `effects`: by run or state. `next`, if there is one, goes into `after`; at most `limit` of them."""
        page: dict[str, Any] = self._get("/effects", filters)
        return page

    # -- events

    def emit(
        self,
        type: str,
        source: str,
        *,
        id: str | None = None,
        subject: str | None = None,
        time: datetime | None = None,
        data: Any = None,
    ) -> EventAnswer:
        """Emit a CloudEvent; its identity is (source, id), so name the `id` where the same event may be emitted twice.

        `time` has an offset. Raises ResumeappError `event-not-allowed`, and `event-differs` where the id came with other content before.
        """
        body = {"specversion": "1.0", "type": type, "source": source, "id": id or uuid4().hex}
        body |= _given(subject=subject, time=None if time is None else time.isoformat(), data=data)
        headers = {"Content-Type": "application/cloudevents+json"}
        return EventAnswer.model_validate(self._wire.send("POST", "/events", body=body, headers=headers).body)

    # -- reading the record

    def checkpoints(self, run_id: str, **page: Any) -> Any:
        """The run's checkpoints."""
        return self._get(f"/runs/{_part(run_id)}/checkpoints", page)

    def checkpoint(self, run_id: str, seq: int) -> Any:
        """One checkpoint."""
        return self._get(f"/runs/{_part(run_id)}/checkpoints/{seq}")

    def resume_packet(self, run_id: str) -> Any:
        """The packet that whoever takes over reads."""
        return self._get(f"/runs/{_part(run_id)}/resume-packet")

    def resume_packet_markdown(self, run_id: str) -> str:
        """The same as Markdown."""
        return self._wire.send("GET", f"/runs/{_part(run_id)}/resume-packet.md", wants_json=False).text

    def wakes(self, run_id: str, **page: Any) -> Any:
        """The run's wakes with each check."""
        return self._get(f"/runs/{_part(run_id)}/wakes", page)

    def waits(self, run_id: str, **page: Any) -> Any:
        """The run's waits."""
        return self._get(f"/runs/{_part(run_id)}/waits", page)

    def decisions(self, run_id: str, **page: Any) -> Any:
        """The run's decisions."""
        return self._get(f"/runs/{_part(run_id)}/decisions", page)

    def journal(self, run_id: str, **page: Any) -> Any:
        """The run's journal entries."""
        return self._get(f"/runs/{_part(run_id)}/journal", page)

    def verify(self, run_id: str) -> Any:
        """Whether the run's chain and rows agree."""
        return self._get(f"/runs/{_part(run_id)}/verify")

    def export(self, run_id: str) -> Iterator[str]:
        """The run's journal as JSON Lines, one entry each."""
        yield from self._wire.send("GET", f"/runs/{_part(run_id)}/export", wants_json=False).text.splitlines()

    def approval(self, approval_id: str) -> Any:
        """An approval request; deciding is for signed-in people."""
        return self._get(f"/approvals/{_part(approval_id)}")

    def workflows(self) -> Any:
        """The registered workflow types."""
        return self._get("/workflows")

    def workflow_versions(self, workflow: str) -> Any:
        """The versions of one type."""
        return self._get(f"/workflows/{_part(workflow)}/versions")

    def _get(self, path: str, params: Mapping[str, Any] | None = None) -> Any:
        return self._wire.send("GET", path, params=params or None).body

    def _create(self, path: str, body: Any, idempotency_key: str | None) -> Any:
        headers = {"Idempotency-Key": idempotency_key or uuid4().hex}
        return self._wire.send("POST", path, body=body, headers=headers).body


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _part(text: str) -> str:
    return quote(text, safe="")
