"""The way of one request: log it, take its faults, apply it, say what is to be sent."""

import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from examples.sandbox import log, notes, orders, pages, refunds
from examples.sandbox.faults import REFUSALS, Armed, Fault, Faults, Plan
from examples.sandbox.holds import Holds, Verdict
from examples.sandbox.messages import (
    Call,
    Delivery,
    Handler,
    Manner,
    Problem,
    Reply,
    Request,
    problem_reply,
    read_json,
)
from examples.sandbox.store import Store, now

_ORDER = r"/orders/([A-Za-z0-9._~-]{1,100})"
ROUTES: list[tuple[str, re.Pattern[str], Handler]] = [
    ("GET", re.compile(r"/"), pages.index),
    ("GET", re.compile(r"/orders"), orders.list_all),
    ("GET", re.compile(_ORDER), orders.get),
    ("PUT", re.compile(_ORDER), orders.put),
    ("PATCH", re.compile(_ORDER), orders.patch),
    ("POST", re.compile(_ORDER), orders.edit_form),
    ("GET", re.compile(r"/refunds"), refunds.look_up),
    ("POST", re.compile(r"/refunds"), refunds.post_refund),
    ("GET", re.compile(r"/refunds/([A-Za-z0-9_]{1,40})"), refunds.get_refund),
    ("POST", re.compile(r"/wires"), refunds.post_wire),
    ("GET", re.compile(r"/notes"), notes.look_up),
    ("POST", re.compile(r"/notes"), notes.post),
]
_KEYED = ("/refunds", "/notes")


