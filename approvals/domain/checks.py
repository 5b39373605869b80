"""What a wake check compared, in a short phrase for each side. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from ledger.domain.phrases import GRANTS, unseen, words

LONGEST = 20
"""Characters of a foreign version that stand in a cell; a longer one is cut, with the whole of it on demand."""


class Checked(Protocol):
    """A wake check as it was written."""

    name: str
    answer: str
    reason: str
    recorded: str
    observed: str


@dataclass(frozen=True, slots=True)
class Phrases:
    """Both sides, and the bare value behind each where the phrase isn't the whole of it."""

    recorded: str
    observed: str
    recorded_value: str = ""
    observed_value: str = ""


def phrases(check: Checked) -> Phrases:
    """The two sides of a check; a check that no table knows is shown by its own words, and no side is empty."""
    return _PHRASES.get(check.name, _other)(check)


def _other(check: Checked) -> Phrases:
    return Phrases(check.recorded or "nothing recorded", check.observed or words(check.reason) or "nothing observed")


def _integrity(check: Checked) -> Phrases:
    if check.answer == "pass":
        return Phrases("digest of the last checkpoint", "recomputed, the same")
    return Phrases("digest of the last checkpoint", words(check.reason), check.recorded, check.observed)


def _attempts(check: Checked) -> Phrases:
    return Phrases(f"at most {check.recorded}", f"{check.observed} of {check.recorded}")


def _code(check: Checked) -> Phrases:
    made = f"checkpoint of version {check.recorded}"
    if check.answer == "fail":
        return Phrases(made, "no version takes it over")
    if check.answer == "changed":
        return Phrases(made, f"version {check.observed} doesn’t take it over, an older one may")
    newest = f"the newest, version {check.observed}"
    return Phrases(
        made, f"{newest}, goes on" if check.observed == check.recorded else f"{newest}, may go on with it too"
    )


def _deadline(check: Checked) -> Phrases:
    if check.reason == "none":
        return Phrases("no deadline", "none to keep")
    if check.answer == "pass":
        return Phrases("the deadline of its wait", "kept")
    return Phrases(_moment(check.recorded) or "the deadline of its wait", "passed")


def _effects(check: Checked) -> Phrases:
    if check.answer == "pass":
        return Phrases("calls of the run", "every outcome known")
    return Phrases(f"call {words(check.recorded)}" if check.recorded else "calls of the run", "an outcome is unknown")


def _dispute(check: Checked) -> Phrases:
    return Phrases(f"recorded as {words(check.recorded)}", "newer evidence says otherwise")


def _plan(check: Checked) -> Phrases:
    return Phrases(f"called: {check.recorded}", "more than once each under this plan")


_RETRIES = {
    "may_be_tried": "may be tried again",
    "no_keys": "the target knows no keys",
    "key_forgotten": "the target may have forgotten the key",
    "asked_and_refused": "leave was asked for and not given",
}


def _retry(check: Checked) -> Phrases:
    return Phrases(f"failed: {words(check.recorded)}", _RETRIES.get(check.reason, words(check.reason)))


def _identity(check: Checked) -> Phrases:
    return Phrases("agent and principal active", "active" if check.answer == "pass" else words(check.reason))


def _policy(check: Checked) -> Phrases:
    rule = {"approve": "a person must approve", "allow": "allowed outright", "denied": "not allowed"}
    said = rule.get(check.reason, words(check.reason))
    return Phrases("the present policy counts", f"policy {check.observed}: {said}")


def _grant(check: Checked) -> Phrases:
    if check.reason == "not_needed":
        return Phrases("no approval needed", "none needed")
    recorded = "approved exactly this" if check.recorded else "no approval"
    if check.answer == "pass":
        return Phrases(recorded, "still this, still good")
    found = GRANTS.get(check.reason, words(check.reason))
    if check.recorded == check.observed:
        return Phrases(recorded, found)
    return Phrases(recorded, found, check.recorded, check.observed)


def _target(check: Checked) -> Phrases:
    recorded, recorded_value = _version(check.recorded, "nobody had looked")
    if check.answer == "pass":
        told = "another version, all that matters unchanged" if check.reason == "immaterial" else "unchanged"
        return Phrases(recorded, told, recorded_value, "" if check.observed == check.recorded else check.observed)
    if not check.observed:
        return Phrases(recorded, unseen(check.reason) or "couldn’t be seen", recorded_value)
    version, *fields = check.observed.split(" /")
    observed, observed_value = _version(version, "")
    named = f", moved: {', '.join(fields)}" if fields else ""
    return Phrases(recorded, observed + named, recorded_value, observed_value)


def _version(text: str, otherwise: str) -> tuple[str, str]:
    if not text:
        return otherwise, ""
    if len(text) <= LONGEST:
        return f"version {text}", ""
    return f"version {text[:8]}…", text


def _moment(text: str) -> str:
    try:
        return f"{datetime.fromisoformat(text).astimezone(UTC):%-d %b %Y, %H:%M} UTC"
    except ValueError:
        return ""


_PHRASES: Mapping[str, Callable[[Checked], Phrases]] = {
    "integrity": _integrity,
    "attempts": _attempts,
    "code": _code,
    "deadline": _deadline,
    "effects": _effects,
    "dispute": _dispute,
    "plan": _plan,
    "retry": _retry,
    "identity": _identity,
    "policy": _policy,
    "grant": _grant,
    "target": _target,
}
