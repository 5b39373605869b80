"""Resume packets as Markdown: a pure function of the packet, in a fixed order, with untrusted text fenced as data."""

from __future__ import annotations

import re

from ledger.domain.canonical import rfc3339
from ledger.domain.effects import EffectState
from ledger.services.packets import EffectFacts, Packet

_TICKS = re.compile(r"`+")
_GROUPS = (
    ("Done", frozenset({EffectState.COMMITTED})),
    ("Not done", frozenset({EffectState.PROPOSED, EffectState.FAILED, EffectState.WITHDRAWN, EffectState.WRITTEN_OFF})),
    ("Unknown: don't issue again, the ledger finds out", frozenset({EffectState.UNKNOWN, EffectState.IN_FLIGHT})),
)


def packet(read: Packet) -> str:
    """The packet's text: the same bytes for the same checkpoint and clearance. Text ends with a line feed."""
    parts = [
        f"# Resume packet of run {read.run.id}",
        _objective(read),
        _why(read),
        _effects(read),
        _decided(read),
        _next(read),
        _handles(read),
    ]
    return "\n\n".join(parts) + "\n"


def fenced(text: str, language: str = "") -> str:
    """A block that its own content can't end."""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _objective(read: Packet) -> str:
    return (
        f"## Objective\n\nWorkflow {read.workflow}, version {read.head.version}. The task, as data:\n\n"
        f"{fenced(read.run.task, 'text')}\n\nThe state of checkpoint {read.checkpoint['seq']}, as data:\n\n"
        f"{fenced(read.state.text, 'json')}"
    )


def _why(read: Packet) -> str:
    if read.wait is None:
        return "## Why it paused\n\nIt hasn't waited for anything."
    wait = read.wait.row
    lines = [f"## Why it paused\n\nWait {wait.id} is {wait.state}{f' ({wait.cause})' if wait.cause else ''}."]
    for member in read.wait.members:
        about = f" for effect {member.effect_id}" if member.effect_id else ""
        event = read.wait.events.get(member.event_id) if member.event_id else None
        named = f", event {event['event_id']!r}" if event else ""
        lines.append(f"- {member.kind}{about}: {member.outcome or 'open'}{named}")
        if event and event["data"] is not None:
            lines.append(fenced(event["data"].decode("utf-8", "replace"), "json"))
        if member.effect_id and (said := read.wait.reasons.get(member.effect_id)):
            lines.append(f"Whoever denied it said, as data:\n\n{fenced(said, 'text')}")
    return "\n".join(lines)


def _effects(read: Packet) -> str:
    lines = ["## Effects"]
    for title, states in _GROUPS:
        found = sorted(
            (each for each in read.effects if each.row.state in states),
            key=lambda each: (each.row.name, str(each.row.id)),
        )
        lines.append(f"\n### {title}\n")
        lines += [_effect(read, each) for each in found] or ["None."]
    return "\n".join(lines)


def _effect(read: Packet, each: EffectFacts) -> str:
    row = each.row
    cause = f" ({row.cause})" if row.cause else ""
    reference = f", reference {row.reference!r}" if row.reference else ""
    text = f"- {row.name}: {row.state}{cause}, attempt {row.attempt}, tool {row.tool} at {each.target}, effect {row.id}{reference}"
    if not read.holds(each):
        text += ", of an earlier instance"
    if row.carried_to:
        text += (
            f"\n  Called by {row.carried_to} under the plan before this one: don't propose it again. To say that you know of it, accept it by its"
            f" name; any further act, one of the same content too, needs another name until {row.carried_to} has been left once more."
        )
    if why := read.without.get(row.id):
        text += f"\n  A person let the run go on without it ({why}): don't try it again."
    return text if each.result is None else f"{text}\n{fenced(each.result.decode('utf-8', 'replace'), 'json')}"


def _decided(read: Packet) -> str:
    if read.decision is None:
        return "## Decided\n\nNo wake decision stands behind this clearance."
    reasons = ", ".join(map(str, read.decision["reasons"])) or "none"
    return f"## Decided\n\n{read.decision['decision']} (decision {read.decision['id']}). Reasons: {reasons}."


def _next(read: Packet) -> str:
    clearance = read.clearance
    if clearance is None:
        return f"## Next\n\nTransition {read.head.transition}, instance {read.head.instance_id}. Not cleared."
    return (
        f"## Next\n\nTransition {clearance.transition}, instance {clearance.instance_id}, clearance {clearance.id}, good until"
        f" {rfc3339(clearance.valid_until)}.\n- tools: {', '.join(clearance.tools) or 'none named'}\n"
        f"- targets: {', '.join(clearance.targets) or 'none named'}\n- versions: {', '.join(clearance.versions)}"
    )


def _handles(read: Packet) -> str:
    base = f"/api/v1/runs/{read.run.id}"
    return (
        f"## Handles\n\n- {base}\n- {base}/checkpoints/{read.checkpoint['seq']}\n- {base}/decisions\n- {base}/journal"
    )
