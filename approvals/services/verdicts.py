"""What a person may say of an effect whose outcome is open or in doubt, what each answer causes, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from approvals.templatetags.console import visible_text as shown
from ledger.domain.effects import OPEN, RETRYABLE, EffectRow, EffectState, ReportKind, TargetRow, horizon
from ledger.models import Effect, EffectReport
from ledger.services import effects, facts

REFERENCE = "reference"
"""The verdict that leaves the outcome and gives another reference."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to settle by hand, and what it causes. `possible_from` is set while nobody can know that yet."""

    value: str
    label: str
    causes: str
    needs_reference: bool = False
    possible_from: datetime | None = None


def again(effect: Effect) -> str:
    """Whether a call that was not done may be sent again, and what a person has to do with it."""
    if effect.state == EffectState.COMMITTED:
        flagged = "it is flagged as disputed, and a person says which account holds."
        return f"It stays recorded as done; {flagged if effect.disputed else 'nothing is sent again.'}"
    target = shown(effect.target.name)
    why = effects.needs_a_person(effect.pk)
    if why == "no_keys":
        return f"{target} knows no keys, so only a person may have it sent once more."
    if why == "key_forgotten":
        return f"{target} may have forgotten its key, so only a person may have it sent once more."
    if effects.once_more(effect.pk):
        return "A person found so: the agent may send it once more, and no further time without another such finding."
    return "The agent may send it again, with the same key." if effect.target.keyed else "The agent may send it again."


def _once_more(effect: Effect) -> str:
    name, target = shown(effect.name), shown(effect.target.name)
    if not effect.target.keyed:
        return f"The agent may send “{name}” once more. {target} knows no keys: be sure, or it happens twice."
    return (
        f"The agent may send “{name}” again, with the same key; once more where {target} may have forgotten it: be sure"
        " then, or it happens twice."
    )


def _looked_up(effect: Effect) -> str:
    return " and is looked up" if effect.target.lookup is not None else ""


def judged(effect: Effect, verdict: str) -> str:
    """What came of a person's verdict on an effect, which is as it stands since."""
    if verdict == REFERENCE:
        return f"Recorded: it stands under {shown(effect.reference)}. The reference before stays in the record."
    if verdict == "committed" and effect.state != EffectState.COMMITTED:
        return f"Recorded: you found that it was done. Its outcome is open again{_looked_up(effect)}."
    if verdict == "committed":
        return "Recorded: it was done. Nothing is sent again."
    if verdict == "rejected":
        return "Recorded: it was refused for good."
    found = "you found that it was not done" if effect.state == EffectState.COMMITTED else "it was not done"
    return f"Recorded: {found}. {again(effect)}"


def _sent_again(effect: Effect) -> str:
    return _once_more(effect) if effect.cause in RETRYABLE else "Nothing is sent again."


def choices(effect: Effect) -> tuple[Choice, ...]:
    """What a person may say of this effect now, with what each answer causes."""
    name = shown(effect.name)
    done = Choice("committed", "It was done", "The run will see it as done and go on; nothing is sent again.", True)
    absent = Choice("confirmed_absent", "It was not done", _once_more(effect))
    refused = Choice(
        "rejected", "It was refused for good", f"“{name}” is final as not done. Trying again needs a new proposal."
    )
    if effect.state == EffectState.UNKNOWN and effect.disputed:
        apart = "It is about the last attempt; what was told of an earlier one stays disputed. Nothing is sent again."
        done = replace(done, causes="The dispute is over as well: the run goes on and nothing is sent again.")
        return done, replace(absent, causes=apart, possible_from=_arrives_until(effect))
    if effect.state == EffectState.UNKNOWN:
        until = _arrives_until(effect)
        return done, replace(absent, possible_from=until), replace(refused, possible_from=until)
    if effect.disputed and effect.state not in OPEN:
        absent = replace(absent, possible_from=_arrives_until(effect))
        closes = f"The dispute is over, and {_goes_on(effect)}."
        if effect.state == EffectState.FAILED:
            anew = f"The dispute is over. It becomes unknown again{_looked_up(effect)}."
            return replace(done, causes=anew), replace(absent, causes=f"{closes} {_sent_again(effect)}")
        return _accounts(effect, done, absent)
    if effect.state == EffectState.FAILED and effect.attempt:
        after_all = Choice("committed", "It was done after all", f"It becomes unknown again{_looked_up(effect)}.", True)
        if not effects.needs_a_person(effect.pk):
            return (after_all,)
        return after_all, replace(absent, possible_from=_arrives_until(effect))
    if effect.state == EffectState.COMMITTED and not effect.disputed:
        causes = "It stays recorded as done, flagged as disputed, and is handed to a person."
        denied = Choice("confirmed_absent", "It was not done", causes)
        return (denied, _another(effect)) if _by_hand(effect) else (denied,)
    return ()


def _accounts(effect: Effect, done: Choice, absent: Choice) -> tuple[Choice, ...]:
    """Which of two accounts of a call that is recorded as done holds."""
    over = f"The dispute is over, and {_goes_on(effect)}. Nothing is sent again."
    stands = f"It stays recorded as done{f' under {shown(effect.reference)}' if effect.reference else ''}. {over}"
    found = f"It stays recorded as done, with your finding that it was not, which counts from now on. {over}"
    return replace(done, causes=stands, needs_reference=not effect.reference), replace(absent, causes=found)


def _goes_on(effect: Effect) -> str:
    return "what waits for it goes on" if effect.run.head.ended_at is None else "the run stays ended as it is"


def _another(effect: Effect) -> Choice:
    causes = "It stays done, under the reference that you give. The one that it has now stays in the record."
    return Choice(REFERENCE, "It was done, and its reference is another", causes, True)


def _by_hand(effect: Effect) -> bool:
    """Is the call's reference a person's word, which another one may correct?"""
    counted = EffectReport.objects.of(effect.tenant_id).filter(effect=effect, counted=True)
    last = counted.order_by("-ordinal").values_list("kind", "reference").first()
    return effect.held != EffectState.FAILED and last == (ReportKind.VERDICT, effect.reference)


def _arrives_until(effect: Effect) -> datetime | None:
    """Until when a call may still arrive, or not show yet; nothing once that is over."""
    until = horizon(facts.load(EffectRow, vars(effect)), facts.load(TargetRow, vars(effect.target)))
    return until if until is not None and facts.read().now < until else None
