"""Faults that a test arms for requests to come: what each does, whom it meets, how often."""

import threading
from dataclasses import dataclass, field
from enum import StrEnum

from examples.sandbox.messages import JSON, Problem, Reply, Request, only_fields


class Fault(StrEnum):
    """Everything that can be armed."""

    TIMEOUT_BEFORE_APPLY = "timeout_before_apply"
    TIMEOUT_AFTER_APPLY = "timeout_after_apply"
    RESET_MID_BODY = "reset_mid_body"
    ERROR_500_APPLIED = "error_500_applied"
    ERROR_500_NOT_APPLIED = "error_500_not_applied"
    CONFLICT_409 = "conflict_409"
    UNPROCESSABLE_422 = "unprocessable_422"
    THROTTLED_429 = "throttled_429"
    UNAUTHORISED_401 = "unauthorised_401"
    TRUNCATED_BODY = "truncated_body"
    WRONG_REFERENCE = "wrong_reference"
    SLOW = "slow"
    KEY_FORGOTTEN = "key_forgotten"
    DOUBLED_REPLY = "doubled_reply"
    LYING_200 = "lying_200"
    ABSENT_FIRST = "absent_first"
    CANNOT_TELL_FIRST = "cannot_tell_first"
    IN_PROGRESS_FIRST = "in_progress_first"
    OUTCOME_REFUSED = "outcome_refused"
    OUTCOME_PENDING = "outcome_pending"
    OUTCOME_OTHER_AMOUNT = "outcome_other_amount"
    BLOCK_BEFORE_APPLY = "block_before_apply"
    BLOCK_AFTER_APPLY = "block_after_apply"


LOOK_UPS = {Fault.ABSENT_FIRST, Fault.CANNOT_TELL_FIRST, Fault.IN_PROGRESS_FIRST}
OUTCOMES = {Fault.OUTCOME_REFUSED, Fault.OUTCOME_PENDING, Fault.OUTCOME_OTHER_AMOUNT}
BLOCKS = {Fault.BLOCK_BEFORE_APPLY, Fault.BLOCK_AFTER_APPLY}
_ANY_TARGET = ("/refunds", "/wires", "/notes")

REFUSALS: dict[Fault, Reply] = {
    Fault.ERROR_500_NOT_APPLIED: Reply(500, {"error": "internal", "remedy": "ask by key what became of it"}),
    Fault.CONFLICT_409: Reply(409, {"error": "idempotency_key_in_progress", "remedy": "ask by key later"}),
    Fault.UNPROCESSABLE_422: Reply(422, {"error": "unprocessable", "remedy": "correct the request"}),
    Fault.UNAUTHORISED_401: Reply(
        401,
        {"error": "unauthorised", "remedy": "send valid credentials"},
        {"WWW-Authenticate": "Bearer"},
    ),
    Fault.CANNOT_TELL_FIRST: Reply(503, {"error": "unavailable", "remedy": "ask later"}, {"Retry-After": "1"}),
}


@dataclass(slots=True)
class Armed:
    """One armed fault. ``times`` counts requests, or with ``each_key`` the requests of each key."""

    id: int
    fault: Fault
    times: int = 1
    key: str | None = None
    method: str | None = None
    path: str | None = None
    seconds: float = 30.0
    retry_after: int = 1
    amount_minor: int | None = None
    each_key: bool = False
    used: dict[str, int] = field(default_factory=dict)

    def matches(self, request: Request) -> bool:
        """Whether it still has a turn for this request."""
        if request.method != (self.method or ("GET" if self.fault in LOOK_UPS else "POST")):
            return False
        if self.path is None:
            if request.path not in _ANY_TARGET or (self.fault in LOOK_UPS and not request.key):
                return False
        elif not request.path.startswith(self.path):
            return False
        if self.key is not None and request.key != self.key:
            return False
        return self.used.get(self._count(request), 0) < self.times

    def use(self, request: Request) -> None:
        """Take one turn."""
        count = self._count(request)
        self.used[count] = self.used.get(count, 0) + 1

    def _count(self, request: Request) -> str:
        return request.key if self.each_key else ""

    def as_json(self) -> JSON:
        """What the control plane tells about it."""
        return {
            "id": self.id,
            "fault": self.fault.value,
            "times": self.times,
            "key": self.key,
            "method": self.method,
            "path": self.path,
            "each_key": self.each_key,
            "used": sum(self.used.values()),
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """What was taken for one request: at most one block, one outcome and one fault, together."""

    block: Armed | None = None
    outcome: Armed | None = None
    fault: Armed | None = None

    @property
    def kind(self) -> Fault | None:
        """The fault proper, if any."""
        return self.fault.fault if self.fault else None

    def names(self) -> str:
        """All that was taken, for the log."""
        return " ".join(armed.fault.value for armed in (self.block, self.outcome, self.fault) if armed)


class Faults:
    """The armed faults, in the order in which they were armed; not kept over a restart."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._armed: list[Armed] = []
        self._next = 1

    def arm(self, body: JSON) -> Armed:
        """Arm what a control request describes, or refuse it with 400."""
        only_fields(body, {"fault"}, set(_READERS))
        if body["fault"] not in list(Fault):
            raise Problem(400, "unknown_fault", f"one of {', '.join(Fault)}")
        values = {name: _read(name, body[name]) for name in body if name != "fault"}
        with self._lock:
            armed = Armed(self._next, Fault(str(body["fault"])), **values)  # type: ignore[arg-type]
            self._next += 1
            self._armed.append(armed)
        return armed

    def take(self, request: Request) -> Plan:
        """Take the first matching fault of each family for a request."""
        with self._lock:
            if not self._armed:
                return Plan()
            taken: list[Armed | None] = []
            for family in (BLOCKS, OUTCOMES, set(Fault) - BLOCKS - OUTCOMES):
                found = next(
                    (one for one in self._armed if one.fault in family and one.matches(request)),
                    None,
                )
                if found:
                    found.use(request)
                taken.append(found)
            return Plan(*taken)

    def all(self) -> list[JSON]:
        """All armed faults, used up or not."""
        with self._lock:
            return [armed.as_json() for armed in self._armed]

    def clear(self) -> None:
        """Disarm everything."""
        with self._lock:
            self._armed.clear()


_READERS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "times": (int, "a whole number of at least 1"),
    "key": (str, "an idempotency key"),
    "method": (str, "an HTTP method"),
    "path": (str, "the beginning of a path"),
    "seconds": ((int, float), "seconds"),
    "retry_after": (int, "whole seconds"),
    "amount_minor": (int, "minor units of at least 1"),
    "each_key": (bool, "true or false"),
}


def _read(name: str, value: object) -> object:
    kind, meaning = _READERS[name]
    wrong = not isinstance(value, kind) or (kind is not bool and isinstance(value, bool))
    if wrong or (name in ("times", "amount_minor") and isinstance(value, int) and value < 1):
        raise Problem(400, "bad_field", f"{name} is {meaning}")
    return value
