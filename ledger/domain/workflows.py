"""Workflow versions: what a registration must say, and its digest. No clock, no I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledger.domain.canonical import digest
from ledger.domain.errors import LedgerError

NAME = re.compile(r"[a-z][a-z0-9_-]{0,79}")
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,39}")
CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]*")
"""How effects, tools and targets are named: nothing that could be a sentence."""
CONFLICT_ACTIONS = ("ask_again", "replan", "hand_off")


@dataclass(frozen=True, slots=True)
class VersionSpec:
    """A registration: `transitions` maps a name to {targets, tools, on_conflict}. With `own_events` its waits take what the run's own agents emit."""

    state_schema: Mapping[str, Any]
    initial: str
    transitions: Mapping[str, Mapping[str, Any]]
    takes_over_from: tuple[str, ...] = ()
    dependencies: Mapping[str, str] | None = None
    own_events: bool = False

    def digest(self) -> bytes:
        """SHA-256 over everything registered: another content is another digest. What isn't said isn't in it."""
        return digest(
            "workflow-version/1",
            {
                "state_schema": self.state_schema,
                "initial": self.initial,
                "transitions": self.transitions,
                "takes_over_from": sorted(self.takes_over_from),
                "dependencies": dict(self.dependencies or {}),
                **({"own_events": True} if self.own_events else {}),
            },
        )


def check(type_name: str, version: str, spec: VersionSpec) -> None:
    """Refuse a registration that no run could follow. Raises LedgerError `invalid` with the place."""
    _named(NAME, type_name, "the workflow's name", "lower-case letters, digits, - and _")
    for each in (version, *spec.takes_over_from):
        _named(VERSION, each, "the version", "letters, digits, . _ + and -")
    if not spec.transitions:
        raise _invalid("transitions is empty", "Declare at least the initial transition.")
    if spec.initial not in spec.transitions:
        raise _invalid(f"initial names {spec.initial[:80]!r}, which isn't declared", "Name one of the transitions.")
    for name, declared in spec.transitions.items():
        _named(NAME, name, "a transition's name", "lower-case letters, digits, - and _")
        _check_transition(name, declared, spec.transitions)


def _check_transition(name: str, declared: Mapping[str, Any], transitions: Mapping[str, Any]) -> None:
    unknown = declared.keys() - {"targets", "tools", "on_conflict"}
    if unknown:
        raise LedgerError(
            "unknown-field",
            f"transition {name} has unknown fields: {', '.join(sorted(unknown))[:120]}",
            "Leave them out.",
        )
    for field in ("targets", "tools"):
        value = declared.get(field, [])
        if not isinstance(value, list) or not all(isinstance(item, str) and CODE.fullmatch(item) for item in value):
            raise _invalid(
                f"transition {name}: {field} isn't a list of names",
                "Send a list of codes: letters, digits, and . _ : / - after the first of them.",
            )
    conflict = declared.get("on_conflict", ["ask_again"])
    if not isinstance(conflict, list) or not conflict or conflict[0] not in CONFLICT_ACTIONS:
        raise _invalid(f"transition {name}: on_conflict isn't known", f"Use one of {', '.join(CONFLICT_ACTIONS)}.")
    if conflict[0] == "replan" and (len(conflict) != 2 or conflict[1] not in transitions):
        raise _invalid(f"transition {name}: replan names no declared transition", 'Write ["replan", "<transition>"].')


def _named(pattern: re.Pattern[str], text: object, what: str, of: str) -> None:
    if not isinstance(text, str) or not pattern.fullmatch(text):
        raise _invalid(f"{what} isn't usable", f"Use {of}, at most {80 if pattern is NAME else 40} characters.")


def _invalid(reason: str, remedy: str) -> LedgerError:
    return LedgerError("invalid", reason, remedy)
