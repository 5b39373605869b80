"""A state machine is one table: state → event → the states it may lead to. Pages in the docs are generated from these tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from ledger.domain.errors import LedgerError

S = TypeVar("S", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Machine(Generic[S]):
    """`table[state][event]` lists the states that the event may lead to from there; what isn't listed is refused."""

    noun: str
    table: Mapping[S, Mapping[str, tuple[S, ...]]]

    def can(self, state: S, event: str) -> bool:
        return event in self.table[state]

    def step(self, state: S, event: str, to: S | None = None) -> S:
        """The state that `event` leads to. Raises LedgerError `wrong-state` where the table has no such move."""
        targets = self.table[state].get(event, ())
        if to is None and len(targets) == 1:
            return targets[0]
        if to is not None and to in targets:
            return to
        allowed = ", ".join(sorted(self.table[state])) or "nothing; this is final"
        raise LedgerError(
            "wrong-state",
            f"a {self.noun} that is {state} takes no '{event}'",
            f"Read it again; from {state} it takes: {allowed}.",
            state=str(state),
            event=event,
        )

    @property
    def final(self) -> frozenset[S]:
        return frozenset(state for state, moves in self.table.items() if not moves)
