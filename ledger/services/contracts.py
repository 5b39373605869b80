"""What a writing function promises: what it moves, what if it runs twice, what if the process dies right after it.

The promises stand at the functions; `docs/concurrency.md` is written from them, and a convention test finds a writing function without one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

NO_ENTRY: Final = "Changes nothing and writes no entry."
REFUSED: Final = "The second is refused: `wrong-state`."
WHOLE: Final = "The act and its entry are one transaction: both are there or neither."
ANOTHER: Final = "Makes another one, with an entry of its own."


@dataclass(frozen=True, slots=True)
class Contract:
    """One function's promises, as sentences for the reader of `docs/concurrency.md`."""

    module: str
    name: str
    moves: str
    twice: str
    dies: str


_contracts: Final[dict[tuple[str, str], Contract]] = {}


def writes(*, moves: str, twice: str, dies: str = WHOLE) -> Callable[[F], F]:
    """Say of a public writing function what it moves from where to where, what a second run does, and what a death right after it leaves."""

    def promised(function: F) -> F:
        contract = Contract(function.__module__, function.__qualname__, moves, twice, dies)
        _contracts[(contract.module, contract.name)] = contract
        return function

    return promised


def contracts() -> list[Contract]:
    """Every promise of the modules that are loaded, in the order of their definition within a module."""
    return list(_contracts.values())
