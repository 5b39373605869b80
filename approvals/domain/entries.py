"""A journal entry in words: what happened and to what, from the entry's own bytes. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from approvals.labels import DECISIONS, LOOKS, STANDS, UNASKABLE, cause, closed, tidy, verb
from ledger.domain.phrases import clause, finding, reason, words

ENDED = frozenset({"completed", "failed", "cancelled"})
OUTCOMES = ("committed", "failed", "unknown", "withdrawn", "written_off", "in_flight")
FAILED = ("Failed in “{transition}”", "failed")
"""The step whose commit ends the run as failed finished nothing."""
Names = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Line:
    """One change that an entry lists: a row, the state it came from where it has one, and the fields that were set."""

    table: str
    key: str
    before: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """An entry, read."""

    seq: int
    actor: str
    verb: str
    lines: tuple[Line, ...]
    effects: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """`name` and `target` of effects by their id, and by that of a request for them, for entries that only name the row."""
    workers: Mapping[str, str] = field(default_factory=dict)
    """By worker id: its name."""
    references: Mapping[str, str] = field(default_factory=dict)
    """By report id: the target's own reference, which an entry holds as a commitment alone."""

    def of(self, table: str) -> Iterator[Line]:
        return (line for line in self.lines if line.table == table)

    def first(self, table: str) -> Mapping[str, Any]:
        return next((line.fields for line in self.of(table)), {})


@dataclass(frozen=True, slots=True)
class Sentence:
    """What an entry says: a title, what else it tells, and the state whose icon stands beside it."""

    title: str
    text: str
    state: str


def read(
    document: Mapping[str, Any],
    effects: Mapping[str, Mapping[str, str]],
    workers: Mapping[str, str] | None = None,
    references: Mapping[str, str] | None = None,
) -> Told:
    """An entry's parsed bytes as lines."""
    lines = []
    for change in document["changes"]:
        table, _, key = change["object"].partition(":")
        lines.append(Line(table, key, str(change.get("from") or ""), change.get("fields", {})))
    named = (document["seq"], document["actor"], document["verb"])
    return Told(*named, tuple(lines), effects, workers or {}, references or {})


def sentence(told: Told) -> Sentence:
    """The entry in words. What it doesn't tell is left out, never guessed."""
    title, state = FAILED if _failed(told) else verb(told.verb)
    slots = _slots(told)
    outcome = _outcome(told)
    parts = [text for tell in _TELLS for text in tell(told)]
    return Sentence(tidy(title.format(**slots)), " · ".join(dict.fromkeys(parts)), outcome or state)


def _failed(told: Told) -> bool:
    """Was this step committed as the run's failure?"""
    return told.verb == "checkpoint.commit" and told.first("run_head").get("status") == "failed"


def _slots(told: Told) -> dict[str, Any]:
    checkpoint, permit, decision = told.first("checkpoint"), told.first("permit"), told.first("decision")
    effect = told.effects.get(effect_of(told), {})
    named = told.first("effect").get("name", "")
    kind = decision.get("decision", "")
    return {
        "effect": effect.get("name") or named,
        "target": effect.get("target", "") or "its target",
        "transition": checkpoint.get("last_transition") or told.first("run_head").get("transition", ""),
        "attempt": permit.get("attempt", ""),
        "reported": _reported(told),
        "registered": told.first("target").get("name", ""),
        "found": next(_found(told), ""),
        "worker": told.workers.get(str(told.first("lease").get("worker_id", "")), "") or "a worker",
        "decision": DECISIONS.get(kind, words(kind)) if kind else "again",
    }


def rights(told: Told) -> Iterator[tuple[str, str, bool]]:
    """Rights that an entry gives or takes: the right in words, the person as an actor ('' for a team), and whether it holds in the whole tenant."""
    if told.verb.startswith("permission."):
        for line in told.lines:
            if "granted" in line.fields:
                user = line.fields.get("user_id")
                yield words(str(line.fields.get("verb", ""))), f"person:{user}" if user else "", line.table == "tenant"


def leave_of(told: Told) -> Iterator[str]:
    """The ids of the requests and grants that an entry is about, those that it moves first."""
    for table in ("approval_request", "grant"):
        yield from (line.key for line in told.of(table))
    for table in ("vote", "grant"):
        yield from (str(line.fields["request_id"]) for line in told.of(table) if line.fields.get("request_id"))


def effect_of(told: Told) -> str:
    """The id of the one effect that an entry is about, or that of a request for it; '' for none."""
    for table, column in (("permit", "effect_id"), ("effect_report", "effect_id"), ("approval_request", "subject_id")):
        found = told.first(table).get(column)
        if found:
            return str(found)
    for key in leave_of(told):
        if key in told.effects:
            return key
    for table in ("effect", "wait_member"):
        line = next(told.of(table), None)
        if line is not None:
            return line.key if table == "effect" else str(line.fields.get("effect_id") or "")
    return str(told.first("grant").get("subject_id", ""))


def _outcome(told: Told) -> str:
    """The state whose icon tells most: how it ended, what was decided, what became of the effect."""
    status = told.first("run_head").get("status", "")
    if status in ENDED:
        return str(status)
    decision = told.first("decision").get("decision")
    if decision:
        return str(decision)
    choice = told.first("vote").get("choice")
    if choice:
        return "approved" if choice == "approve" else "denied"
    if told.verb.startswith("effect.") or told.verb.startswith("lease."):
        states = [line.fields.get("state", "") for line in told.of("effect")]
        return next((state for state in OUTCOMES if state in states), "")
    if told.verb == "checkpoint.commit":
        return "waiting" if status == "waiting" else ""
    return ""


