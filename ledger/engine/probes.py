"""Ask targets for the versions of many resources at once: each once, a few at a time, and all of it by one deadline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import Final
from uuid import UUID

import structlog

from ledger.domain.effects import TargetRow
from ledger.engine.observe import Seen, Unseen, look, reason_of
from ledger.targets import http
from ledger.targets.breakers import BREAKERS, OPEN, Breakers

AT_ONCE: Final = 8
OF_ONE_TARGET: Final = AT_ONCE // 4
"""A silent target holds at most a quarter of the questions that are out at once, and what is asked of others goes on."""
ENOUGH: Final = 0.25
"""Of the whole time: a question that has less left isn't sent, since its silence would mean nothing."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Question:
    """What version has this resource of this target?"""

    target_id: UUID
    resource: str


def ask_all(
    wanted: Iterable[tuple[TargetRow, str]], at: datetime, seconds: float, breakers: Breakers = BREAKERS
) -> dict[Question, Seen | Unseen]:
    """The answer to each question; `at` is the record's clock before any was sent, `seconds` how long all of them may take.

    What isn't answered by then, or isn't asked because its target was silent lately, is `Unseen` with a code.
    """
    deadline = monotonic() + seconds
    targets = {Question(target.id, resource): target for target, resource in wanted}
    found: dict[Question, Seen | Unseen] = {}
    answers: SimpleQueue[tuple[Question, Seen | Unseen]] = SimpleQueue()
    waiting, out = list(targets), set[Question]()
    while True:
        left = deadline - monotonic()
        while left >= seconds * ENOUGH and (question := _next(waiting, out)) is not None:
            waiting.remove(question)
            if breakers.allows(question.target_id, monotonic()):
                out.add(question)
                Thread(target=_ask, args=(question, targets[question], at, left, answers), daemon=True).start()
            else:
                found[question] = Unseen(OPEN)
        try:
            question, answer = answers.get(timeout=max(0.0, left) if out else 0.0)
        except Empty:
            break
        out.remove(question)
        found[question] = answer
        breakers.note(question.target_id, reason_of(answer), monotonic())
    for question in out:
        breakers.silent(question.target_id, monotonic())
    return {question: found.get(question, Unseen("no-time-left")) for question in targets}


def _next(waiting: Sequence[Question], out: Collection[Question]) -> Question | None:
    """A question that may be sent beside those that are out."""
    if len(out) >= AT_ONCE:
        return None
    busy = Counter(question.target_id for question in out)
    return next((question for question in waiting if busy[question.target_id] < OF_ONE_TARGET), None)


def _ask(
    question: Question,
    target: TargetRow,
    at: datetime,
    seconds: float,
    answers: SimpleQueue[tuple[Question, Seen | Unseen]],
) -> None:
    """One question, in a thread of its own that touches no database."""
    answer: Seen | Unseen
    try:
        answer = look(target, question.resource, at, min(seconds, http.LONGEST_LOOK))
    except Exception as fault:
        _log.error("probe_failed", target=target.name, error=type(fault).__name__)
        answer = Unseen("look-failed")
    answers.put((question, answer))