class KeysAtWork:
    """The keys whose request is being worked on; a second request with one is told to wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: set[tuple[str, str]] = set()

    def holds(self, path: str, key: str) -> bool:
        """Whether a request with the key is being worked on."""
        with self._lock:
            return (path, key) in self._keys

    @contextmanager
    def claim(self, request: Request) -> Iterator[bool]:
        """True for the one request of a key that may go on; always where there is no key."""
        mark = (request.path, request.key)
        if request.method != "POST" or request.path not in _KEYED or not request.key:
            yield True
            return
        with self._lock:
            first = mark not in self._keys
            if first:
                self._keys.add(mark)
        try:
            yield first
        finally:
            if first:
                with self._lock:
                    self._keys.discard(mark)


@dataclass(frozen=True, slots=True)
class World:
    """Everything that requests share."""

    store: Store
    faults: Faults = field(default_factory=Faults)
    holds: Holds = field(default_factory=Holds)
    keys: KeysAtWork = field(default_factory=KeysAtWork)


def answer(world: World, request: Request) -> Delivery:
    """Log a request durably, act on it as its faults say, and return what is to be sent."""
    at = now()
    with world.store.transaction() as tx:
        seq = log.write_request(
            tx,
            at=at,
            method=request.method,
            path=request.path,
            query=request.query,
            key=request.key,
            headers=dict(request.headers),
            body=request.body,
        )
    with world.keys.claim(request) as first:
        if not first:
            return _end(world, seq, Delivery(REFUSALS[Fault.CONFLICT_409]), "")
        plan = world.faults.take(request)
        delivery = _before_apply(world, request, seq, plan)
        if delivery is None:
            delivery = _apply(world, request, seq, plan)
    return _after_apply(world, request, seq, plan, delivery)


def _end(world: World, seq: int, delivery: Delivery, faults: str) -> Delivery:
    with world.store.transaction() as tx:
        status = delivery.reply.status if delivery.reply else None
        log.write_end(tx, seq=seq, at=now(), status=status, fault=faults)
    return delivery


def _held_afterwards(plan: Plan) -> bool:
    return plan.block is not None and plan.block.fault is Fault.BLOCK_AFTER_APPLY


def _before_apply(world: World, request: Request, seq: int, plan: Plan) -> Delivery | None:
    """Block, wait, or refuse; None when the request is to be applied."""
    blocked = plan.block and plan.block.fault is Fault.BLOCK_BEFORE_APPLY
    if plan.block and blocked and _block(world, request, seq, plan.block, callers_leave=False) is Verdict.ABANDON:
        return _end(world, seq, Delivery(None, Manner.CLOSE_SILENTLY), plan.names())
    if plan.fault is None:
        return None
    if plan.kind is Fault.SLOW:
        # The caller's leaving changes nothing: a slow service applies what it was sent.
        world.holds.linger(plan.fault.seconds, until=lambda: False)
        return None
    delivery = _instead_of_applying(request, seq, plan.fault)
    if delivery and not _held_afterwards(plan):
        _end(world, seq, delivery, plan.names())
    return delivery


def _instead_of_applying(request: Request, seq: int, armed: Armed) -> Delivery | None:
    if armed.fault in REFUSALS:
        return Delivery(REFUSALS[armed.fault])
    match armed.fault:
        case Fault.TIMEOUT_BEFORE_APPLY:
            return Delivery(None, Manner.CLOSE_SILENTLY)
        case Fault.THROTTLED_429:
            body: dict[str, object] = {
                "error": "throttled",
                "remedy": "come back after Retry-After",
            }
            return Delivery(Reply(429, body, {"Retry-After": str(armed.retry_after)}))
        case Fault.ABSENT_FIRST:
            return Delivery(Reply(200, {request.path.strip("/"): []}))
        case Fault.IN_PROGRESS_FIRST:
            return Delivery(Reply(200, {request.path.strip("/"): [refunds.in_progress(request.key)]}))
        case Fault.LYING_200:
            return Delivery(_lie(request, seq))
        case _:
            return None


def _lie(request: Request, seq: int) -> Reply:
    """A success that looks like any other, for something that was never done."""
    try:
        asked = read_json(request.body)
    except Problem as problem:
        return problem_reply(problem)
    told = {
        "id": f"rf_{900_000 + seq}",
        "key": request.key,
        **asked,
        "status": "settled",
        "created_at": now(),
    }
    return Reply(201, told)


def _apply(world: World, request: Request, seq: int, plan: Plan) -> Delivery:
    """Apply in one transaction with its record in the log, and decide the reply."""
    held = _held_afterwards(plan)
    try:
        with world.store.transaction() as tx:
            delivery = _deliver(_handle(world, tx, request, seq, plan), plan)
            if not held:
                status = delivery.reply.status if delivery.reply else None
                log.write_end(tx, seq=seq, at=now(), status=status, fault=plan.names())
    except Problem as problem:
        delivery = Delivery(problem_reply(problem))
        if not held:
            _end(world, seq, delivery, plan.names())
    return delivery


def _handle(world: World, tx: sqlite3.Connection, request: Request, seq: int, plan: Plan) -> Reply:
    handler, arguments = find_route(request)
    call = Call(
        request=request,
        seq=seq,
        at=now(),
        arguments=arguments,
        outcome=plan.outcome.fault.value if plan.outcome else "",
        amount_minor=plan.outcome.amount_minor if plan.outcome else None,
        remember=plan.kind is not Fault.KEY_FORGOTTEN,
        in_progress=lambda key: world.keys.holds(request.path, key),
    )
    return handler(tx, call)


def find_route(request: Request) -> tuple[Handler, tuple[str, ...]]:
    """The handler of a request and its arguments from the path, or 404 or 405."""
    allowed = []
    for method, pattern, handler in ROUTES:
        match = pattern.fullmatch(request.path)
        if match and method == request.method:
            return handler, match.groups()
        if match:
            allowed.append(method)
    if not allowed or request.path == "/wires":
        raise Problem(404, "not_found", "this service has no such resource")
    raise Problem(405, "method_not_allowed", f"use {', '.join(allowed)}")


def _deliver(reply: Reply, plan: Plan) -> Delivery:
    """The reply as the fault lets it out, after the change was made."""
    match plan.kind:
        case Fault.TIMEOUT_AFTER_APPLY:
            return Delivery(None, Manner.CLOSE_SILENTLY)
        case Fault.ERROR_500_APPLIED:
            return Delivery(REFUSALS[Fault.ERROR_500_NOT_APPLIED])
        case Fault.RESET_MID_BODY:
            return Delivery(reply, Manner.RESET_IN_BODY)
        case Fault.DOUBLED_REPLY:
            return Delivery(reply, Manner.SEND_TWICE)
        case Fault.TRUNCATED_BODY:
            whole = reply.encoded()
            headers = {"Content-Type": "application/json", **reply.headers}
            return Delivery(replace(reply, body=whole[: len(whole) // 2], headers=headers))
        case Fault.WRONG_REFERENCE if isinstance(reply.body, dict) and "id" in reply.body:
            return Delivery(replace(reply, body={**reply.body, "id": "rf_999999"}))
        case _:
            return Delivery(reply)


def _after_apply(world: World, request: Request, seq: int, plan: Plan, delivery: Delivery) -> Delivery:
    """Block with the change made and nothing sent; leave a caller unanswered until it goes."""
    if plan.block and _held_afterwards(plan):
        if _block(world, request, seq, plan.block, callers_leave=True) is Verdict.ABANDON:
            delivery = Delivery(None, Manner.CLOSE_SILENTLY)
        _end(world, seq, delivery, plan.names())
    if plan.fault and plan.kind in (Fault.TIMEOUT_BEFORE_APPLY, Fault.TIMEOUT_AFTER_APPLY):
        world.holds.linger(plan.fault.seconds, until=request.gone)
    return delivery


def _block(world: World, request: Request, seq: int, armed: Armed, *, callers_leave: bool) -> Verdict:
    return world.holds.block(
        point=armed.fault.value,
        seq=seq,
        key=request.key,
        path=request.path,
        at=now(),
        until=request.gone if callers_leave else (lambda: False),
    )
