"""The judge of crash trials. It shares no code with what it judges: standard library, sqlite3 and psycopg only.

It is told what the harness saw acknowledged and what it sampled, and reads two witnesses by itself: the sandbox's raw request log and the
database's tables, by plain SELECTs. What was refunded is known from the log alone. As a program: `python judge.py CASE.json`.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

if __package__:
    from .witnesses import Facts, Log, Record, Row, moment, read_facts, read_log
else:  # run by its path, with nothing of ours to import it from
    sys.path.insert(0, str(Path(__file__).parent))
    from witnesses import Facts, Log, Record, Row, moment, read_facts, read_log

LOST, DUPLICATE, BLIND_RESEND, STUCK = "LOST", "DUPLICATE", "BLIND RESEND", "STUCK"
CHAIN, STATE, SILENT, END = "CHAIN", "STATE", "SILENT", "END"
ZEROS = (LOST, DUPLICATE, BLIND_RESEND, STUCK)
GRACE_SECONDS = 10.0
"""How much longer than its lease a run may stay where it is without waiting for anything."""

DEFINITE = frozenset({"throttled", "confirmed_absent"})
"""Causes that speak for a second request. "Not dispatched" isn't one: no worker can say it of a request that the target has in its log."""
THROTTLED = 429
MOVING = frozenset({"running", "waking", "ready"})
ENDED = frozenset({"completed", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that must not be: its kind, the trial, and what was seen."""

    kind: str
    trial: str
    text: str


@dataclass(slots=True)
class Trial:
    """What the harness knows of one trial. `acks`: writes whose answers came; `samples`: effects and log, read while everything stood still."""

    id: str
    run: str
    order: str
    lease: float
    ends: list[str]
    """Statuses in which the run may be found at the end."""
    ended_at: float
    acks: list[Row] = field(default_factory=list)
    samples: list[Row] = field(default_factory=list)
    passes: dict[str, list[str]] = field(default_factory=dict)
    """By the effect's name: states that it must have gone through in this order, others between them."""


def judge(trial: Trial, facts: Facts, log: Log) -> list[Finding]:
    """Everything that is wrong with one trial; nothing is repaired or explained away."""
    if facts.head is None:
        return [Finding(LOST, trial.id, f"the run {trial.run} was acknowledged and isn't there")]
    found = [
        *_lost(trial, facts),
        *_duplicates(trial, facts, log),
        *_blind_resends(trial, facts, log),
        *_false_words(facts, log),
        *_stuck(trial, facts),
        *chain(trial, facts),
        *_samples(trial, facts),
        *_at_the_end(trial, facts, log),
    ]
    return [Finding(kind, trial.id, text) for kind, text in found]


Found = Iterable[tuple[str, str]]


def _lost(trial: Trial, facts: Facts) -> Found:
    """Acknowledged, and absent from the record."""
    checkpoints = {(row["seq"], row["digest"].hex()) for row in facts.checkpoints}
    effects = {row["id"] for row in facts.effects}
    permits = {(row["effect_id"], row["attempt"]) for row in facts.permits}
    reports = {(r["effect_id"], r["attempt"], r["answer"]) for r in facts.reports if r["kind"] in ("settle", "late")}
    votes = {(row["request_id"], row["choice"]) for row in facts.votes}
    for ack in trial.acks:
        match ack["kind"]:
            case "run":
                there = ack["run"] == trial.run
            case "checkpoint":
                there = (ack["seq"], ack["digest"]) in checkpoints
            case "effect":
                there = ack["effect"] in effects
            case "permit":
                there = (ack["effect"], ack["attempt"]) in permits
            case "settle":
                there = (ack["effect"], ack["attempt"], ack["outcome"]) in reports
            case "vote":
                there = (ack["request"], ack["choice"]) in votes
            case other:
                there = False
                yield LOST, f"the judge doesn't know the acknowledgement {other!r}"
        if not there:
            yield LOST, f"acknowledged and absent: {json.dumps(ack, sort_keys=True)}"


def _duplicates(trial: Trial, facts: Facts, log: Log) -> Found:
    for effect in facts.effects:
        applied = log.applied.get(effect["key"], ())
        if len(applied) > 1:
            yield DUPLICATE, f"{len(applied)} changes under the key {effect['key']}"
    refunds = log.by_order.get(trial.order, ())
    if len(refunds) > 1:
        yield DUPLICATE, f"{len(refunds)} refunds of order {trial.order}: {[one.reference for one in refunds]}"
    known = {effect["key"] for effect in facts.effects}
    for one in refunds:
        if one.key not in known:
            yield STATE, f"the refund {one.reference} of order {trial.order} has a key that the record doesn't know"


def _blind_resends(trial: Trial, facts: Facts, log: Log) -> Found:
    """A second mutating request needs, between it and the one before, a definite "not applied" or a look-up by replay on record."""
    for effect in facts.effects:
        sent = sorted(log.mutating.get(effect["key"], ()), key=lambda entry: entry.seq)
        reports = [report for report in facts.reports if report["effect_id"] == effect["id"]]
        for before, after in pairwise(sent):
            between = [r for r in reports if moment(before.at) <= r["reported_at"] <= moment(after.at)]
            if not any(_allows_another(report) for report in between):
                yield (
                    BLIND_RESEND,
                    f"request {after.seq} repeats {before.seq} under {effect['key']} with nothing recorded between",
                )
        permits = [permit for permit in facts.permits if permit["effect_id"] == effect["id"]]
        allowed = len(permits) + sum(report["kind"] == "replay" for report in reports)
        if len(sent) > allowed:
            yield BLIND_RESEND, f"{len(sent)} requests under {effect['key']} and leave for {allowed}"


def _allows_another(report: Row) -> bool:
    if report["kind"] == "replay":
        return True
    if not report["counted"]:
        return False
    if report["kind"] == "lookup":
        return bool(report["answer"] == "absent")
    return report["answer"] == "failed" and report["cause"] in DEFINITE


def _false_words(facts: Facts, log: Log) -> Found:
    """What workers said and the record believed, against what the target logged while that attempt was out."""
    for effect in facts.effects:
        permits = {permit["attempt"]: permit for permit in facts.permits if permit["effect_id"] == effect["id"]}
        reports = [report for report in facts.reports if report["effect_id"] == effect["id"]]
        for said in reports:
            if not said["counted"] or said["kind"] not in ("settle", "late") or said["attempt"] not in permits:
                continue
            until = [permit["permitted_at"] for attempt, permit in permits.items() if attempt > said["attempt"]]
            until += [r["reported_at"] for r in reports if r["kind"] == "replay"]
            begun = permits[said["attempt"]]["permitted_at"]
            ended = min((at for at in until if at >= said["reported_at"]), default=float("inf"))
            arrived = [one for one in log.mutating.get(effect["key"], ()) if begun <= moment(one.at) < ended]
            yield from _false(said, effect["name"], arrived)


def _false(said: Row, name: str, arrived: Sequence[Any]) -> Found:
    if said["cause"] == "not_dispatched" and arrived:
        yield STATE, f"{name} was called not dispatched, and request {arrived[0].seq} had arrived"
    if said["cause"] == "throttled" and not any(one.status == THROTTLED for one in arrived):
        yield STATE, f"{name} was called throttled, and the target turned nothing away"


def _stuck(trial: Trial, facts: Facts) -> Found:
    """From the journal: how long the run stayed where something had to happen next."""
    limit = trial.lease + GRACE_SECONDS
    status = ""
    for number, entry in enumerate(facts.entries):
        status = _status_after(entry, trial.run) or status
        last = number + 1 == len(facts.entries)
        until = trial.ended_at if last else facts.entries[number + 1]["at"]
        if status in MOVING and until - entry["at"] > limit:
            yield STUCK, f"{status} for {until - entry['at']:.1f} s after entry {entry['seq']} ({entry['verb']})"
    assert facts.head is not None
    status = facts.head["status"]
    if status == "waiting" and not any(wait["state"] == "open" for wait in facts.waits):
        yield STUCK, "waiting, and no wait is open"
    if status == "blocked" and not any(_escalated(handoff) for handoff in facts.handoffs):
        yield STUCK, "blocked, and nobody was handed anything"


def _status_after(entry: Row, run: str) -> str:
    status = ""
    for change in json.loads(entry["content"])["changes"]:
        if change["object"] == f"run_head:{run}":
            status = change["fields"].get("status", status)
    return status


def _escalated(handoff: Row) -> bool:
    return handoff["state"] in ("open", "accepted")


def chain(trial: Trial, facts: Facts) -> Found:
    """The journal's chain, recomputed; and the checkpoints' own."""
    previous = bytes(32)
    for number, entry in enumerate(facts.entries, start=1):
        document = json.loads(entry["content"])
        if entry["seq"] != number or document["seq"] != number or document["stream"] != f"run:{trial.run}":
            yield CHAIN, f"entry {number} is {document['stream']} {document['seq']} at {entry['seq']}"
        if hashlib.sha256(previous + entry["content"]).digest() != entry["digest"]:
            yield CHAIN, f"entry {number} doesn't hash to its digest"
        previous = entry["digest"]
    assert facts.head is not None
    if (facts.head["head_seq"], facts.head["head_digest"]) != (len(facts.entries), previous):
        yield CHAIN, "the head isn't the last entry"
    before = bytes(32)
    for number, checkpoint in enumerate(facts.checkpoints):
        if number and checkpoint["previous_digest"] != before:
            yield CHAIN, f"checkpoint {checkpoint['seq']} doesn't follow the one before"
        before = checkpoint["digest"]


def contradiction(state: str, cause: str, mutating: int, applied: int) -> str:
    """What the ledger says of an effect against what the target's log says, '' where both may be true.

    A sample is read while the run stands still: `in_flight` and `unknown` leave both open, the others don't.
    """
    if state in ("absent", "proposed", "withdrawn") and mutating:
        return f"{state}, and {mutating} requests arrived"
    if state == "committed" and applied != 1:
        return f"committed, and {applied} changes were made"
    if state == "failed" and applied:
        return f"failed ({cause}), and {applied} changes were made"
    return ""


def _samples(trial: Trial, facts: Facts) -> Found:
    """Not attempted, in flight, committed, failed and unknown were told apart at every look, and by the journal at every entry."""
    for sample in trial.samples:
        for effect in sample["effects"]:
            seen = sample["log"].get(effect["key"], {"mutating": 0, "applied": 0})
            against = contradiction(effect["state"], effect["cause"], seen["mutating"], seen["applied"])
            if against:
                yield STATE, f"{sample['label']}: {effect['name']} is {against}"
            wanted = sample["expect"].get(effect["name"])
            if wanted is not None and [effect["state"], seen["mutating"], seen["applied"]] != wanted:
                said = [effect["state"], seen["mutating"], seen["applied"]]
                yield STATE, f"{sample['label']}: {effect['name']} is {said} (state, requests, changes), not {wanted}"
        for name in sample["expect"].keys() - {effect["name"] for effect in sample["effects"]}:
            yield STATE, f"{sample['label']}: there is no effect {name}"
    yield from _believed_too_early(facts)
    for effect in facts.effects:
        yield from _moves(effect, facts, trial.passes.get(effect["name"], []))


def _believed_too_early(facts: Facts) -> Found:
    """Absent means "it never happened" only once the call can no longer arrive."""
    horizons = {(permit["effect_id"], permit["attempt"]): permit["answer_by"] for permit in facts.permits}
    for report in facts.reports:
        horizon = horizons.get((report["effect_id"], report["attempt"]))
        absent = report["kind"] == "lookup" and report["answer"] == "absent" and report["counted"]
        if absent and horizon is not None and report["reported_at"] < horizon:
            yield (
                STATE,
                f"absent was believed {horizon - report['reported_at']:.1f} s before the call's answer was overdue",
            )


def _moves(effect: Row, facts: Facts, passes: Sequence[str]) -> Found:
    """A lost call becomes unknown, never failed; and the effect went the way that this point makes it go."""
    states = []
    for entry in facts.entries:
        for change in json.loads(entry["content"])["changes"]:
            if change["object"] == f"effect:{effect['id']}" and "state" in change["fields"]:
                states.append((change["fields"]["state"], entry))
    way = iter(state for state, _ in states)
    if not all(state in way for state in passes):
        yield (
            STATE,
            f"{effect['name']} went {' → '.join(state for state, _ in states)}, not through {' → '.join(passes)}",
        )
    for (before, _), (after, entry) in pairwise(states):
        if before == "in_flight" and after == "failed" and entry["actor"].startswith("system:"):
            yield STATE, f"{effect['name']} went from in_flight to failed by {entry['actor']} at entry {entry['seq']}"
        if before == "committed" and after != "committed":
            yield STATE, f"{effect['name']} was committed and became {after} at entry {entry['seq']}"


def _at_the_end(trial: Trial, facts: Facts, log: Log) -> Found:
    assert facts.head is not None
    status = facts.head["status"]
    if status not in trial.ends:
        yield END, f"the run is {status}, not {' or '.join(trial.ends)}"
    if not any(log.mutating.get(effect["key"]) for effect in facts.effects):
        yield SILENT, f"the target logged nothing for order {trial.order}"
    for effect in facts.effects:
        mutating, applied = len(log.mutating.get(effect["key"], ())), log.applied.get(effect["key"], ())
        against = contradiction(effect["state"], effect["cause"], mutating, len(applied))
        if against and not effect["disputed"]:
            yield STATE, f"at the end {effect['name']} is {against}"
        if effect["state"] == "committed" and applied and effect["reference"] != applied[0].reference:
            yield (
                STATE,
                f"{effect['name']} is recorded as {effect['reference']}, the target calls it {applied[0].reference}",
            )
        if effect["state"] == "committed" and applied and effect["amount_minor"] not in (None, applied[0].amount_minor):
            yield (
                STATE,
                f"{effect['name']} is recorded with {effect['amount_minor']}, the target paid {applied[0].amount_minor}",
            )
    yield from _receipt(
        status, facts.state.get("receipt"), [one.reference for one in log.by_order.get(trial.order, ())]
    )
    if status == "completed" and len(log.by_order.get(trial.order, ())) != 1:
        yield (
            STATE,
            f"completed, and the log has {len(log.by_order.get(trial.order, ()))} refunds of order {trial.order}",
        )


def _receipt(status: str, receipt: Any, paid: Sequence[str]) -> Found:
    """The state that a run ends with has the payment as its target shows it, whichever way the agent came to know of it."""
    if status != "completed" or not paid or receipt is None:
        return
    if not isinstance(receipt, dict) or receipt.get("id") not in paid:
        yield STATE, f"the run ended with the receipt {str(receipt)[:80]}, the target knows {', '.join(paid)}"


def judge_all(trials: Sequence[Trial], record: Record, log: Log) -> list[Finding]:
    """All trials of a database; no trials, or a log without a single request, is a finding too."""
    found = [finding for trial in trials for finding in judge(trial, read_facts(record, trial.run), log)]
    if not trials:
        found.append(Finding(SILENT, "-", "there was no trial"))
    elif not any(log.mutating.values()):
        found.append(Finding(SILENT, "-", "the sandbox logged no request at all"))
    return found


def main(arguments: list[str]) -> int:
    """Judge a case that a harness wrote down: a JSON line for each finding; 1 when there is any."""
    case = json.loads(Path(arguments[0]).read_text())
    record = Record(case["database"], case["address"])
    found = judge_all(
        [Trial(**trial) for trial in case["trials"]], record, read_log(case["log_reader"], case["log_place"])
    )
    for finding in found:
        print(json.dumps(asdict(finding)))
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
