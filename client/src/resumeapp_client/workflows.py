"""Workflows: a type, a version, a typed state, and transitions as decorated functions."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from pydantic import BaseModel, ValidationError

from resumeapp_client.errors import StateMismatch
from resumeapp_client.records import StateBody

if TYPE_CHECKING:
    from resumeapp_client.context import Context, Step

S = TypeVar("S", bound=BaseModel)
Function = Callable[["Context[S]", S], "Step"]
Upgrade = Callable[[str, dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Transition(Generic[S]):
    """One transition: its function, and what the ledger must know of it."""

    name: str
    function: Function[S]
    targets: tuple[str, ...]
    tools: tuple[str, ...]
    on_conflict: tuple[str, ...]


class Workflow(Generic[S]):
    """A version of a workflow. `takes_over_from` lists older versions whose runs this code can go on with. With `own_events` its waits also
    take what agents that have held the run emit; otherwise nobody answers their own wait."""

    def __init__(
        self,
        type: str,
        version: str,
        initial: str,
        state: type[S],
        takes_over_from: Sequence[str] = (),
        dependencies: Mapping[str, Any] | None = None,
        own_events: bool = False,
    ) -> None:
        self.type = type
        self.version = version
        self.initial = initial
        self.state = state
        self.takes_over_from = tuple(takes_over_from)
        self.dependencies = dict(dependencies or {})
        self.own_events = own_events
        self.transitions: dict[str, Transition[S]] = {}
        self._upgrade: Upgrade | None = None

    @overload
    def transition(self, function: Function[S]) -> Function[S]: ...

    @overload
    def transition(
        self, *, targets: Sequence[str] = (), tools: Sequence[str] = (), on_conflict: Sequence[str] = ("ask_again",)
    ) -> Callable[[Function[S]], Function[S]]: ...

    def transition(
        self,
        function: Function[S] | None = None,
        *,
        targets: Sequence[str] = (),
        tools: Sequence[str] = (),
        on_conflict: Sequence[str] = ("ask_again",),
    ) -> Any:
        """Declare a transition, named as its function: the targets and tools it may use, and what a moved world leads to:
        `("ask_again",)`, `("replan", transition)` or `("hand_off",)`."""

        def declare(function: Function[S]) -> Function[S]:
            name = function.__name__
            if name in self.transitions:
                raise ValueError(f"the transition {name!r} is declared twice")
            self.transitions[name] = Transition(name, function, tuple(targets), tuple(tools), tuple(on_conflict))
            return function

        return declare if function is None else declare(function)

    def upgrade(self, function: Upgrade) -> Upgrade:
        """Declare how a state written by an older version becomes one of this; called with that version and a dict."""
        self._upgrade = function
        return function

    def spec(self) -> dict[str, Any]:
        """What `register` sends. Raises ValueError where a named transition isn't declared."""
        self.require(self.initial)
        for transition in self.transitions.values():
            if transition.on_conflict[0] == "replan":
                self.require(transition.on_conflict[-1])
        return {
            "state_schema": self.state.model_json_schema(by_alias=True),
            "initial": self.initial,
            "transitions": {
                name: {
                    "targets": list(transition.targets),
                    "tools": list(transition.tools),
                    "on_conflict": list(transition.on_conflict),
                }
                for name, transition in sorted(self.transitions.items())
            },
            "takes_over_from": list(self.takes_over_from),
            "dependencies": self.dependencies,
            **({"own_events": True} if self.own_events else {}),
        }

    def require(self, transition: str) -> Transition[S]:
        """The transition of that name. Raises ValueError."""
        found = self.transitions.get(transition)
        if found is None:
            known = ", ".join(sorted(self.transitions)) or "none"
            raise ValueError(f"{self.type} {self.version} declares no transition {transition!r} (declared: {known})")
        return found

    def code_digest(self) -> str:
        """SHA-256 over the source of the modules that the transitions, the state and the upgrade come from; hex."""
        parts: set[Any] = {self.state, *(transition.function for transition in self.transitions.values())}
        if self._upgrade is not None:
            parts.add(self._upgrade)
        sources = sorted({_source(part) for part in parts})
        return hashlib.sha256("\x00".join([self.type, self.version, *sources]).encode()).hexdigest()

    def dump(self, state: S) -> dict[str, Any]:
        """The state as JSON."""
        return state.model_dump(mode="json", by_alias=True)

    def load(self, version: str, text: str) -> S:
        """The typed state of a checkpoint written under `version`. Raises StateMismatch where it doesn't fit wholly:
        a field this code doesn't know would be lost with the next commit, so that is a mismatch too."""
        data = json.loads(text)
        if version != self.version:
            if version not in self.takes_over_from:
                raise _mismatch(self, version, "this version doesn't take over from that one")
            if self._upgrade is not None:
                data = self._upgrade(version, data)
        unknown = set(data) - _fields(self.state)
        if unknown and self.state.model_config.get("extra") != "allow":
            raise _mismatch(self, version, f"the state has fields this code doesn't know: {', '.join(sorted(unknown))}")
        try:
            return self.state.model_validate(data)
        except ValidationError as error:
            places = ", ".join(".".join(map(str, item["loc"])) or "the whole" for item in error.errors())
            raise _mismatch(self, version, f"the state doesn't fit the model at {places}") from None


def verified(body: StateBody) -> str:
    """The state's text, checked against its commitment before anything decodes it. Raises StateMismatch."""
    try:
        whole = (
            hashlib.sha256(bytes.fromhex(body.salt) + body.json_text.encode()).hexdigest() == body.commitment.lower()
        )
    except ValueError:
        whole = False
    if not whole:
        raise StateMismatch(
            "state-damaged",
            "the checkpoint's state doesn't match its commitment",
            "Verify the run on the server; nothing was decoded or run.",
        )
    return body.json_text


def _fields(model: type[BaseModel]) -> set[str]:
    names: set[str] = set()
    for name, field in model.model_fields.items():
        names |= {name, field.alias or name}
        if isinstance(field.validation_alias, str):
            names.add(field.validation_alias)
    return names


def _mismatch(workflow: Workflow[Any], version: str, reason: str) -> StateMismatch:
    return StateMismatch(
        "state-mismatch",
        f"{workflow.type} {workflow.version} can't go on with a state of version {version}: {reason}",
        "Give the workflow an upgrade hook, keep a worker of the old version, or migrate the run.",
        facts={"version": version, "code": workflow.version},
    )


def _source(part: Any) -> str:
    for thing in (inspect.getmodule(part), part):
        try:
            return inspect.getsource(thing)  # type: ignore[arg-type] # None is a TypeError, as it should be
        except (TypeError, OSError):
            continue
    code = getattr(part, "__code__", None)
    return repr((part.__qualname__, code.co_code.hex() if code else ""))
