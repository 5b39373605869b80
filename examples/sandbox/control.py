"""The control plane under ``/_control``, for tests, demonstrations and the judge.

Its own requests aren't in the log.
"""

from collections.abc import Callable

from examples.sandbox import log, refunds
from examples.sandbox.calls import World
from examples.sandbox.holds import Verdict
from examples.sandbox.messages import (
    Problem,
    Reply,
    Request,
    only_fields,
    problem_reply,
    read_json,
    text_field,
)
from examples.sandbox.store import now

PREFIX = "/_control/"


def answer(world: World, request: Request) -> Reply:
    """Carry out one control request; refusals are replies as well."""
    try:
        act = _ACTS.get((request.method, request.path.removeprefix(PREFIX)))
        if act is None:
            known = ", ".join(f"{method} {PREFIX}{name}" for method, name in _ACTS)
            raise Problem(404, "not_found", f"one of {known}")
        return act(world, request)
    except Problem as problem:
        return problem_reply(problem)


def _arm(world: World, request: Request) -> Reply:
    return Reply(201, world.faults.arm(read_json(request.body)).as_json())


def _armed(world: World, request: Request) -> Reply:
    return Reply(200, {"faults": world.faults.all()})


def _disarm(world: World, request: Request) -> Reply:
    world.faults.clear()
    return Reply(200, {"faults": []})


def _blocked(world: World, request: Request) -> Reply:
    """Wait up to ``timeout`` seconds until ``count`` requests (of ``key``) are blocked, or 408."""
    parameters = request.parameters
    count = int(_number(parameters.get("count", "1")))
    seconds = min(_number(parameters.get("timeout", "0")), 600.0)
    found = world.holds.wait_for(count, seconds, parameters.get("key"))
    return Reply(200 if len(found) >= count else 408, {"blocked": [hold.as_json() for hold in found]})


def _release(world: World, request: Request) -> Reply:
    """Release a block by ``id``, those of a ``key``, or all; ``apply`` false drops them."""
    body = read_json(request.body or b"{}")
    only_fields(body, set(), {"id", "key", "apply"})
    hold_id, key, go_on = body.get("id"), body.get("key"), body.get("apply", True)
    if not isinstance(hold_id, int | None) or not isinstance(key, str | None) or not isinstance(go_on, bool):
        raise Problem(400, "bad_field", "id is a number, key a text, apply true or false")
    verdict = Verdict.GO_ON if go_on else Verdict.ABANDON
    return Reply(200, {"released": world.holds.release(verdict, hold_id, key)})


def _log(world: World, request: Request) -> Reply:
    """The raw log as JSON lines, oldest first: ``limit`` lines after ``after``, across resets."""
    parameters = request.parameters
    after, limit = (
        int(_number(parameters.get("after", "0"))),
        int(_number(parameters.get("limit", "500"))),
    )
    with world.store.transaction() as tx:
        entries = list(log.select_entries(tx, after, min(limit, 5000)))
    lines = "".join(f"{entry.as_json()}\n" for entry in entries)
    headers = {
        "Content-Type": "application/x-ndjson",
        "X-Last-Seq": str(entries[-1].seq if entries else after),
    }
    return Reply(200, lines.encode(), headers)


def _applied(world: World, request: Request) -> Reply:
    """Per key since the last reset: mutating requests, look-ups, applied changes, amounts."""
    prefix = request.parameters.get("prefix", "")
    with world.store.transaction() as tx:
        histories = log.select_histories(tx, log.last_reset(tx))
    return Reply(
        200,
        {"keys": {key: log.summary(one) for key, one in histories.items() if key.startswith(prefix)}},
    )


def _reset(world: World, request: Request) -> Reply:
    """Empty the service, disarm everything, mark the log so that counting starts anew."""
    world.faults.clear()
    world.holds.release_everything()
    with world.store.transaction() as tx:
        for table in ("orders", "payment", "note"):
            tx.execute(f"DELETE FROM {table}")
        seq = log.write_request(
            tx,
            at=now(),
            method=log.RESET,
            path=request.path,
            query="",
            key="",
            headers={},
            body=b"",
        )
    return Reply(200, {"reset_at_seq": seq})


def _forget(world: World, request: Request) -> Reply:
    """Forget a key as if its retention were over."""
    body = read_json(request.body)
    only_fields(body, {"key"})
    with world.store.transaction() as tx:
        return Reply(200, {"forgotten": refunds.forget(tx, text_field(body, "key"))})


def _settle(world: World, request: Request) -> Reply:
    """Give the refund of a key another status, as a bank would later."""
    body = read_json(request.body)
    only_fields(body, {"key", "status"})
    status = text_field(body, "status")
    if status not in refunds.STATUSES:
        raise Problem(400, "bad_field", f"status is one of {', '.join(refunds.STATUSES)}")
    with world.store.transaction() as tx:
        return Reply(200, {"changed": refunds.settle(tx, text_field(body, "key"), status)})


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 2**53:
        raise Problem(400, "bad_query", "count, timeout, after and limit are numbers, zero or more")
    return value


_ACTS: dict[tuple[str, str], Callable[[World, Request], Reply]] = {
    ("POST", "faults"): _arm,
    ("GET", "faults"): _armed,
    ("DELETE", "faults"): _disarm,
    ("GET", "blocked"): _blocked,
    ("POST", "release"): _release,
    ("GET", "log"): _log,
    ("GET", "applied"): _applied,
    ("POST", "reset"): _reset,
    ("POST", "forget"): _forget,
    ("POST", "settle"): _settle,
}
