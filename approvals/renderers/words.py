"""What a renderer is asked and answers, and what makes an answer fit to be shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from approvals.domain.money import Money

LONGEST_NAME = 60
RISKS = frozenset({"low", "medium", "high"})
MOST_LINES = 20
LENGTHS = {"headline": 200, "verb": 60, "risk_label": 80, "undo": 120, "warning": 500, "amount": 40}
MAY_BE_EMPTY = frozenset({"warning", "amount"})
LONGEST_LINE = 300


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked: the tool, the target's name, the resource there, the parsed final arguments, and what the target last showed of the
    resource. The last two are None when they aren't known or may not be shown."""

    tool: str
    target: str
    resource: str
    arguments: Any
    seen: Any = None


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that the call would change, in the renderer's words; None where it isn't there."""

    what: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Words:
    """`headline` is verb, object and place; `verb` names the button; `undo` says whether it can be taken back; `rated` is False for the default.

    `warning` is what speaks against it as far as the target was seen, '' for nothing. `differences` is what it would change, `reach` who and what
    else it touches, a line each. `amount` is the money that moves, for lists; '' where none does, or where it isn't known. `renderer` and `note`
    are ours: which renderer in which version answered, and why it isn't the tool's own.
    """

    headline: str
    verb: str
    risk: str
    risk_label: str
    undo: str
    rated: bool = True
    warning: str = ""
    amount: str = ""
    differences: tuple[Difference, ...] = ()
    reach: tuple[str, ...] = ()
    renderer: str = ""
    note: str = ""


def unfit(words: object) -> str:
    """Why an answer can't be shown, '' when it can: types, lengths, one-line headlines without hidden characters, a known risk."""
    if not isinstance(words, Words):
        return "it answered no words"
    told: Any = words  # What its fields say of their types, nobody has checked.
    for field, most in LENGTHS.items():
        text = getattr(told, field)
        if not isinstance(text, str) or len(text) > most or (not text and field not in MAY_BE_EMPTY):
            return f"its {field} is empty, too long or no text"
        if not text.isprintable():
            return f"its {field} has hidden characters"
    if told.risk not in RISKS:
        return "its risk is none of low, medium and high"
    return _unfit_lines(told)


def _unfit_lines(words: Any) -> str:
    if not isinstance(words.differences, tuple) or not isinstance(words.reach, tuple):
        return "its differences or its reach are no tuple"
    if len(words.differences) > MOST_LINES or len(words.reach) > MOST_LINES:
        return "it has too many lines"
    if not all(isinstance(each, Difference) for each in words.differences):
        return "its differences are none"
    texts = [text for each in words.differences for text in (each.before, each.after) if text is not None]
    texts += [*words.reach, *(each.what for each in words.differences)]
    if not all(isinstance(text, str) and 0 < len(text) <= LONGEST_LINE for text in texts):
        return "a line is empty, too long or no text"
    return ""


def amount(minor: Any, currency: Any) -> str:
    """Money from minor units: 4200 EUR is "42.00 EUR"; '' for anything that isn't plainly money."""
    money = Money.read({"amount_minor": minor, "currency": currency})
    return str(money) if money else ""


def name(value: Any) -> str:
    """A short name from the arguments, fit for a headline; '' for anything else."""
    if isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and value.isprintable():
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""