def _checkpoint(told: Told) -> Iterator[str]:
    for line in told.of("checkpoint"):
        yield f"checkpoint {line.fields.get('seq')}"
        following = line.fields.get("next_transition")
        if following and following != line.fields.get("last_transition"):
            yield f"next “{following}”"


def _head(told: Told) -> Iterator[str]:
    fields = told.first("run_head")
    status = fields.get("status", "")
    if status and status != "running":
        yield STANDS.get(status, f"the run is {words(status)}")
    if fields.get("intent") in {"cancel", "fail"}:
        yield f"it is to {fields['intent']}"


def _reported(told: Told) -> str:
    """What became of the one effect that an entry reports."""
    states = [line.fields.get("state", "") for line in told.of("effect")]
    return words(states[0]) if len(states) == 1 else ""


def _effects(told: Told) -> Iterator[str]:
    for line in told.of("effect"):
        name = line.fields.get("name") or told.effects.get(line.key, {}).get("name", "an effect")
        state = line.fields.get("state", "")
        if not line.before and "name" in line.fields:
            yield f"proposes “{name}”{_place(told.effects.get(line.key, {}))}"
        elif state and state != line.before:
            why = cause(line.fields.get("cause") or "")
            if told.verb == "effect.settle" and _reported(told):
                yield from [why] if why else []
            else:
                yield f"“{name}” is {words(state)}" + (f" ({why})" if why else "")
        if line.fields.get("disputed"):
            yield f"“{name}” is disputed"


def _place(effect: Mapping[str, str]) -> str:
    """Where an effect acts: its target, and the resource there."""
    where = ", ".join(part for part in (effect.get("target", ""), effect.get("resource", "")) if part)
    return f" at {where}" if where else ""


def _found(told: Told) -> Iterator[str]:
    """What a target said when it was asked, or why it wasn't."""
    for line in told.of("effect_report"):
        kind, answer, why = (line.fields.get(name) or "" for name in ("kind", "answer", "cause"))
        if kind in {"lookup", "replay"}:
            yield cause(why) if why in UNASKABLE else LOOKS.get(answer, words(answer))


def _reports(told: Told) -> Iterator[str]:
    for line in told.of("effect_report"):
        kind, answer, why = (line.fields.get(name) or "" for name in ("kind", "answer", "cause"))
        if kind in {"lookup", "replay"} and why and why not in UNASKABLE:
            yield cause(why)
        if answer == "absent" and _still_open(told):
            yield "that settles nothing yet: it is asked again"
        elif kind == "late":
            yield f"late report “{words(answer)}”, kept as evidence"
        if line.fields.get("reference"):
            known = told.references.get(line.key)
            yield f"reference {known}" if known else "with the target’s own reference"


def _still_open(told: Told) -> bool:
    """Did a look-up only put off the next one?"""
    moved = [line for line in told.of("effect") if not {"state", "disputed"} & set(line.fields)]
    handed = any(told.of("handoff"))
    return any("due_at" in line.fields for line in moved) and not handed


def _lease(told: Told) -> Iterator[str]:
    version = told.first("lease").get("version")
    if version:
        yield f"version {version}"


def _permit(told: Told) -> Iterator[str]:
    fields = told.first("permit")
    resource = told.effects.get(effect_of(told), {}).get("resource", "")
    if fields and resource:
        yield f"on {resource}"
    if fields.get("grant_id"):
        yield "under a person’s approval"
    if fields.get("precondition"):
        yield "only if still at the version that was seen"


def _wait(told: Told) -> Iterator[str]:
    if told.verb.startswith("request."):
        return  # What ended it is what the entry is about.
    for line in told.of("wait_set"):
        if line.fields.get("cause") and line.before and line.fields.get("state") != "satisfied":
            yield f"the wait ended: {words(line.fields['cause'])}"


def _decision(told: Told) -> Iterator[str]:
    reasons = told.first("decision").get("reasons", [])
    answers = [line.fields.get("answer") for line in told.of("wake_check")]
    if answers:
        yield f"{answers.count('pass')} of {len(answers)} checks passed"
    yield from (finding(code) for code in reasons[:4] if code != "checks:passed")


def _people(told: Told) -> Iterator[str]:
    for line in told.of("approval_request"):
        state = line.fields.get("state", "")
        if state == "pending" and not line.before:
            yield "a person is asked"
        elif state and state != line.before and not told.verb.startswith("request."):
            yield f"the request is {state}"
    if told.verb == "request.approve" and not any(told.of("approval_request")):
        yield "more approvals are needed"
    for line in told.of("grant"):
        if line.fields.get("state") == "live":
            yield "for one call"


def _handoff(told: Told) -> Iterator[str]:
    for line in told.of("handoff"):
        if line.fields.get("reason"):
            yield f"handed to a person: {clause(reason(line.fields['reason']))}"
        elif line.fields.get("escalated_at"):
            yield "nobody closed it in its time"
        elif line.fields.get("outcome"):
            moves = any(told.of("wake"))
            yield f"with “{closed(line.fields['outcome'], blocks=moves).label}”"


_TELLS: tuple[Callable[[Told], Iterator[str]], ...] = (
    _decision,
    _lease,
    _permit,
    _checkpoint,
    _effects,
    _reports,
    _wait,
    _people,
    _handoff,
    _head,
)
