"""Many runs at once: read in one statement, each decided on by itself, written in one statement.

What a batch can't do (the record moved, somebody else held it, its rule raised) is left, and the verb for one run does it, or says why not. So a
batch is only ever faster: it decides nothing that the verb wouldn't, and one run can't spoil it for the others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from ledger.domain.change import Change
from ledger.services import writer

F = TypeVar("F")
A = TypeVar("A")

SIZE: Final = 20
"""Runs in one statement. It grows with them, and one that is always as long is planned once."""


def of(items: Sequence[F]) -> list[Sequence[F]]:
    """These items in batches. Which comes first differs by process, so that those that look at the same moment don't all begin with the same."""
    pieces = [items[start : start + SIZE] for start in range(0, len(items), SIZE)]
    first = os.getpid() % len(pieces) if pieces else 0
    return pieces[first:] + pieces[:first]


def settle_each(facts: Sequence[F], rule: Callable[[F], tuple[Change | None, A]]) -> list[tuple[A] | None]:
    """What `writer.settle` does, for facts of different streams: one round trip on PostgreSQL, and no second try.

    For each of the facts: the rule's answer, in a tuple, once its Change is written or where there is none. None for one that is left.
    """
    answers: list[tuple[A] | None] = []
    changes: dict[int, Change] = {}
    for number, each in enumerate(facts):
        try:
            change, answer = rule(each)
        except Exception:  # Whoever does it by itself meets the same, and says so by its id.
            answers.append(None)
            continue
        answers.append((answer,))
        if change is not None:
            changes[number] = change
    for number, written in zip(changes, writer.apply_each(list(changes.values())), strict=True):
        if written is None:
            answers[number] = None
    return answers
